// Reads text files that lie beside the sources: pages, scripts, the manual. The bundled build has
// these texts inside the program.
import { readdirSync, readFileSync } from "node:fs";

/** Defined by the bundled build only: texts by their paths under src. */
declare const EMBEDDED_TEXTS: Readonly<Record<string, string>>;

const isBuilt = typeof EMBEDDED_TEXTS !== "undefined";

/**
 * The text of a file. `path` is relative to src: `manual/routing.md`. Throws if there is no such
 * file.
 */
export function embeddedText(path: string): string {
  if (!isBuilt) return readFileSync(new URL(`./${path}`, import.meta.url), "utf8");
  const text = EMBEDDED_TEXTS[path];
  if (text === undefined) throw new Error(`the build has no ${path}`);
  return text;
}

/** The names of the files in a folder of src: `manual` has `routing.md`. */
export function embeddedNames(folder: string): readonly string[] {
  if (!isBuilt) return readdirSync(new URL(`./${folder}`, import.meta.url)).sort();
  const prefix = `${folder}/`;
  return Object.keys(EMBEDDED_TEXTS)
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length));
}
