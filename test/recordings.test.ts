// Replays recorded traffic of real providers through a running gateway. The client must get what a
// recorded reply says, as read by support/recording.ts, not by the gateway's dialects. Expected
// results for errors and for replies that are easily misread (filtered replies, failed tool calls,
// two replies in one stream) are written by hand here; test/core/routing/content-failures.test.ts
// tests how an alias and the breaker treat those. The recordings are beside the project, or in the
// folders of RECORDINGS (one per vendor) and CASES: bodies (*.json), streams as received (*.sse)
// and streams with the JSON of one event on each line (*.chunks.txt). If a folder is missing, its
// tests are skipped.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, it, type TestContext } from "node:test";
import {
  assemble,
  assertSound,
  configFor,
  json,
  readStream,
  startGateway,
  user,
} from "./support/gateway.ts";
import { LONG } from "./support/long.ts";
import { inPieces, startProvider } from "./support/provider.ts";
import { readReply, type Call } from "./support/recording.ts";
import { completionShape } from "./support/shapes.ts";

/** The folder of recordings, which has a folder for each vendor. */
const RECORDINGS = process.env["RECORDINGS"] ?? resolve("../shared/fixtures");

/** Why tests with recordings are skipped. False: they run. */
const noRecordings = !existsSync(RECORDINGS) && `there are no recordings at ${RECORDINGS}`;

const vendors = noRecordings ? [] : readdirSync(RECORDINGS, { withFileTypes: true });

/** Whole bodies, and streams with the JSON of one event on each line. */
const recordings = vendors
  .filter((entry) => entry.isDirectory())
  .flatMap(({ name: vendor }) =>
    readdirSync(join(RECORDINGS, vendor))
      .filter((name) => /\.json$|\.chunks\.txt$/.test(name))
      .map((name) => ({
        vendor,
        name,
        text: readFileSync(join(RECORDINGS, vendor, name), "utf8"),
      })),
  );

/** The sizes in bytes of the pieces in which a recording is sent. */
const SIZES = LONG ? [Infinity, 1_000, 7, 1] : [7];
const inSizes = (name: string, run: (t: TestContext, size: number) => Promise<void>): void => {
  for (const size of SIZES)
    it(`${name}${size === Infinity ? "" : `, in pieces of ${size}`}`, (t) => run(t, size));
};

/** The bytes of a stream as the vendor frames them, from lines with the JSON of one event each. */
function framed(vendor: string, lines: readonly string[]): string {
  const named = (line: string) =>
    vendor === "anthropic" ? `event: ${JSON.parse(line).type}\n` : "";
  const events = lines.map((line) => `${named(line)}data: ${line}\n\n`).join("");
  return ["anthropic", "gemini"].includes(vendor) ? events : `${events}data: [DONE]\n\n`;
}
const linesOf = (text: string): string[] =>
  text.split(/\r?\n/).filter((line) => line.trim() !== "");

/**
 * What a client gets that asks for thinking and has these tools, if the model "m" answers with this
 * status and text. The ending of `name` states the kind of the text.
 */
async function replay(
  t: TestContext,
  { vendor, name, text }: Readonly<Record<"vendor" | "name" | "text", string>>,
  { status = 200, tools, size }: { status?: number; tools: readonly string[]; size: number },
) {
  const streaming = !name.endsWith(".json");
  const bytes = name.endsWith(".chunks.txt") ? framed(vendor, linesOf(text)) : text;
  const mediaType = streaming && status === 200 ? "text/event-stream" : "application/json";
  const { url, asked } = await startProvider(t, inPieces(status, mediaType, bytes, size));
  const recorded = { vendor, base_url: url, api_key: "sk-provider-secret" };
  const models = { m: { provider: "recorded" } };
  const gateway = await startGateway(t, configFor(url, ["m"], { providers: { recorded }, models }));
  const response = await gateway.chat({
    model: "m",
    messages: user("Say what you said."),
    thinking: { type: "enabled" },
    ...(tools.length > 0 && {
      tools: tools.map((tool) => ({
        type: "function",
        function: { name: tool, parameters: { type: "object" } },
      })),
      tool_choice: "auto",
    }),
    ...(streaming && { stream: true, stream_options: { include_usage: true } }),
  });
  const read = await (streaming ? readStreamed : readWhole)(response);
  const line = await gateway.accessOf(response.headers.get("x-request-id")!);
  return { ...read, response, line, paths: asked.map(({ path }) => path).join(" ") };
}

