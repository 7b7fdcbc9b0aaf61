// Which folder may import which: this keeps the core readable and the extensions deletable. Imports
// of types count too.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, it } from "node:test";
import {
  EXTENSIONS,
  extensionFolders,
  extensionOf,
  foldersIn,
  importsIn,
  type Import,
} from "./support/sources.ts";

/** Files of the core that every folder may import. They import only each other. */
const LEAVES = ["clock", "diagnose", "hash", "ids", "pieces", "turns", "version"].map(
  (name) => `src/core/${name}.ts`,
);

/**
 * What a folder of the core may import besides node:, the leaves and itself: folders or single
 * files of the core.
 */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  schema: [],
  http: ["openai/errors.ts"],
  upstream: ["http/cancel.ts"],
  openai: ["schema"],
  providers: ["openai", "schema", "http/event-reader.ts"],
  ledger: ["openai", "schema", "http/cancel.ts"],
  accounts: ["openai", "schema"],
  routing: [
    ...["providers", "upstream", "openai", "ledger", "schema"],
    ...["http/event-reader.ts", "http/cancel.ts"],
  ],
  chat: [
    ...["accounts", "http", "ledger", "openai", "providers", "routing", "schema", "upstream"],
    ...["observer.ts", "error-responses.ts", "config.ts"],
  ],
};

/** What extensions may import besides other extensions. */
const FOR_EXTENSIONS = ["src/core/", "src/config/", "src/command-line/", "src/embedded.ts"];
const isForExtensions = (file: string): boolean =>
  FOR_EXTENSIONS.some((path) => file.startsWith(path));

const folderOf = (file: string): string => file.split("/")[2] ?? "";
const isCore = (file: string): boolean => file.startsWith("src/core/");
const isExtension = (file: string): boolean => file.startsWith("src/extensions/");
const text = ({ from, to }: Import): string => `${from} imports ${to}`;

const imports = importsIn("src");

function isAllowedInCore({ from, to }: Import): boolean {
  if (dirname(from) === "src/core" && !LEAVES.includes(from)) return true;
  if (LEAVES.includes(to)) return true;
  if (LEAVES.includes(from)) return false;
  const folder = folderOf(from);
  if (folder === "extension" || folderOf(to) === folder) return true;
  const target = to.slice("src/core/".length);
  return (ALLOWED[folder] ?? []).some((name) => target === name || target.startsWith(`${name}/`));
}

const isConfig = (file: string): boolean => file.startsWith("src/config/");
const isSource = (file: string): boolean => file.startsWith("src/");
const readmeOf = (file: string): string =>
  readFileSync(`src/extensions/${extensionOf(file)}/README.md`, "utf8");

/** Whether an import of another extension bypasses its index, or is missing in the README. */
function isHidden({ from, to }: Import): boolean {
  const [own, other] = [extensionOf(from), extensionOf(to)];
  if (!isExtension(from) || !isExtension(to) || own === other) return false;
  return (
    to !== `src/extensions/${other}/index.ts` || !readmeOf(from).includes(`\`${basename(other)}\``)
  );
}

/** The imports that break each rule. */
const RULES: readonly (readonly [rule: string, isWrong: (each: Import) => boolean])[] = [
  [
    "lets no file of the core import an extension, or anything else outside of the core",
    ({ from, to }) => isSource(to) && isCore(from) && !isCore(to),
  ],
  [
    "lets each folder of the core import only what the table allows",
    (each) => isCore(each.from) && isCore(each.to) && !isAllowedInCore(each),
  ],
  [
    "lets the reading of the configuration import nothing but the core",
    ({ from, to }) => isSource(to) && isConfig(from) && !isConfig(to) && !isCore(to),
  ],
  [
    "lets an extension import another one only through its index, and only if its README says so",
    isHidden,
  ],
  [
    "lets an extension import nothing of src but what the table says and extensions",
    ({ from, to }) => isSource(to) && isExtension(from) && !isExtension(to) && !isForExtensions(to),
  ],
  [
    "names extensions in src/extensions.ts only, and only by import()",
    ({ from, to, isLazy }) =>
      isExtension(to) && !isExtension(from) && (from !== "src/extensions.ts" || !isLazy),
  ],
  ["has no dependency outside of Node", ({ to }) => !isSource(to) && !to.startsWith("node:")],
];

describe("import directions", () => {
  it("has a row for each folder of the core", () => {
    const folders = foldersIn("src/core").filter((name) => name !== "extension");
    assert.deepEqual(folders, Object.keys(ALLOWED).sort());
  });

  for (const [rule, isWrong] of RULES)
    it(rule, () => assert.deepEqual(imports.filter(isWrong).map(text), []));
});

it("the tables of files in the READMEs of extensions name files that exist", () => {
  const missing = extensionFolders.flatMap((folder) => {
    const readme = readFileSync(join(EXTENSIONS, folder, "README.md"), "utf8");
    const named = [...readme.matchAll(/^\| `([\w.-]+\.(?:ts|js|json|lua|sql))`/gm)].map(
      ([, name]) => name!,
    );
    return named.map((name) => join(EXTENSIONS, folder, name)).filter((file) => !existsSync(file));
  });
  assert.deepEqual(missing, []);
});
