// Claude Code, unmodified, in print mode: it reads a file, edits it and runs a command in a scratch
// folder, through the gateway, with scripted models of each format behind it. It reaches nothing
// but the gateway: a proxy counts what else it would call.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { anthropic } from "../support/fake-anthropic.ts";
import { startOpenai } from "../support/fake-openai.ts";
import { PROVIDER_KEY, type Model, type Said, type Understood } from "../support/fake-provider.ts";
import { folder } from "../support/folder.ts";
import { configFor, KEY, merge, startGateway } from "../support/gateway.ts";
import { listening } from "../support/listening.ts";
import { rawStream, startProvider, type Asked, type Behaviour } from "../support/provider.ts";
import { blocksOf } from "../support/readme.ts";
import { BEHIND, DIALECTS, notInstalled, runLines, startBefore } from "./lab.ts";
import { ADDRESS, clientProgram, KEY_VARIABLE, linesFor } from "./manual.ts";

const PROGRAM = fileURLToPath(
  new URL("node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs", import.meta.url),
);
const LAST_WORDS = "The note now says goodbye.";

/** What the model does: with so many results, this is next. */
function nextStep(results: number, place: string): Said {
  const file_path = join(place, "note.txt");
  const steps = [
    { name: "Read", input: { file_path } },
    { name: "Edit", input: { file_path, old_string: "hello", new_string: "goodbye" } },
    { name: "Bash", input: { command: "wc -l < note.txt > lines.txt", description: "Count" } },
  ];
  const step = steps[results];
  if (!step) return { text: LAST_WORDS };
  const id = `toolu_step_${results}`;
  return {
    reasoning: "One step after the other.",
    calls: [{ id, name: step.name, arguments: JSON.stringify(step.input) }],
  };
}

const scripted =
  (place: string): Model =>
  ({ messages, tools }) =>
    tools
      ? nextStep(messages.filter(({ role }) => role === "tool").length, place)
      : { text: "A short title" };

/** The same model in Anthropic's format, which takes all that Claude Code sends. */
const scriptedClaude =
  (place: string): Behaviour =>
  (asked) => {
    const { tools, messages } = asked.body;
    const blocks = messages.flatMap(({ content }: { content: unknown }) => content);
    const results = blocks.filter(({ type }: { type?: string }) => type === "tool_result").length;
    const said = tools ? nextStep(results, place) : { text: "A short title" };
    const request = { upstreamModel: "claude", thinking: { type: "disabled" } } as Understood;
    rawStream(anthropic.stream(request, said))(asked);
  };

