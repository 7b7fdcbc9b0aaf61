// Each extension can be deleted: without its folder and its line in src/extensions.ts the program has no type errors, can be built and
// serves. The extensions that import it go with it; their READMEs say so.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { buildSync } from "esbuild";
import { ONE_FILE } from "../scripts/build.ts";
import { importsOf, sourcesIn } from "./support/imports.ts";
import { launch } from "./support/program.ts";
import { startProvider } from "./support/provider.ts";
import { ended } from "./support/command.ts";

const folders = readdirSync("src/extensions", { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

const extensionOf = (file: string): string => file.split("/")[2] ?? "";

/** The extensions that import this one, directly or through others, and itself. */
function withDependents(name: string): ReadonlySet<string> {
  const crossing = sourcesIn("src/extensions").flatMap(importsOf);
  const deleted = new Set([name]);
  for (let size = 0; size < deleted.size; ) {
    size = deleted.size;
    for (const { from, to } of crossing)
      if (to.startsWith("src/extensions/") && deleted.has(extensionOf(to)))
        deleted.add(extensionOf(from));
  }
  return deleted;
}
