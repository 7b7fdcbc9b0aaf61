// The programs in JavaScript and Python that README.md and the manual's page "Connect your client"
// show, as they stand there, against the demo configuration. Each prints a reply of the demo model.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, it, type TestContext } from "node:test";
import { folder } from "../support/folder.ts";
import { demo, startGateway, type RunningGateway } from "../support/gateway.ts";
import { blocksOf } from "../support/readme.ts";
import { within } from "../support/wait.ts";
import {
  CLIENT_PROGRAMS,
  clientProgram,
  KEY_VARIABLE,
  linesFor,
  type ClientBlock,
  type ClientProgram,
} from "./manual.ts";
import { hasModule, noPython, notInstalled, PYTHON, skipUnless } from "./lab.ts";

const THIS = "test/clients/client-programs.test.ts";
/** The Python of the frameworks, whose packages do not go with those of the SDKs. */
const FRAMEWORKS_PYTHON = process.env["FRAMEWORKS_PYTHON"] ?? PYTHON;
/** Importing a framework takes seconds on a busy machine. */
const RUN_MS = 120_000;

const of = (language: string): ClientProgram[] =>
  CLIENT_PROGRAMS.filter(
    ({ test, blocks: [block] }) => test === THIS && block!.language === language,
  );

/** The first module that a Python program imports beside the standard library. */
const moduleOf = ({ blocks: [block] }: ClientProgram): string =>
  /^(?:from|import) (?!os\b)(\w+)/m.exec(block!.text)![1]!;

const pythonOf = (program: ClientProgram): string | undefined =>
  [PYTHON, FRAMEWORKS_PYTHON].find((python) => hasModule(python, moduleOf(program)));

/** The versions that the test's packages are pinned to, by installer and package. */
function pinnedVersions(): ReadonlyMap<string, string> {
  const { dependencies } = JSON.parse(readFileSync("test/clients/package.json", "utf8"));
  // The second list has the SDKs, the first one an older one of them for the frameworks.
  const python = ["frameworks.txt", "requirements.txt"].flatMap((file) =>
    [...readFileSync(`test/clients/${file}`, "utf8").matchAll(/^([\w-]+)\S*==(\S+)$/gm)].map(
      ([, name, version]) => [`pip ${name}`, version!] as const,
    ),
  );
  const javascript = Object.entries<string>(dependencies).map(
    ([name, version]) => [`npm ${name}`, version] as const,
  );
  return new Map([...javascript, ...python]);
}

type Program = Pick<ClientProgram, "name"> & {
  readonly blocks: readonly Pick<ClientBlock, "text">[];
};

async function run(t: TestContext, program: Program, command: string, ending: string) {
  const gateway = await startGateway(t, demo());
  const file = fileURLToPath(new URL(`.program-${process.pid}${ending}`, import.meta.url));
  writeFileSync(file, linesFor(program.blocks[0]!, gateway.url, "demo-chat"));
  t.after(() => rmSync(file));
  await assertReplies(gateway, program.name, [command, file]);
}

/** Writes the file that the manual names into a new home, and runs the lines of a shell. */
async function runWithFile(t: TestContext, { name, blocks }: ClientProgram) {
  const gateway = await startGateway(t, demo());
  const [config, lines] = blocks.map((block) => linesFor(block, gateway.url, "demo-chat"));
  const home = folder();
  const file = blocks[0]!.file!.replace("~", home);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, config!);
  const PATH = `${dirname(PYTHON)}:${process.env["PATH"]}`;
  await assertReplies(gateway, name, ["bash", "-euc", lines!], { HOME: home, PATH });
}

/** Runs a command, which has the gateway's key: it prints a reply, and asks for nothing in vain. */
async function assertReplies(
  gateway: RunningGateway,
  name: string,
  [command, ...args]: readonly [string, ...string[]],
  more: object = {},
): Promise<void> {
  const env = {
    ...process.env,
    [KEY_VARIABLE]: "sk-demo",
    PYTHONIOENCODING: "utf-8",
    PYTHONDONTWRITEBYTECODE: "1",
    // Nothing but the gateway is reached, and nothing is kept.
    HTTPS_PROXY: "http://127.0.0.1:9",
    HTTP_PROXY: "http://127.0.0.1:9",
    NO_PROXY: "127.0.0.1",
    LITELLM_LOCAL_MODEL_COST_MAP: "True",
    DSPY_CACHEDIR: folder(),
    ...more,
  };
  const ended = new Promise<string>((resolve, reject) => {
    const child = execFile(command, args, { env, timeout: RUN_MS }, (error, stdout, stderr) =>
      error ? reject(new Error(`${stdout}${stderr}`, { cause: error })) : resolve(stdout),
    );
    // A program in a terminal may wait for more of the prompt from its standard input.
    child.stdin!.end();
  });
  const output = await within(ended, `the end of ${name}`, RUN_MS + 10_000);
  assert.match(output, name === "instructor" ? /^\{"text":".+"\}\n$/ : /Say hello/);
  const chats = gateway.access.filter(({ path }) => path !== "/v1/models");
  assert.ok(chats.length > 0);
  for (const line of chats)
    assert.deepEqual([line["status"], line["account"], line["model"]], [200, "demo", "demo-chat"]);
}

describe("the manual's clients", () => {
  for (const program of of("js"))
    it(program.name, { skip: notInstalled() }, (t) => run(t, program, process.execPath, ".mjs"));

  for (const program of of("python")) {
    const python = pythonOf(program);
    const skip = skipUnless(
      python !== undefined,
      `no Python can import ${moduleOf(program)}: pip install -r test/clients/frameworks.txt into an environment of its own, and set FRAMEWORKS_PYTHON`,
    );
    it(program.name, { skip }, (t) => run(t, program, python!, ".py"));
  }

  for (const [language, command, ending, skip] of [
    ["js", process.execPath, ".mjs", notInstalled()],
    ["python", PYTHON, ".py", noPython()],
  ] as const)
    it(`README.md's in ${language}`, { skip }, async (t) => {
      const [text = "", ...others] = blocksOf(language);
      assert.equal(others.length, 0);
      await run(t, { name: `README.md in ${language}`, blocks: [{ text }] }, command, ending);
    });

  const llm = clientProgram("llm");
  const noLlm = skipUnless(hasModule(PYTHON, "llm"), `${PYTHON} cannot import llm`);
  it(llm.name, { skip: noLlm }, (t) => runWithFile(t, llm));

  it("have the versions that are installed for the tests", () => {
    const pinned = pinnedVersions();
    for (const { name, install, version, test } of CLIENT_PROGRAMS) {
      if (test === undefined) continue;
      const [, tool, first] = /^(\w+) install (?:-g )?'?([\w@/.-]+)/.exec(install) ?? [];
      assert.equal(pinned.get(`${tool} ${first}`), version, name);
    }
  });

  it("are run by the tests that the manual names", () => {
    for (const { name, test } of CLIENT_PROGRAMS) {
      if (test === undefined) continue;
      assert.ok(existsSync(test), test);
      if (test === THIS) continue;
      assert.ok(readFileSync(test, "utf8").includes(`clientProgram("${name}")`), name);
    }
    assert.ok(of("js").length >= 5 && of("python").length >= 10);
  });
});
