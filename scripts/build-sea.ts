// Builds the gateway as a single executable that needs no installed Node: `node --import tsx
// scripts/build-sea.ts [--out dist/chat-gateway]`, then `node --import tsx scripts/smoke.ts
// dist/chat-gateway`. It is the Node that runs this script with the program embedded. The program
// is CommonJS, because only that can use V8's code cache, which cuts a tenth of the start time.
//
// From Node 25.5 on, Node does this itself (`node --build-sea`). On earlier versions postject,
// which is fetched into a temporary folder, embeds the program: tried with Node 20, 22 and 24.
// Linux only, because other systems require a signature. If it cannot be built, exits with 1 and
// prints why.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { PROGRAM } from "./build.ts";

const POSTJECT = "postject@1.0.0-alpha.6";
/** A text in those Node executables that look for an embedded program. */
const FUSE = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

const { values } = parseArgs({
  options: { out: { type: "string", default: "dist/chat-gateway" } },
});
const out = resolve(values.out);
const give = (why: string): never => {
  console.error(`build-sea: ${why}`);
  process.exit(1);
};

/** A worker of a single executable gets the program's path as one argument too many. */
const DROP_PATH = 'if (require("node:cluster").isWorker) process.argv.splice(2, 1);';

/** createRequire resolves relative to the executable. */
async function writeCommonJs(file: string): Promise<void> {
  await build({
    ...PROGRAM,
    entryPoints: ["src/main.ts"],
    outfile: file,
    logLevel: "error",
    // Node 20 has no import() in a single executable, so each becomes a call of require.
    supported: { "dynamic-import": false },
    // Strict mode, which the built file has as an ES module. After a banner, esbuild's own "use
    // strict" would have no effect.
    banner: {
      js: `"use strict"; const programUrl = require("node:url").pathToFileURL(process.execPath).href; ${DROP_PATH}`,
    },
  });
}

function run(file: string, args: readonly string[]): void {
  execFileSync(file, args, { stdio: ["ignore", "ignore", "pipe"] }); // what it says on stderr is in the error, if there is one
}

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const byItself = major > 25 || (major === 25 && minor >= 5);
if (process.platform !== "linux")
  give(`not on ${process.platform}: an executable that was changed must be signed there`);
if (!readFileSync(process.execPath).includes(FUSE))
  give(
    `${process.execPath} (${process.version}) was built without support for single executables: take one from nodejs.org`,
  );

const folder = mkdtempSync(join(tmpdir(), "build-sea-"));
process.once("exit", () => rmSync(folder, { recursive: true }));
try {
  const [main, blob, config] = ["main.cjs", "program.blob", "sea.json"].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const common = { disableExperimentalSEAWarning: true, useSnapshot: false, useCodeCache: true };
  mkdirSync(dirname(out), { recursive: true });
  rmSync(out, { force: true });
  await writeCommonJs(main);
  writeFileSync(config, JSON.stringify({ ...common, main, output: byItself ? out : blob }));
  run(process.execPath, [byItself ? "--build-sea" : "--experimental-sea-config", config]);
  if (!byItself) {
    const quietly = ["--silent", "--no-save", "--no-audit", "--no-fund"];
    run("npm", ["install", ...quietly, "--prefix", folder, POSTJECT]);
    copyFileSync(process.execPath, out);
    chmodSync(out, 0o755);
    const postject = join(folder, "node_modules/postject/dist/cli.js");
    run(process.execPath, [postject, out, "NODE_SEA_BLOB", blob, "--sentinel-fuse", FUSE]);
  }
  console.log(
    `build-sea: ${values.out}, ${(statSync(out).size / 1e6).toFixed(0)} MB, with Node ${process.version}`,
  );
} catch (error) {
  // A half-built file is executable too: it is Node without the program.
  rmSync(out, { force: true });
  give((error as Error).message);
}
