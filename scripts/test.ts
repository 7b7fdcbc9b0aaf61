// Runs the tests: `node --import tsx scripts/test.ts [--sources] [FILE or FOLDER ...]`.
//
// `npm test` names none and so runs all but two kinds, which run only where they are named: those
// with official clients, and those with a PostgreSQL or Redis server of their own.
//
// It first compiles every source to JavaScript, module by module, into dist/compiled: a test
// process then starts in a quarter of the time that it takes under tsx. With --sources nothing is
// compiled: Node runs the sources as they are, which takes Node 22.18. A test file also runs by
// itself: `node --import tsx --test FILE`.
//
// LONG_TESTS=1 is for the long form of all tests (test/support/long.ts), LONG_TESTS=2/4 for that of
// the second quarter of the files, and the usual form of the others; a file with many cases that
// each take long tries a quarter of them then, whichever form it has (test/support/long.ts).

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
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { PROGRAM } from "./build.ts";

const OUT = "dist/compiled";
const GiB = 1024 ** 3;
const SUFFIX = ".test.ts";
/**
 * The processes in which the tests run. Each loads the gateway, which takes most of a second, so
 * they are few; but enough that none is left with much to do when the others have ended.
 */
const PROCESSES = 12;
/** The same for tests in their long form beside others in the usual one. */
const LONG_PROCESSES = 4;
/**
 * How many of them run at once. The tests wait for processes and timers a third of their time, so
 * the whole suite takes more than there are cores; parts of it often run beside something else.
 */
const CONCURRENCY = { suite: 4, part: 2 };
/**
 * A process that has not ended by then hangs: it fails, and its name tells which tests it ran. The
 * slowest takes a minute and a half of that in the long form.
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

/** Lets a module import compiled modules. Suffixes of one length keep the source map correct. */
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
  chmodSync(folder, 0o755); // a test becomes another user
  return folder;
}

const compiled = (file: string): string => join(OUT, file.replace(/\.ts$/, ".js"));

/** Compiles everything, and writes the program as one file, whose path it returns. */
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

/** It takes far longer than any other, so it begins first. */
const SLOWEST = join("test", "conformance.test.ts");

const isClientTest = (file: string): boolean => file.startsWith(join("test", "clients"));

const hasServer = (file: string): boolean =>
  /support\/(postgres|redis)\.ts"/.test(readFileSync(file, "utf8"));

/** The test files below these paths; without any path the usual ones. */
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
 * Writes the modules that node:test runs, one a process; it takes them by their names. `long`: the
 * files whose long form is to run though the environment does not say so. They take longest, so
 * they begin first, in processes of their own.
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
process.on("SIGINT", () => undefined); // Ctrl-C ends the tests; the folder is removed after that
const { status } = spawnSync(
  process.execPath,
  [
    "--enable-source-maps",
    "--test",
    "--test-reporter=spec", // unlike the one for programs it repeats the failed tests at its end
    `--test-concurrency=${positionals.length > 0 ? CONCURRENCY.part : CONCURRENCY.suite}`,
    `--test-timeout=${DEADLINE_MS}`,
    ...modulesOf(files, long, temporary),
  ],
  { stdio: "inherit", env: environment },
);
rmSync(temporary, { recursive: true, force: true });
process.exitCode = status ?? 1;
