// Recorded replies of real providers, replayed through a running gateway: the client gets what the
// recording says. The recordings are kept beside the project, or where RECORDINGS says: a folder
// for each vendor, in it whole bodies (*.json) and streams (*.chunks.txt, each line the JSON of one
// event). What they say is read by support/recording.ts, not by the gateway's dialects. What
// clients are told of recorded errors is written down in cases.test.ts.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { completionShape } from "./support/shapes.ts";
import { assemble, assertSound, json, readStream } from "./support/gateway.ts";
import { framed, linesOf, noRecordings, RECORDINGS, replay, SIZES } from "./support/recorded.ts";
import { readReply, type Call, type Reply } from "./support/recording.ts";

/** Folders of other names are read as OpenAI-compatible traffic. */
const VENDORS = [
  ...["openai", "deepseek", "mistral", "groq", "openrouter", "vllm", "sglang", "llama.cpp"],
  ...["ollama", "qwen", "moonshot", "zhipu", "xai", "anthropic", "gemini"],
];

/** Where each dialect is to be called, seen from base_url. */
function pathOf(folder: string, streamed: boolean): RegExp {
  if (folder === "anthropic") return /^\/v1\/messages$/;
  if (folder === "gemini")
    return streamed
      ? /^\/v1beta\/models\/m:streamGenerateContent\?alt=sse$/
      : /^\/v1beta\/models\/m:generateContent$/;
  return /^\/chat\/completions$/;
}

function assertCalls(given: readonly any[], recorded: readonly Call[]): void {
  assert.deepEqual(
    given.map((call) => call.function.name),
    recorded.map(({ name }) => name),
  );
  given.forEach((call, index) => {
    const { id, args } = recorded[index]!;
    if (id) assert.equal(call.id, id);
    if (typeof args === "string") assert.equal(call.function.arguments, args);
    else assert.deepEqual(JSON.parse(call.function.arguments), args);
  });
  assert.equal(
    new Set(given.map(({ id }) => id)).size,
    given.length,
    "every call has an id of its own",
  );
}

function assertMessage(message: any, recorded: Reply): void {
  assert.equal(message.role, "assistant");
  assert.equal(message.content ?? "", recorded.text);
  assert.equal(message.reasoning_content ?? "", recorded.thinking);
  assert.equal(message.refusal ?? "", recorded.refusal);
  assertCalls(message.tool_calls ?? [], recorded.calls);
}

/** The recorded figures; where there are none, figures that fit together. */
function assertUsage(usage: any, recorded: Reply, accessLine: Record<string, unknown>): void {
  if (recorded.usage !== undefined) assert.deepEqual(usage, recorded.usage);
  assert.equal(usage.prompt_cache_hit_tokens + usage.prompt_cache_miss_tokens, usage.prompt_tokens);
  assert.equal(usage.prompt_tokens + usage.completion_tokens, usage.total_tokens);
  assert.equal(accessLine["usage_source"], recorded.usage === undefined ? "estimated" : undefined);
}

/** A whole reply; its message, finish and figures. */
async function readWhole(response: Response, { finish }: Reply) {
  const given = await json(response);
  if (finish === undefined || finish === "failed") {
    assert.deepEqual([response.status, given.error?.code], [503, "upstream_error"]);
    return undefined;
  }
  assert.equal(response.status, 200, JSON.stringify(given));
  completionShape(given);
  assert.match(given.id, /^chatcmpl-[0-9a-f]{32}$/);
  assert.deepEqual([given.object, given.model, given.choices.length], ["chat.completion", "m", 1]);
  const [{ message, finish_reason }] = given.choices;
  return { message, finish_reason, usage: given.usage };
}

/** The same of a stream, whose form is checked. */
async function readStreamed(response: Response, { finish, text, thinking, calls }: Reply) {
  assert.equal(response.status, 200);
  const { chunks, done, error } = await readStream(response);
  const { message, finish_reason } = assemble(chunks);
  if (finish === undefined || finish === "failed") {
    assertSound(chunks, "m", { finished: false });
    const shown = [message["content"] ?? "", message["reasoning_content"] ?? ""];
    assert.deepEqual([done, error?.code, shown], [false, "upstream_error", [text, thinking]]);
    return undefined;
  }
  assert.ok(done, JSON.stringify(error));
  assertSound(chunks, "m");
  const fragments = chunks.flatMap(({ choices }) =>
    choices.flatMap(({ delta }) => delta["tool_calls"] ?? []),
  );
  const begun = fragments.filter(
    (fragment) => "id" in fragment || "type" in fragment || "name" in fragment.function,
  );
  assert.deepEqual(
    begun.map(({ index, type }) => [index, type]),
    calls.map((_, index) => [index, "function"]),
  );
  const counted = chunks.filter(({ usage }) => usage !== null);
  assert.deepEqual(
    counted.map((chunk) => [chunks.indexOf(chunk), chunk.choices]),
    [[chunks.length - 1, []]],
  );
  return { message, finish_reason, usage: counted[0]!.usage };
}

async function assertReplayed(t: TestContext, folder: string, name: string, size: number) {
  const recording = readFileSync(join(RECORDINGS, folder, name), "utf8");
  const streaming = name.endsWith(".chunks.txt");
  const lines = linesOf(recording);
  const events = streaming ? lines.map((line) => JSON.parse(line)) : [JSON.parse(recording)];
  const recorded = readReply(folder, events);
  const { response, gateway, paths } = await replay(t, {
    provider: VENDORS.includes(folder) ? { vendor: folder } : { dialect: "openai" },
    text: streaming ? framed(folder, lines) : recording,
    size,
    streaming,
    tools: [...new Set(recorded.calls.map(({ name }) => name))],
  });
  assert.match(paths.join(" "), pathOf(folder, streaming));
  const read = await (streaming ? readStreamed : readWhole)(response, recorded);
  if (!read) return;
  assertMessage(read.message, recorded);
  assert.equal(read.finish_reason, recorded.finish);
  const line = await gateway.accessOf(response.headers.get("x-request-id")!);
  assertUsage(read.usage, recorded, line);
}

const folders = noRecordings
  ? []
  : readdirSync(RECORDINGS, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
const isError = (path: string): boolean => "error" in JSON.parse(readFileSync(path, "utf8"));
const recordings = folders.flatMap((folder) =>
  readdirSync(join(RECORDINGS, folder))
    .filter((name) => name.endsWith(".chunks.txt") || name.endsWith(".json"))
    .filter((name) => !name.endsWith(".json") || !isError(join(RECORDINGS, folder, name)))
    .map((name) => [folder, name] as const),
);

describe("recordings", { skip: noRecordings }, () => {
  it("are there", () =>
    assert.ok(recordings.length > 0, `there is nothing to replay in ${RECORDINGS}`));

  for (const [folder, name] of recordings)
    for (const size of SIZES)
      it(`${folder}/${name}${size === Infinity ? "" : `, in pieces of ${size}`}`, (t) =>
        assertReplayed(t, folder, name, size));
});