/** What a client gets. Without `finish` it is an error. */
interface Read {
  readonly error?: { readonly code: string } | undefined;
  readonly finish?: string | null;
  readonly message?: any;
  readonly usage?: any;
}

async function readWhole(response: Response): Promise<Read> {
  const given = await json(response);
  if (given.error) return { error: given.error };
  completionShape(given);
  assert.match(given.id, /^chatcmpl-[0-9a-f]{32}$/);
  assert.deepEqual([given.object, given.model, given.choices.length], ["chat.completion", "m", 1]);
  const [{ message, finish_reason: finish }] = given.choices;
  return { message, finish, usage: given.usage };
}

/** The same for a stream, whose form is checked. */
async function readStreamed(response: Response): Promise<Read> {
  const { chunks, done, error } = await readStream(response);
  const { message, finish_reason: finish } = assemble(chunks);
  assertSound(chunks, "m", { finished: finish !== null });
  assert.equal(done, error === undefined);
  const fragments = chunks.flatMap(({ choices }) =>
    choices.flatMap(({ delta }) => delta["tool_calls"] ?? []),
  );
  const begun = fragments.filter(
    (fragment) => "id" in fragment || "type" in fragment || "name" in fragment.function,
  );
  const calls: readonly object[] = message["tool_calls"] ?? [];
  const begunCalls = begun.map(({ index, type }) => [index, type]);
  assert.deepEqual(
    begunCalls,
    calls.map((_, index) => [index, "function"]),
  );
  const counted = chunks.filter(({ usage }) => usage !== null);
  const figures = counted.map((chunk) => [chunks.indexOf(chunk), chunk.choices]);
  assert.deepEqual(figures, done ? [[chunks.length - 1, []]] : []);
  return { error, message, finish, usage: counted[0]?.usage };
}

/** The path of each dialect's call, relative to base_url. */
function pathOf(vendor: string, streamed: boolean): string {
  if (vendor === "anthropic") return "/v1/messages";
  if (vendor !== "gemini") return "/chat/completions";
  return `/v1beta/models/m:${streamed ? "streamGenerateContent?alt=sse" : "generateContent"}`;
}

function assertCalls(given: readonly any[], recorded: readonly Call[]): void {
  const names = given.map((call) => call.function.name);
  assert.deepEqual(
    names,
    recorded.map(({ name }) => name),
  );
  given.forEach((call, index) => {
    const { id, args } = recorded[index]!;
    if (id) assert.equal(call.id, id);
    if (typeof args === "string") assert.equal(call.function.arguments, args);
    else assert.deepEqual(JSON.parse(call.function.arguments), args);
  });
  const ids = new Set(given.map(({ id }) => id));
  assert.equal(ids.size, given.length, "every call has an id of its own");
}

describe("recordings", { skip: noRecordings }, () => {
  it("are there", () =>
    assert.ok(recordings.length > 0, `there is nothing to replay in ${RECORDINGS}`));

  for (const { vendor, name, text } of recordings) {
    const streamed = name.endsWith(".chunks.txt");
    const events = (streamed ? linesOf(text) : [text]).map((line) => JSON.parse(line));
    if (events.some((event) => "error" in event)) continue;
    inSizes(`${vendor}/${name}`, async (t, size) => {
      const recorded = readReply(vendor, events);
      const tools = [...new Set(recorded.calls.map((call) => call.name))];
      const given = await replay(t, { vendor, name, text }, { tools, size });
      const { response, message, usage, line } = given;
      assert.equal(response.status, 200);
      assert.equal(given.paths, pathOf(vendor, streamed));
      const said = [given.finish, message.role, message.content ?? ""];
      assert.deepEqual(said, [recorded.finish, "assistant", recorded.text]);
      assert.equal(message.reasoning_content ?? "", recorded.thinking);
      assert.equal(message.refusal ?? "", recorded.refusal);
      assertCalls(message.tool_calls ?? [], recorded.calls);
      // If no figures are recorded, the stated ones must be consistent.
      if (recorded.usage !== undefined) assert.deepEqual(usage, recorded.usage);
      const { prompt_cache_hit_tokens: hit, prompt_cache_miss_tokens: miss, prompt_tokens } = usage;
      assert.equal(hit + miss, prompt_tokens);
      assert.equal(prompt_tokens + usage.completion_tokens, usage.total_tokens);
      const source = recorded.usage === undefined ? "estimated" : undefined;
      assert.equal(line["usage_source"], source);
    });
  }
});

