// What stores outside of the process have in common: the optional packages that speak to them, and
// the passwords in their addresses, which must not show in a log.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fail } from "../../../core/schema/checker.ts";

/**
 * An optional peer package, from where the program is run or from beside it. Throws a
 * ValidationError that says what to install; `setting` is what asked for it.
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

/**
 * The password in the address of a store, as it is written there and as it is decoded. Empty in
 * `memory` or `file`.
 */
export function passwordsIn(address: string): string[] {
  const written = URL.canParse(address) ? new URL(address).password : "";
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written]; // a stray `%`
  }
}
