// The files of src, the imports between them (including types), and the folders of the extensions.
// A folder of src/extensions without an index.ts is a group, and the folders in it are extensions.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { sourcesIn } from "../../scripts/size.ts";

export interface Import {
  /** The importing file, relative to the project: `src/core/app.ts`. */
  readonly from: string;
  /** The imported file, also relative to the project, or `node:fs`, or the name of a package. */
  readonly to: string;
  /** Whether the import is `import("...")`, which is evaluated only when it is reached. */
  readonly isLazy: boolean;
}

const STATIC = /^(?:import|export)\s(?:[^;]*?\sfrom\s)?"([^"]+)"/gm;
const LAZY = /\bimport\("([^"]+)"\)/g;

/** All imports of the files in a folder. */
export const importsIn = (folder: string): Import[] =>
  sourcesIn(folder)
    .sort()
    .flatMap((name) => importsOf(join(folder, name)));

function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8");
  const resolved = (target: string): string =>
    target.startsWith(".") ? normalize(join(dirname(file), target)) : target;
  return [STATIC, LAZY].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, target]) => ({
      from: file,
      to: resolved(target!),
      isLazy: pattern === LAZY,
    })),
  );
}

export const EXTENSIONS = "src/extensions";

/** The names of the folders in a folder of the project, sorted. */
export const foldersIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();

const isExtension = (folder: string): boolean => existsSync(join(EXTENSIONS, folder, "index.ts"));

/** The folders of all extensions, from src/extensions: `keys`, or `money/budgets` in a group. */
export const extensionFolders: readonly string[] = foldersIn(EXTENSIONS).flatMap((folder) =>
  isExtension(folder)
    ? [folder]
    : foldersIn(join(EXTENSIONS, folder)).map((name) => `${folder}/${name}`),
);

/** The folder of the extension to which a file belongs. Empty: it belongs to none. */
export function extensionOf(file: string): string {
  const path = file.slice(`${EXTENSIONS}/`.length);
  return extensionFolders.find((folder) => path.startsWith(`${folder}/`)) ?? "";
}
