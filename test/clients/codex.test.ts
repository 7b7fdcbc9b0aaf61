// Codex, the real program from npm, unmodified: `codex exec` reads a file, edits it and runs a
// command in a scratch folder. A scripted provider in each format plays the model. What Codex sends
// depends on the name of the model: for a name that it does not know, plain functions and a
// namespace; for others a free-form tool for patches, or tools among the input items.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { Model, Said, Understood } from "../support/fake-provider.ts";
import { folder } from "../support/folder.ts";
import { KEY } from "../support/gateway.ts";
import { blocksOf } from "../support/readme.ts";
import { BEHIND, DIALECTS, notInstalled, runLines, startBefore, type Behind } from "./lab.ts";
import { clientProgram, KEY_VARIABLE, linesFor } from "./manual.ts";

const PATCH = `*** Begin Patch
*** Update File: notes.txt
@@
-hello world
+goodbye world
*** End Patch
`;
const COMMAND = "cp notes.txt copied.txt && wc -w < copied.txt";
const EDIT = "sed -i s/hello/goodbye/ notes.txt";
const DONE = 'The file says "goodbye world" now.';

/** How Codex lets a model work, by the name that it knows the model by. */
const NAMES = { "lab/coder": "shell", "gpt-5.5": "patch", "gpt-6-sol": "code" } as const;
type Way = keyof typeof STEPS;

const shell = (cmd: string) => ({ name: "exec_command", arguments: JSON.stringify({ cmd }) });
const freeForm = (name: string, input: string) => ({ name, arguments: JSON.stringify({ input }) });
const code = (cmd: string) =>
  freeForm(
    "functions__exec",
    `const r = await tools.exec_command(${JSON.stringify({ cmd })});\ntext(r.output);\n`,
  );

/** A tool of a namespace. Codex says that there is no such agent. */
const WAIT = { name: "multi_agent_v1__wait_agent", arguments: '{"targets":["nobody"]}' };

/** The calls of the task's steps: read, edit, run. */
const STEPS = {
  shell: [shell("cat notes.txt"), shell(EDIT), shell(COMMAND), WAIT],
  search: [{ name: "tool_search", arguments: '{"query":"wait for an agent"}' }, WAIT],
  patch: [shell("cat notes.txt"), freeForm("apply_patch", PATCH), shell(COMMAND)],
  code: [code("cat notes.txt"), code(EDIT), code(COMMAND)],
};

const isResult = ({ role }: Record<string, any>): boolean => role === "tool";

/** Says the next step. What the tools returned before is its memory. */
const coder =
  (way: Way): Model =>
  ({ messages }: Understood): Said => {
    const step = messages.filter(isResult).length;
    const called = STEPS[way][step];
    if (!called) return { text: DONE };
    const call = { id: `call_${step}`, ...called };
    return { reasoning: `Step ${step}.`, text: `I do step ${step}.`, calls: [call] };
  };

async function start(t: TestContext, dialect: Behind, name: string, way: Way) {
  const provider = await BEHIND[dialect].start(t, { m: coder(way) });
  return { provider, gateway: await startBefore(t, provider, dialect, { api: "responses", name }) };
}

const CODEX = fileURLToPath(new URL("node_modules/.bin/codex", import.meta.url));

/** The settings that the manual shows, for this model and this address. */
const settings = (name: string, url: string): string =>
  linesFor(clientProgram("Codex").blocks[0]!, url, name);

/** The README's, and what else Codex asks its vendor is switched off: there is no network. */
const readmeSettings = (url: string): string =>
  `${linesFor({ text: blocksOf("toml")[0]! }, url, "")}
check_for_update_on_startup = false
[analytics]
enabled = false
`;

describe("Codex", { skip: notInstalled() }, () => {
  for (const dialect of DIALECTS)
    for (const name of Object.keys(NAMES) as (keyof typeof NAMES)[])
      it(`carries out a task with ${name} behind a provider of ${dialect}`, async (t) => {
        const way = NAMES[name];
        const { provider, gateway } = await start(t, dialect, name, way);
        const { work, output } = await task(t, settings(name, gateway.url));
        assert.equal(readFileSync(join(work, "notes.txt"), "utf8"), "goodbye world\n");
        assert.equal(readFileSync(join(work, "copied.txt"), "utf8"), "goodbye world\n");
        assert.match(output, /goodbye world/);
        assert.deepEqual(provider.broken, []);
        const results = resultsOf(provider.heard, way);
        assert.match(results[0]!, /hello world/);
        assert.match(results[2]!, /\b2\b/);
        assert.match(results[3] ?? "invalid agent id", /invalid agent id/);
        assertPrefixes(provider.asked.map(({ body }) => body));
        const statuses = gateway.access.map(({ path, status }) => `${path} ${status}`);
        assert.deepEqual(new Set(statuses), new Set(["/v1/responses 200"]));
        assert.ok(
          name !== "lab/coder" ||
            gateway.diagnostics.some(({ event }) => event === "tools_left_out"),
        );
      });

  it("works by the lines of README.md", async (t) => {
    const { provider, gateway } = await start(t, "openai", "deepseek-flash", "shell");
    await task(t, readmeSettings(gateway.url).replaceAll("ACME_KEY", KEY_VARIABLE));
    assert.equal(provider.heard.length, STEPS.shell.length + 1);
  });

  it("finds tools by its own search, and runs them", async (t) => {
    const { provider, gateway } = await start(t, "openai", "gpt-5.5", "search");
    await task(t, settings("gpt-5.5", gateway.url));
    const [found, waited] = resultsOf(provider.heard, "search");
    assert.match(found!, /multi_agent_v1__wait_agent/);
    assert.match(waited!, /invalid agent id/);
  });
});

/** Lets Codex work in a scratch folder, which must end well. */
async function task(t: TestContext, config: string) {
  const home = folder();
  const work = join(home, "work");
  mkdirSync(work);
  writeFileSync(join(home, "config.toml"), config);
  writeFileSync(join(work, "notes.txt"), "hello world\n");
  const flags = "--strict-config --skip-git-repo-check --ephemeral --json";
  const sandbox = `--sandbox danger-full-access -C "${work}"`;
  const lines = `"${CODEX}" exec ${flags} ${sandbox} "Change hello to goodbye in notes.txt" </dev/null`;
  const env = { HOME: home, CODEX_HOME: home, [KEY_VARIABLE]: KEY };
  const { code, output } = await runLines(t, lines, home, env);
  assert.equal(code, 0, output);
  return { work, output };
}

/** What the model saw of each of its steps. */
function resultsOf(heard: readonly Understood[], way: Way): string[] {
  assert.equal(heard.length, STEPS[way].length + 1);
  return heard
    .at(-1)!
    .messages.filter(isResult)
    .map(({ content }) => String(content));
}

/** What was sent before is sent again byte for byte, so that a provider finds it in its cache. */
function assertPrefixes(bodies: readonly Record<string, any>[]): void {
  const texts = bodies.map(({ tools, system, systemInstruction, messages, contents }) =>
    JSON.stringify([tools, system, systemInstruction, ...(messages ?? contents)]).slice(0, -1),
  );
  for (const [index, text] of texts.entries())
    assert.ok(index === 0 || text.startsWith(texts[index - 1]!), `request ${index}`);
}
