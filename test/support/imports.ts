// Which file of src imports which, types included.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

export interface Import {
  /** Relative to the project: `src/core/app.ts`. */
  readonly from: string;
  /** The same, or `node:fs`, or the name of a package. */
  readonly to: string;
  /** Evaluated only when it is reached: `import("...")`. */
  readonly isLazy: boolean;
}

/** Every TypeScript file under a folder. */
export const sourcesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name))
    .sort();

const STATIC = /^(?:import|export)\s(?:[^;]*?\sfrom\s)?"([^"]+)"/gm;
const LAZY = /\bimport\("([^"]+)"\)/g;

export function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8");
  const resolved = (target: string): string =>
    target.startsWith(".") ? normalize(join(dirname(file), target)) : target;
  const found = (pattern: RegExp, isLazy: boolean): Import[] =>
    [...text.matchAll(pattern)].map(([, target]) => ({
      from: file,
      to: resolved(target!),
      isLazy,
    }));
  return [...found(STATIC, false), ...found(LAZY, true)];
}
