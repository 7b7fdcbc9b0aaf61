// Decides which extensions are needed, and loads them. An extension that nothing needs is not even
// evaluated.
import { dialectNamesOf } from "./vendors.ts";
import { asObject } from "../core/schema/untrusted-json.ts";
import type { ConfigExtension, ExtensionEntry } from "./extension.ts";

export interface Loader {
  readonly entries: readonly ExtensionEntry[];
  /**
   * Loads the extensions for whose entries `isNeeded` returns true. Resolves with them in the order
   * of the entries. Each extension is loaded only once.
   */
  load(
    isNeeded: (entry: ExtensionEntry) => boolean | undefined,
  ): Promise<readonly ConfigExtension[]>;
}

export function createLoader(entries: readonly ExtensionEntry[]): Loader {
  const loaded = new Map<ExtensionEntry, Promise<ConfigExtension>>();
  async function loadOnce(entry: ExtensionEntry): Promise<ConfigExtension> {
    const known =
      loaded.get(entry) ?? entry.load().then((module) => ({ ...module, name: entry.name }));
    loaded.set(entry, known);
    return await known;
  }
  return {
    entries,
    load: (isNeeded) => Promise.all(entries.filter(isNeeded).map(loadOnce)),
  };
}

/** Whether a configuration needs an extension. `json`: the configuration, not yet checked. */
export function isNeededBy(json: unknown, entry: ExtensionEntry): boolean {
  const { settings = [], dialects = [], loadIf } = entry;
  const valuesAt = (path: string) => valuesOf(json, path.split("."));
  if (settings.some((path) => valuesAt(path).length > 0)) return true;
  if (loadIf && valuesAt(loadIf.setting).some(loadIf.test)) return true;
  // A model may name a format other than its provider's.
  const { providers, models } = asObject(json);
  const rows = [providers, models].flatMap((table) => Object.values(asObject(table)));
  const used = rows.flatMap((row) => dialectNamesOf(asObject(row)));
  return dialects.some((dialect) => used.includes(dialect));
}

/** The values at a setting's path. The step `*` is any name, or any element of a list. */
function valuesOf(json: unknown, [step, ...rest]: readonly string[]): readonly unknown[] {
  if (step === undefined) return [json];
  const parent = asObject(json);
  if (step === "*") return Object.values(parent).flatMap((child) => valuesOf(child, rest));
  return Object.hasOwn(parent, step) ? valuesOf(parent[step], rest) : [];
}
