// Runs the tests: `node --import tsx scripts/test.ts [FILE or FOLDER ...]`; `npm test` runs all of
// them. It first compiles every source to JavaScript, module by module, into dist/compiled: a test
// process then starts in a quarter of the time that it takes under tsx. A test file also runs by
// itself: `node --import tsx --test FILE`.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { ONE_FILE } from "./build.ts";

const OUT = "dist/compiled";
const GiB = 1024 ** 3;
const SUFFIX = ".test.ts";

function filesBelow(path: string): string[] {
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .filter(({ name }) => name !== "node_modules")
    .flatMap((entry) =>
      entry.isDirectory() ? filesBelow(join(path, entry.name)) : join(path, entry.name),
    )
    .sort();
}

/** Writes a file all at once and only if it changes: another run of the tests may be reading it. */
function update(file: string, contents: string): void {
  try {
    if (readFileSync(file, "utf8") === contents) return;
  } catch {
    mkdirSync(dirname(file), { recursive: true });
  }
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, contents);
  renameSync(unfinished, file);
}

/**
 * The same module, importing compiled modules. The suffixes are of one length, so the source map
 * stays right.
 */
const importingCompiled = (code: string): string =>
  code.replace(/((?:\bfrom |\bimport |\bimport\()"\.[^"]*)\.ts"/g, '$1.js"');

async function compile(): Promise<void> {
  const files = ["src", "test", "scripts"].flatMap(filesBelow);
  const { outputFiles } = await build({
    entryPoints: files.filter((file) => file.endsWith(".ts")),
    outdir: OUT,
    outbase: ".",
    format: "esm",
    platform: "node",
    target: "node20.19",
    sourcemap: "inline",
    sourcesContent: false,
    write: false,
    logLevel: "warning",
  });
  for (const { path, text } of outputFiles) update(path, importingCompiled(text));
  for (const file of files.filter((name) => /\.(json|html|lua|md)$/.test(name)))
    update(join(OUT, file), readFileSync(file, "utf8"));
}

/**
 * What the tests write goes to memory where the system has such a place with room, or thousands of
 * small files wait for the disk.
 */
function temporaryFolder(): string {
  const memory = "/dev/shm";
  const inMemory = existsSync(memory) && statfsSync(memory).bavail * statfsSync(memory).bsize > GiB;
  const folder = mkdtempSync(join(inMemory ? memory : tmpdir(), "tests-"));
  chmodSync(folder, 0o755); // a test becomes another user
  return folder;
}

const compiled = (file: string): string => join(OUT, file.replace(/\.ts$/, ".js"));

const isClientTest = (file: string): boolean => file.startsWith(join("test", "clients"));

await compile();
const program = join(OUT, "gateway.mjs");
const { outputFiles } = await build({
  ...ONE_FILE,
  entryPoints: ["src/main.ts"],
  outfile: program,
  write: false,
});
update(program, outputFiles[0]!.text);

const chosen = process.argv.slice(2);
const tests = (chosen.length > 0 ? chosen : ["test"])
  .flatMap(filesBelow)
  .filter((file) => file.endsWith(SUFFIX) && !isClientTest(file));
if (tests.length === 0) throw new Error(`there are no tests in ${chosen.join(" ")}`);
const temporary = temporaryFolder();
process.on("SIGINT", () => undefined); // Ctrl-C ends the tests; the folder is removed after that
const { status } = spawnSync(
  process.execPath,
  ["--enable-source-maps", "--test", "--test-concurrency=2", ...tests.map(compiled)],
  { stdio: "inherit", env: { ...process.env, COMPILED_PROGRAM: program, TMPDIR: temporary } },
);
rmSync(temporary, { recursive: true, force: true });
process.exitCode = status ?? 1;