const CASES = process.env["CASES"] ?? resolve("../shared/cases");
const isCase = (name: string): boolean => /\.(json|sse|chunks\.txt)$/.test(name);

/**
 * The file, its vendor, and the status of the provider's response; what the client gets: the
 * status, then the error's code or the finish reason; and the thoughts and calls of a stream, or
 * the tokens of prompt, completion and reasoning.
 */
type Case = readonly [
  name: string,
  vendor: string,
  status: number,
  outcome: string,
  content?: RegExp,
];

const TABLE: readonly Case[] = [
  [
    "anthropic-spliced-message-start.chunks.txt",
    "anthropic",
    200,
    "200 upstream_error",
    /^I will call the tool\. toolu_first test-tool \{"value":"Spark$/,
  ],
  ["azure-filtered-reply-without-message.json", "openai", 200, "200 content_filter", /^15 19 0$/],
  ["gemini-model-armor-finish.json", "gemini", 200, "200 content_filter", /^19 33 27$/],
  ["gemini-model-armor-prompt-blocked.json", "gemini", 200, "200 content_filter"],
  ["groq-tool-use-failed-400.json", "groq", 400, "503 upstream_error"],
  [
    "groq-tool-use-failed.sse",
    "groq",
    200,
    "200 upstream_error",
    /^We need to call the tool with invalid parameters/,
  ],
  // The reply was complete, cut for length, before the error came.
  [
    "openrouter-error-with-usage.sse",
    "openrouter",
    200,
    "200 length",
    /^We need to respond to a greeting\. The user$/,
  ],
  ["perplexity-too-many-prompt-tokens-400.json", "generic", 400, "400 context_length_exceeded"],
];

const ERRORS: readonly Case[] = [
  ["gemini/google-429-retry-info.json", "gemini", 429, "503 model_overloaded, in 35 s"],
  ["openai/reasoning-model-legacy-parameter-error.json", "openai", 400, "400 upstream_rejected"],
];

const tokensIn = ({ usage }: Read): string =>
  usage === undefined
    ? ""
    : `${usage.prompt_tokens} ${usage.completion_tokens} ${usage.completion_tokens_details.reasoning_tokens}`;

function contentIn({ message }: Read): string {
  const [call] = message.tool_calls ?? [];
  const called = call ? [call.id, call.function.name, call.function.arguments] : [];
  return [message.reasoning_content, ...called].join(" ");
}

describe("recordings that are easily read wrongly", {
  skip: !existsSync(CASES) && `there are no recordings at ${CASES}`,
}, () => {
  it("every file in the folder has its row in this test", () =>
    assert.deepEqual(
      TABLE.map(([name]) => name),
      readdirSync(CASES).filter(isCase).sort(),
    ));

  for (const [folder, rows] of [
    [CASES, TABLE],
    [RECORDINGS, ERRORS],
  ] as const)
    for (const [name, vendor, status, outcome, content = /^/] of rows)
      inSizes(name, async (t, size) => {
        const text = readFileSync(join(folder, name), "utf8");
        const tools = ["test-tool", "get_something_by_name"];
        const given = await replay(t, { vendor, name, text }, { status, tools, size });
        const { response, error, finish, message } = given;
        const wait = response.headers.get("retry-after");
        const told = error?.code ?? finish;
        assert.equal(`${response.status} ${told}${wait ? `, in ${wait} s` : ""}`, outcome);
        assert.equal(message?.content ?? "", "");
        assert.match(name.endsWith(".json") ? tokensIn(given) : contentIn(given), content);
      });
});
