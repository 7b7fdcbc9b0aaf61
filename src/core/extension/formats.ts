// The wire formats and the vendors that a configuration can name: the core's own format, and those
// of the extensions that are loaded.
import type { Extension } from "./extension.ts";
import type { DialectDefinition } from "../providers/dialect.ts";
import { openaiDialectDefinition } from "../providers/openai/index.ts";
import { vendorNames, vendorPresets, type VendorPresets } from "../providers/vendors.ts";

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

/** `others`: the dialects of extensions that are not loaded. */
export function createFormats(
  extensions: readonly Extension[],
  others: readonly string[] = [],
): Formats {
  const added = extensions.flatMap(({ dialects = [] }) => dialects);
  const definitions = [openaiDialectDefinition, ...added];
  const dialectNames = [...new Set([...definitions.map(({ name }) => name), ...others])];
  return {
    dialects: new Map(definitions.map((definition) => [definition.name, definition])),
    presets: vendorPresets(definitions),
    dialectNames,
    vendorNames: vendorNames(dialectNames),
  };
}
