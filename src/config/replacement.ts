// Whether a configuration may take the place of the one that a gateway was started with.
import type { Config } from "../core/config.ts";
import { ValidationError, type ValidationIssue } from "../core/schema/checker.ts";
import { demoKeyIssues } from "./demo-key.ts";
import { invalid } from "./references.ts";

/**
 * Throws a ValidationError if a configuration cannot take the place of `initial`, whose address the
 * gateway listens on, and in whose currency it counts what was spent.
 */
export function assertFits(config: Config, { server, currency }: Config): void {
  const issues: ValidationIssue[] = [...demoKeyIssues(config, server.host)];
  const isAnother = `must stay ${currency} while the gateway runs, which counts in it: restart it`;
  if (config.currency !== currency) issues.push(invalid(["currency"], isAnother));
  if (issues.length > 0) throw new ValidationError(issues);
}
