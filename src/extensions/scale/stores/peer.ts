// Optional peer packages, loaded only where the configuration names their use: from where the
// program is run, or from beside it.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fail } from "../../../core/schema/checker.ts";

/** Throws a ValidationError that says what to install; `setting` is what asked for it. */
export function loadPeer<T>(name: string, setting: string): T {
  for (const from of [resolve("package.json"), import.meta.url]) {
    try {
      return createRequire(from)(name) as T;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return fail(
    "unsupported_value",
    `needs the package '${name}': ` +
      `run 'npm install --save-optional ${name}' in the folder from which the gateway is started`,
    setting.split("."),
  );
}
