// The size of the sources: lines of code as Biome formats them at 100 columns, without blank lines
// and comments. The README states it, and a test compares.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { REFERENCE_EDITION, referenceTable } from "./build.ts";

/** The most lines of code that src/core may have: what can be read in an evening. */
export const CORE_CEILING = 5_000;
/** The most lines of code that an extension may have. */
export const EXTENSION_CEILING = 700;

/** Whether a line of TypeScript is code. Comments are recognized by their first characters. */
export const isCode = (line: string): boolean => !/^\s*($|\/\/|\/\*|\*)/.test(line);

/** All TypeScript files below a folder, by their paths from there. */
export const sourcesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));

const sizeOfTexts = (texts: readonly string[]): number =>
  texts.flatMap((text) => text.split("\n")).filter(isCode).length;

/** Lines of code in a folder. */
export const sizeOf = (folder: string): number =>
  sizeOfTexts(sourcesIn(folder).map((name) => readFileSync(join(folder, name), "utf8")));

/** All TypeScript files that are bundled into the reference edition. */
export async function sizeOfReference(): Promise<number> {
  const { metafile } = await build({ ...REFERENCE_EDITION, write: false, metafile: true });
  const sources = Object.keys(metafile.inputs).filter((path) => path.endsWith(".ts"));
  return sizeOfTexts(
    sources.map((path) =>
      basename(path) === "extensions.ts" ? referenceTable() : readFileSync(path, "utf8"),
    ),
  );
}
