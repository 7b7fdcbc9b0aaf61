// The size of the sources: lines of code as Biome formats them at 100 columns, without blank lines
// and comments. README.md states it; `npm run docs` writes it there, and a test compares.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The most lines of code that src/core may have: what can be read in an evening. */
export const CORE_CEILING = 5_000;

export interface Size {
  readonly files: number;
  readonly lines: number;
}

/** Whether a line of TypeScript is code. Comments are recognised by their first characters. */
export const isCode = (line: string): boolean => !/^\s*($|\/\/|\/\*|\*)/.test(line);

/** All TypeScript files below a folder, by their paths from there. */
export const sourcesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));

export function sizeOf(folder: string): Size {
  const files = sourcesIn(folder);
  const lines = files.map(
    (name) => readFileSync(join(folder, name), "utf8").split("\n").filter(isCode).length,
  );
  return { files: files.length, lines: lines.reduce((sum, count) => sum + count, 0) };
}

/** The sentence of README.md that states the sizes. */
export function sizeText(): string {
  return `${part("src/core")}; ${part("src/extensions")}.`;
}

function part(folder: string): string {
  const { files, lines } = sizeOf(folder);
  return `\`${folder}\` has ${lines.toLocaleString("en")} lines of code in ${files} files`;
}
