// Recorded traffic of real providers, replayed through a running gateway: the client gets what the
// recording says. The recordings are kept beside the project, or where RECORDINGS says: a folder
// for each vendor, in it whole bodies (*.json) and streams (*.chunks.txt, each line the JSON of one
// event). What they say is read by support/recording.ts, not by the gateway's dialects.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { LONG } from "./support/long.ts";
import { completionShape } from "./support/shapes.ts";
import {
  assemble,
  assertSound,
  configFor,
  json,
  readStream,
  startGateway,
  user,
} from "./support/gateway.ts";
import { inPieces, startProvider } from "./support/provider.ts";
import { RECORDINGS } from "./support/recorded.ts";
import { readRefusal, readReply, type Call, type Reply } from "./support/recording.ts";

const PIECES = LONG ? [Infinity, 1_000, 7, 1] : [7];

/** Folders of other names are read as OpenAI-compatible traffic. */
const VENDORS = [
  ...["openai", "deepseek", "mistral", "groq", "openrouter", "vllm", "sglang", "llama.cpp"],
  ...["ollama", "qwen", "moonshot", "zhipu", "xai", "anthropic", "gemini"],
];
/** How the provider whose traffic lies in this folder is configured. */
const providerOf = (folder: string, url: string): object => ({
  ...(VENDORS.includes(folder) ? { vendor: folder } : { dialect: "openai" }),
  base_url: url,
  api_key: "sk-provider-secret",
});

/** Where each dialect is to be called, seen from base_url. */
function pathOf(folder: string, streamed: boolean): RegExp {
  if (folder === "anthropic") return /^\/v1\/messages$/;
  if (folder === "gemini")
    return streamed
      ? /^\/v1beta\/models\/m:streamGenerateContent\?alt=sse$/
      : /^\/v1beta\/models\/m:generateContent$/;
  return /^\/chat\/completions$/;
}

const linesOf = (text: string): string[] =>
  text.split(/\r?\n/).filter((line) => line.trim() !== "");

/** The bytes of a stream of these events, as the vendor frames them. */
function framed(folder: string, lines: readonly string[]): string {
  const named = (line: string) =>
    folder === "anthropic" ? `event: ${JSON.parse(line).type}\n` : "";
  const events = lines.map((line) => `${named(line)}data: ${line}\n\n`).join("");
  return ["anthropic", "gemini"].includes(folder) ? events : `${events}data: [DONE]\n\n`;
}

interface Recorded {
  /** Absent: 200. */
  readonly status?: number;
  readonly mediaType: string;
  readonly text: string;
  /** Of the pieces, in bytes. */
  readonly size: number;
}