/** Counts what a program would reach beyond this machine, and lets nothing through. */
async function startProxy(t: TestContext) {
  const reached: string[] = [];
  const server = http.createServer((req, res) => {
    reached.push(req.url ?? "");
    res.writeHead(502).end();
  });
  server.on("connect", (req, socket) => {
    reached.push(req.url ?? "");
    socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  return { url: await listening(t, server), reached };
}

/** In the place of the program that the manual's lines start: the installed one, with a task. */
const PRINTING = `claude() {
  exec "${process.execPath}" "${PROGRAM}" -p "Say goodbye in note.txt." --allowedTools Read,Edit,Bash "$@"
}`;

/** Runs Claude Code by these lines in a folder: how it ended, what it printed, what it reached. */
async function run(t: TestContext, lines: string, place: string, key = KEY) {
  const { url, reached } = await startProxy(t);
  const env = { HTTPS_PROXY: url, HTTP_PROXY: url, NO_PROXY: "127.0.0.1", [KEY_VARIABLE]: key };
  return { ...(await runLines(t, `${PRINTING}\n${lines}`, place, env)), reached };
}

/** A folder with the note that is to be changed. */
function startPlace(): string {
  const place = folder();
  writeFileSync(join(place, "note.txt"), "hello\nworld\n");
  return place;
}

/** What it says of a model whose name it does not know, unless the lines state the window. */
const NOTICE =
  "so it assumes a context window of 1m tokens. Update Claude Code, or see " +
  "https://code.claude.com/docs/en/model-config#correct-the-window-for-a-gateway-or-custom-model-id " +
  "to set the window.\n";

/** Claude Code carries out the task by these lines, and reaches nothing but the gateway. */
async function assertDone(t: TestContext, place: string, lines: string): Promise<void> {
  const [, model] = /claude --model (\S+)/.exec(lines)!;
  const isStated = lines.includes("CLAUDE_CODE_MAX_CONTEXT_TOKENS=");
  const notice = isStated ? "" : `Claude Code doesn't recognize the model "${model}", ${NOTICE}`;
  const unknown = `[claude-code:unrecognized_model] {"model":"${model}","query_source":"sdk"}\n`;
  const ended = await run(t, lines, place);
  assert.deepEqual(ended, { code: 0, output: notice + unknown + LAST_WORDS, reached: [] });
  assert.equal(readFileSync(join(place, "note.txt"), "utf8"), "goodbye\nworld\n");
  assert.equal(readFileSync(join(place, "lines.txt"), "utf8").trim(), "2");
}

const manualLines = (url: string) => linesFor(clientProgram("Claude Code").blocks[0]!, url, "m");

describe("Claude Code", { skip: notInstalled() }, () => {
  for (const dialect of DIALECTS)
    it(`carries out a task, with ${dialect} behind the gateway`, async (t) => {
      const place = startPlace();
      const provider =
        dialect === "anthropic"
          ? { ...(await startProvider(t, scriptedClaude(place))), broken: [] }
          : await BEHIND[dialect].start(t, { m: scripted(place) });
      const gateway = await startBefore(t, provider, dialect, { api: "messages", name: "m" });
      await assertDone(t, place, manualLines(gateway.url));
      const lines = gateway.access.filter(({ path }) => path === "/v1/messages");
      assert.ok(lines.length >= 4);
      for (const line of lines) assert.deepEqual([line["status"], line["account"]], [200, "acme"]);
      assert.deepEqual(provider.broken, []);
      if (dialect === "anthropic") assertNative(provider.asked);
    });

  for (const [page, language, model] of [
    ["howto", "text", "coder"],
    ["README", "sh", "deepseek-flash"],
  ] as const)
    it(`works on DeepSeek by the configuration and the lines of ${page}`, async (t) => {
      const place = startPlace();
      const served = scripted(place);
      const models = { "deepseek-v4-pro": served, "deepseek-flash": served };
      const provider = await startOpenai(t, models);
      const written = blocksOf("json", page).find((text) => text.includes(`"${model}"`));
      const lines = blocksOf(language, page).find((text) =>
        text.includes(`claude --model ${model}`),
      );
      assert.ok(written && lines);
      const config = merge(JSON.parse(written), {
        server: { port: 0 },
        admin: { port: 0 },
        apis: ["messages"],
        keys: [{ account: "team", key: KEY }],
        providers: { deepseek: { base_url: provider.url } },
      }) as object;
      const gateway = await startGateway(t, config, {}, { DEEPSEEK_API_KEY: PROVIDER_KEY });
      const ready = lines.replace(ADDRESS, gateway.url).replace("ACME_KEY", KEY_VARIABLE);
      await assertDone(t, place, ready);
      assert.deepEqual(provider.broken, []);
    });

  it("says at once that its key is wrong, and asks no second time", async (t) => {
    const config = configFor("http://127.0.0.1:9", ["m"], { apis: ["messages"] });
    const gateway = await startGateway(t, config);
    const { code, output } = await run(t, manualLines(gateway.url), folder(), "sk-wrong");
    assert.notEqual(code, 0);
    assert.match(output, /401|API key/i);
    const answers = gateway.access.filter(({ path }) => path === "/v1/messages");
    const statuses = answers.map(({ status }) => status);
    assert.deepEqual(statuses, [401]);
  });
});

/** What only Anthropic's own format has has come through. */
function assertNative(asked: readonly Asked[]): void {
  for (const { headers, body } of asked) {
    assert.match(String(headers["anthropic-beta"]), /claude-code-/);
    assert.ok(body["context_management"] && body["metadata"].user_id && body["thinking"]);
    assert.match(JSON.stringify(body["system"]), /"cache_control":\{"type":"ephemeral"/);
    assert.ok(body["messages"].some(({ role }: { role: string }) => role === "system"));
    assert.match(JSON.stringify(body["messages"]), /"cache_control"/);
  }
}
