// The faults of a configuration.

import { pathText, ValidationError } from "../../../src/core/schema/checker.ts";
import { checkConfig } from "../../support/config.ts";

/** The faults, each as `path: message`. */
export function faultsOf(config: object, env: Readonly<Record<string, string>> = {}): string[] {
  try {
    checkConfig(config, env);
    return [];
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    return error.issues.map(({ path, message }) => `${pathText(path)}: ${message}`);
  }
}
