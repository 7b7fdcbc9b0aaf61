// Reads text files that are stored beside the sources: pages, scripts, the manual. The bundled
// build contains these texts.
import { readdirSync, readFileSync } from "node:fs";

/**
 * Defined by the bundled build only: a function with all texts in a comment, as scripts/build.ts
 * writes them. V8 skips a comment, but would parse half a million characters of literals at every
 * start.
 */
declare const EMBEDDED_TEXTS: () => void;

const isBuilt = typeof EMBEDDED_TEXTS !== "undefined";

let sections: ReadonlyMap<string, string> | undefined;

/** The texts in the comment, by their paths under src. */
function builtTexts(): ReadonlyMap<string, string> {
  sections ??= new Map(
    EMBEDDED_TEXTS.toString()
      .split(/^\\(?:file |end$)/m)
      .slice(1, -1)
      .map((section) => {
        const end = section.indexOf("\n");
        return [section.slice(0, end), section.slice(end + 1, -1)];
      }),
  );
  return sections;
}

/**
 * The text of a file. `path` is relative to src: `manual/routing.md`. Throws if there is no such
 * file.
 */
export function embeddedText(path: string): string {
  if (!isBuilt) return readFileSync(new URL(`./${path}`, import.meta.url), "utf8");
  const text = builtTexts().get(path);
  if (text === undefined) throw new Error(`the build has no ${path}`);
  return text.replace(/\\u([\da-f]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
}

/** The names of the files in a folder of src: `manual` has `routing.md`. */
export function embeddedNames(folder: string): readonly string[] {
  if (!isBuilt) return readdirSync(new URL(`./${folder}`, import.meta.url)).sort();
  const prefix = `${folder}/`;
  return [...builtTexts().keys()]
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length));
}
