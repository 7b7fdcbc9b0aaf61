// Shared by extensions: loads optional packages, such as those that connect to Redis and
// PostgreSQL, and finds the passwords in addresses, which must not appear in a log.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fail } from "../../../core/schema/checker.ts";

/**
 * Loads an optional package from the working directory or the program's folder. If it is missing,
 * throws a ValidationError that says what to install, at the path of `setting`.
 */
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

/** The password in a store's address, as written and decoded. Empty texts: there is none. */
export function passwordsIn(address: string): string[] {
  const written = URL.canParse(address) ? new URL(address).password : "";
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written]; // a stray `%`
  }
}
