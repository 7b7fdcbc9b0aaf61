// Texts that stand in files of their own beside the sources: pages, scripts, the manual. A build of one file puts them into the program.
import { readFileSync } from "node:fs";

/** Defined by a build of one file: texts by their paths under src. */
declare const EMBEDDED_TEXTS: Readonly<Record<string, string>>;

/** The text of a file. `path` is relative to src: `manual/routing.md`. Throws if there is no such file. */
export function embeddedText(path: string): string {
  if (typeof EMBEDDED_TEXTS === "undefined")
    return readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
  const text = EMBEDDED_TEXTS[path];
  if (text === undefined) throw new Error(`the build has no ${path}`);
  return text;
}