/** What a client gets that asks for thinking and has the tools that the recording calls. */
async function replay(
  t: TestContext,
  folder: string,
  { status = 200, mediaType, text, size }: Recorded,
  { streaming, calls = [] }: { readonly streaming: boolean; readonly calls?: readonly Call[] },
) {
  const { url, asked } = await startProvider(t, inPieces(status, mediaType, text, size));
  const gateway = await startGateway(
    t,
    configFor(url, ["m"], {
      providers: { recorded: providerOf(folder, url) },
      models: { m: { provider: "recorded" } },
      timeouts: { first_token_ms: 60_000, total_ms: 120_000 },
    }),
  );
  const tools = [...new Set(calls.map(({ name }) => name))].map((name) => ({
    type: "function",
    function: { name, parameters: { type: "object" } },
  }));
  const response = await gateway.chat({
    model: "m",
    messages: user("Say what you said."),
    thinking: { type: "enabled" },
    ...(tools.length > 0 && { tools, tool_choice: "auto" }),
    ...(streaming && { stream: true, stream_options: { include_usage: true } }),
  });
  return { response, gateway, paths: asked.map(({ path }) => path) };
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

async function assertWhole(
  t: TestContext,
  folder: string,
  text: string,
  size: number,
): Promise<void> {
  const recorded = readReply(folder, [JSON.parse(text)]);
  const { response, gateway, paths } = await replay(
    t,
    folder,
    { mediaType: "application/json", text, size },
    { streaming: false, calls: recorded.calls },
  );
  const given = await json(response);
  assert.match(paths.join(" "), pathOf(folder, false));
  if (recorded.finish === undefined || recorded.finish === "failed") {
    assert.deepEqual([response.status, given.error?.code], [503, "upstream_error"]);
    return;
  }
  assert.equal(response.status, 200, JSON.stringify(given));
  completionShape(given);
  assert.match(given.id, /^chatcmpl-[0-9a-f]{32}$/);
  assert.deepEqual([given.object, given.model, given.choices.length], ["chat.completion", "m", 1]);
  assertMessage(given.choices[0].message, recorded);
  assert.equal(given.choices[0].finish_reason, recorded.finish);
  assertUsage(given.usage, recorded, await gateway.accessOf(response.headers.get("x-request-id")!));
}

async function assertStreamed(
  t: TestContext,
  folder: string,
  text: string,
  size: number,
): Promise<void> {
  const lines = linesOf(text);
  const recorded = readReply(
    folder,
    lines.map((line) => JSON.parse(line)),
  );
  const { response, gateway, paths } = await replay(
    t,
    folder,
    { mediaType: "text/event-stream", text: framed(folder, lines), size },
    { streaming: true, calls: recorded.calls },
  );
  assert.match(paths.join(" "), pathOf(folder, true));
  if (recorded.finish === undefined || recorded.finish === "failed") {
    const told = lines
      .map((line) => readRefusal(JSON.parse(line))?.told)
      .find((each) => each !== undefined) ?? { status: 503, code: "upstream_error" };
    if (response.status !== 200) {
      assert.equal(
        recorded.text + recorded.thinking,
        "",
        "what had come until it broke off was not shown",
      );
      assert.deepEqual(
        [response.status, (await json(response)).error.code],
        [told.status, told.code],
      );
      return;
    }
    const { chunks, done, error } = await readStream(response);
    assertSound(chunks, "m", { finished: false });
    const { message } = assemble(chunks);
    assert.deepEqual(
      [message["content"] ?? "", message["reasoning_content"] ?? ""],
      [recorded.text, recorded.thinking],
    );
    assert.deepEqual([done, error?.code], [false, told.code]);
    return;
  }
  assert.equal(response.status, 200);
  const { chunks, done, error } = await readStream(response);
  assert.ok(done, JSON.stringify(error));
  assertSound(chunks, "m");
  const { message, finish_reason } = assemble(chunks);
  assertMessage(message, recorded);
  assert.equal(finish_reason, recorded.finish);
  const fragments = chunks.flatMap(({ choices }) =>
    choices.flatMap(({ delta }) => delta["tool_calls"] ?? []),
  );
  const begun = fragments.filter(
    (fragment) => "id" in fragment || "type" in fragment || "name" in fragment.function,
  );
  assert.deepEqual(
    begun.map(({ index, type }) => [index, type]),
    recorded.calls.map((_, index) => [index, "function"]),
  );
  const counted = chunks.filter(({ usage }) => usage !== null);
  assert.deepEqual(
    counted.map((chunk) => [chunks.indexOf(chunk), chunk.choices]),
    [[chunks.length - 1, []]],
  );
  assertUsage(
    counted[0]!.usage,
    recorded,
    await gateway.accessOf(response.headers.get("x-request-id")!),
  );
}

async function assertRefused(
  t: TestContext,
  folder: string,
  text: string,
  size: number,
): Promise<void> {
  const recorded = readRefusal(JSON.parse(text))!;
  for (const streaming of [false, true]) {
    const { response, paths } = await replay(
      t,
      folder,
      { status: recorded.status, mediaType: "application/json", text, size },
      { streaming },
    );
    assert.match(paths.join(" "), pathOf(folder, streaming));
    const { error } = await json(response);
    assert.deepEqual([response.status, error.code], [recorded.told.status, recorded.told.code]);
    assert.equal(
      error.type,
      response.status === 400 ? "invalid_request_error" : "service_unavailable_error",
    );
    for (const word of recorded.words)
      assert.ok(!error.message.includes(word), `the client reads ${JSON.stringify(word)}`);
    if (error.code !== "model_overloaded") continue;
    const seconds = response.headers.get("retry-after") ?? "none";
    assert.match(seconds, /^([1-9]|[1-5]\d|60)$/);
    if (recorded.retryAfter !== undefined) assert.equal(seconds, String(recorded.retryAfter));
    assert.ok(error.message.includes(`Retry after ${seconds} seconds`), error.message);
  }
}

const skip = !existsSync(RECORDINGS) && `there are no recordings at ${RECORDINGS}`;
const folders = skip
  ? []
  : readdirSync(RECORDINGS, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
const recordings = folders.flatMap((folder) =>
  readdirSync(join(RECORDINGS, folder))
    .filter((name) => /\.json$|\.chunks\.txt$/.test(name))
    .map((name) => [folder, name] as const),
);

describe("recordings", { skip }, () => {
  it("are there", () =>
    assert.ok(recordings.length > 0, `there is nothing to replay in ${RECORDINGS}`));

  for (const [folder, name] of recordings) {
    for (const size of PIECES) {
      it(`${folder}/${name}${size === Infinity ? "" : `, in pieces of ${size}`}`, async (t) => {
        const text = readFileSync(join(RECORDINGS, folder, name), "utf8");
        if (name.endsWith(".chunks.txt")) await assertStreamed(t, folder, text, size);
        else if (readRefusal(JSON.parse(text)) !== undefined)
          await assertRefused(t, folder, text, size);
        else await assertWhole(t, folder, text, size);
      });
    }
  }
});
