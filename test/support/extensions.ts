// The extensions by their folders. A folder of src/extensions that has no index.ts is a group: the
// folders in it are extensions.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

export const EXTENSIONS = "src/extensions";

const foldersIn = (folder: string): string[] =>
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

/** The folder of the extension that a file of the project belongs to. Empty: it is of none. */
export function extensionOf(file: string): string {
  const path = file.slice(`${EXTENSIONS}/`.length);
  return extensionFolders.find((folder) => path.startsWith(`${folder}/`)) ?? "";
}
