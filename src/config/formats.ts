// The wire formats and the vendors that a configuration can name: the core's own format, and those
// of the extensions that are loaded.
import { dialectsIn } from "../core/extension/defaults.ts";
import type { Installed } from "../core/extension/installer.ts";
import type { DialectDefinition } from "../core/providers/dialect.ts";
import { VENDOR_PRESETS, vendorNames, type VendorPresets } from "./vendors.ts";

export interface Formats {
  /** By their names. */
  readonly dialects: ReadonlyMap<string, DialectDefinition>;
  /** The presets of the vendors that speak one of these. */
  readonly presets: VendorPresets;
  /**
   * The values that `dialect` may have, also those whose extension is not loaded because nothing
   * names them.
   */
  readonly dialectNames: readonly string[];
  /** The same of `vendor`. */
  readonly vendorNames: readonly string[];
}

/** The presets that speak one of these formats, each with those of its variants that do. */
const spokenIn = (dialects: ReadonlyMap<string, unknown>, presets: VendorPresets): VendorPresets =>
  new Map(
    [...presets]
      .filter(([, { dialect }]) => dialects.has(dialect))
      .map(([name, preset]) => [
        name,
        { ...preset, variants: spokenIn(dialects, preset.variants) },
      ]),
  );

/** `others`: the dialects of extensions that are not loaded. */
export function createFormats(installed: Installed, others: readonly string[] = []): Formats {
  const dialects = dialectsIn(installed);
  const dialectNames = [...new Set([...dialects.keys(), ...others])];
  return {
    dialects,
    presets: spokenIn(dialects, VENDOR_PRESETS),
    dialectNames,
    vendorNames: vendorNames(dialectNames),
  };
}
