// The wire formats and the vendors that a configuration can name: the core's own format, and those
// of the extensions that are loaded.
import { dialectsIn } from "../core/extension/defaults.ts";
import type { Installed } from "../core/extension/installer.ts";
import type { DialectDefinition } from "../core/providers/dialect.ts";
import { vendorNames } from "./vendors.ts";

export interface Formats {
  /** By their names. */
  readonly dialects: ReadonlyMap<string, DialectDefinition>;
  /**
   * The values that `dialect` may have, also those whose extension is not loaded because nothing
   * names them.
   */
  readonly dialectNames: readonly string[];
  /** The same of `vendor`. */
  readonly vendorNames: readonly string[];
}

/** `others`: the dialects of extensions that are not loaded. */
export function createFormats(installed: Installed, others: readonly string[] = []): Formats {
  const dialects = dialectsIn(installed);
  const dialectNames = [...new Set([...dialects.keys(), ...others])];
  return {
    dialects,
    dialectNames,
    vendorNames: vendorNames(dialectNames),
  };
}
