// Which folder may import which: the table that keeps the core readable and the extensions
// deletable. Types count like code.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { describe, it } from "node:test";
import { extensionOf } from "./support/extensions.ts";
import { importsOf, sourcesIn, type Import } from "./support/imports.ts";

/** Files of the core that every folder may import. They import none but each other. */
const LEAVES = ["clock", "diagnose", "hash", "ids", "pieces", "turns", "version"].map(
  (name) => `src/core/${name}.ts`,
);

/**
 * What a folder of the core may import beside node:, the leaves and itself: folders of the core, or
 * single files of them.
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
    "providers",
    "upstream",
    "openai",
    "ledger",
    "schema",
    "http/event-reader.ts",
    "http/cancel.ts",
  ],
  chat: [
    "accounts",
    "http",
    "ledger",
    "openai",
    "providers",
    "routing",
    "schema",
    "upstream",
    "observer.ts",
    "error-responses.ts",
    "config.ts",
  ],
};

/** What extensions may import beside other extensions. */
const FOR_EXTENSIONS = ["src/core/", "src/config/", "src/command-line/", "src/embedded.ts"];
const isForExtensions = (file: string): boolean =>
  FOR_EXTENSIONS.some((path) => file.startsWith(path));

const folderOf = (file: string): string => file.split("/")[2] ?? "";
const isCore = (file: string): boolean => file.startsWith("src/core/");
const isExtension = (file: string): boolean => file.startsWith("src/extensions/");
const text = ({ from, to }: Import): string => `${from} imports ${to}`;

const imports = sourcesIn("src").flatMap(importsOf);
const within = imports.filter(({ to }) => to.startsWith("src/"));

function isAllowedInCore({ from, to }: Import): boolean {
  if (dirname(from) === "src/core" && !LEAVES.includes(from)) return true;
  if (LEAVES.includes(to)) return true;
  if (LEAVES.includes(from)) return false;
  const folder = folderOf(from);
  if (folder === "extension" || folderOf(to) === folder) return true;
  const target = to.slice("src/core/".length);
  return (ALLOWED[folder] ?? []).some((name) => target === name || target.startsWith(`${name}/`));
}

describe("import directions", () => {
  it("has a row for each folder of the core", () => {
    const folders = readdirSync("src/core", { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== "extension")
      .map(({ name }) => name);
    assert.deepEqual(folders.sort(), Object.keys(ALLOWED).sort());
  });

  it("lets no file of the core import an extension, or anything else outside of the core", () => {
    const wrong = within.filter(({ from, to }) => isCore(from) && !isCore(to));
    assert.deepEqual(wrong.map(text), []);
  });

  it("lets each folder of the core import only what the table allows", () => {
    const wrong = within.filter((each) => isCore(each.from) && isCore(each.to));
    assert.deepEqual(wrong.filter((each) => !isAllowedInCore(each)).map(text), []);
  });

  it("lets the reading of the configuration import nothing but the core", () => {
    const wrong = within.filter(
      ({ from, to }) =>
        from.startsWith("src/config/") && !to.startsWith("src/config/") && !isCore(to),
    );
    assert.deepEqual(wrong.map(text), []);
  });

  it("lets an extension import another one only through its index, and only if its README says so", () => {
    const crossing = within.filter(
      ({ from, to }) =>
        isExtension(from) && isExtension(to) && extensionOf(from) !== extensionOf(to),
    );
    const wrong = crossing.filter(
      ({ from, to }) =>
        to !== `src/extensions/${extensionOf(to)}/index.ts` ||
        !readmeOf(from).includes(`\`${basename(extensionOf(to))}\``),
    );
    assert.deepEqual(wrong.map(text), []);
  });

  it("lets an extension import nothing of src but what the table says and extensions", () => {
    const wrong = within.filter(
      ({ from, to }) => isExtension(from) && !isExtension(to) && !isForExtensions(to),
    );
    assert.deepEqual(wrong.map(text), []);
  });

  it("names extensions in src/extensions.ts only, and only by import()", () => {
    const outside = within.filter(({ from, to }) => isExtension(to) && !isExtension(from));
    assert.deepEqual(
      outside.filter(({ from, isLazy }) => from !== "src/extensions.ts" || !isLazy).map(text),
      [],
    );
  });

  it("has no dependency outside of Node", () => {
    const packages = imports.filter(({ to }) => !to.startsWith("src/") && !to.startsWith("node:"));
    assert.deepEqual(packages.map(text), []);
  });
});

const readmeOf = (file: string): string =>
  readFileSync(`src/extensions/${extensionOf(file)}/README.md`, "utf8");
