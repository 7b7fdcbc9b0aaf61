// Runs the tests: `node --import tsx scripts/test.ts [--sources] [FILE or FOLDER ...]`.
//
// `npm test` names no files and runs all but two kinds, which run only if named: tests with
// official clients, and tests with their own PostgreSQL or Redis server.
//
// It first compiles each source to a JavaScript module in dist/compiled: a test process then starts
// in a quarter of the time that it takes under tsx. With --sources nothing is compiled: Node runs
// the sources directly, which takes Node 22.18. A test file also runs by itself: `node --import tsx
// --test FILE`.
//
// LONG_TESTS=1 selects the long form of all tests (test/support/long.ts). LONG_TESTS=2/4 selects it
// for the second quarter of the files, and the short form for the others; a file with many slow
// cases then runs a quarter of them, in either form.

import { spawn } from "node:child_process";
import { once } from "node:events";
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
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { PROGRAM } from "./build.ts";

const OUT = "dist/compiled";
const GiB = 1024 ** 3;
const SUFFIX = ".test.ts";
/**
 * The number of processes that run the tests. Each loads the gateway, which takes most of a second,
 * so there are few; but enough that none has much left to do when the others have ended.
 */
const PROCESSES = 12;
/** The number of processes for tests in their long form, beside others in the short form. */
const LONG_PROCESSES = 4;
/**
 * How many of them run at once. Tests wait for processes and timers a third of their time, so the
 * whole suite uses more processes than cores; parts of it often run beside other work.
 */
const CONCURRENCY = { suite: 4, part: 2 };
/**
 * A process that takes longer counts as hung: it fails, and its name tells which tests it ran. In
 * the long form the slowest takes a minute and a half.
 */
const DEADLINE_MS = 15 * 60_000;

function filesBelow(path: string): string[] {
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .filter(({ name }) => name !== "node_modules")
    .flatMap((entry) =>
      entry.isDirectory() ? filesBelow(join(path, entry.name)) : join(path, entry.name),
    )
    .sort();
}

/**
 * Replaces a file atomically and only if it changes, because another test run may be reading it.
 */
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

/** Makes a module import compiled modules. Suffixes of equal length keep the source map correct. */
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
  for (const file of files.filter((name) => /\.(json|html|css|js|lua|md)$/.test(name)))
    update(join(OUT, file), readFileSync(file, "utf8"));
}

/** A folder in memory if there is room, because tests write thousands of small files. */
function temporaryFolder(): string {
  const memory = "/dev/shm";
  const inMemory = existsSync(memory) && statfsSync(memory).bavail * statfsSync(memory).bsize > GiB;
  const folder = mkdtempSync(join(inMemory ? memory : tmpdir(), "tests-"));
  chmodSync(folder, 0o755); // some tests run as another user
  return folder;
}

const compiled = (file: string): string => join(OUT, file.replace(/\.ts$/, ".js"));

/** Compiles everything, and bundles the program into one file. Returns its path. */
async function prepare(): Promise<string> {
  await compile();
  const program = join(OUT, "gateway.mjs");
  const { outputFiles } = await build({
    ...PROGRAM,
    entryPoints: ["src/main.ts"],
    outfile: program,
    write: false,
  });
  update(program, outputFiles[0]!.text);
  return program;
}

/** The slowest test file by far, so it starts first. */
const SLOWEST = join("test", "conformance.test.ts");

const isClientTest = (file: string): boolean => file.startsWith(join("test", "clients"));

const hasServer = (file: string): boolean =>
  /support\/(postgres|redis)\.ts"/.test(readFileSync(file, "utf8"));

/** The test files below these paths. Without a path: those of `npm test`. */
function testsOf(chosen: readonly string[]): string[] {
  const tests = (chosen.length > 0 ? chosen : ["test"])
    .flatMap(filesBelow)
    .filter((file) => file.endsWith(SUFFIX));
  if (tests.length === 0) throw new Error(`there are no tests in ${chosen.join(" ")}`);
  if (chosen.length > 0) return tests;
  const usual = tests.filter((file) => !isClientTest(file) && !hasServer(file));
  return [SLOWEST, ...usual.filter((file) => file !== SLOWEST)];
}

/** The files of each process. Neighbours, which may all be slow, go to different processes. */
const spread = (files: readonly string[], count: number): string[][] =>
  Array.from({ length: count }, (_, group) => files.filter((_file, at) => at % count === group));

/**
 * Writes the modules that node:test runs, one per process. It starts them in the order of their
 * names. `long`: the files that run in the long form although the environment does not request it.
 * They take longest, so they start first, in their own processes.
 */
function modulesOf(files: readonly string[], long: readonly string[], folder: string): string[] {
  const usual = files.filter((file) => !long.includes(file));
  const groups = spread(usual, Math.min(PROCESSES, usual.length));
  const setLong = join(folder, "long.mjs");
  writeFileSync(setLong, 'process.env.LONG_TESTS = "1";\n');
  const longGroups = spread(long, Math.min(LONG_PROCESSES, long.length));
  // Modules are evaluated in the order of their imports.
  return [...longGroups.map((group) => [setLong, ...group]), ...groups].map((imported, at) => {
    const module = join(folder, `tests-${String(at + 1).padStart(2, "0")}.mjs`);
    const imports = imported.map((file) => `import "${pathToFileURL(resolve(file)).href}";\n`);
    writeFileSync(module, imports.join(""));
    return module;
  });
}

const { values, positionals } = parseArgs({
  options: { sources: { type: "boolean", default: false } },
  allowPositionals: true,
});
const tests = testsOf(positionals);
const temporary = temporaryFolder();
const environment: NodeJS.ProcessEnv = { ...process.env, TMPDIR: temporary };
const [, part, parts] = /^(\d+)\/(\d+)$/.exec(process.env["LONG_TESTS"] ?? "")?.map(Number) ?? [];
if (parts !== undefined) {
  environment["LONG_PART"] = environment["LONG_TESTS"];
  delete environment["LONG_TESTS"];
}
let files = tests;
if (!values.sources) {
  environment["COMPILED_PROGRAM"] = await prepare();
  files = tests.map(compiled);
}
const long = files.filter((_file, at) => parts !== undefined && at % parts === part! - 1);
const runner = spawn(
  process.execPath,
  [
    "--enable-source-maps",
    "--test",
    "--test-reporter=spec", // repeats failed tests at the end, unlike the default for pipes
    `--test-concurrency=${positionals.length > 0 ? CONCURRENCY.part : CONCURRENCY.suite}`,
    `--test-timeout=${DEADLINE_MS}`,
    ...modulesOf(files, long, temporary),
  ],
  { stdio: "inherit", env: environment, detached: true },
);
// The tests lead a process group, so that a signal ends the programs that they started too.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => process.kill(-runner.pid!));
const [status] = await once(runner, "exit");
rmSync(temporary, { recursive: true, force: true });
process.exitCode = status ?? 1;
