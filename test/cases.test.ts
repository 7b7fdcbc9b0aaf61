// Recorded traffic that is easily read wrongly: filtered replies, failed tool calls, two replies in
// one stream. Each file is replayed through a running gateway, whole and cut at several sizes, and
// what the client gets is written down here by hand. The files are kept beside the project, or
// where CASES says: bodies (*.json), streams as they came (*.sse) and streams of which each line is
// the JSON of one event (*.chunks.txt). Where the folder is absent, this is skipped; other tests
// cover the same shapes.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
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
import { CASES } from "./support/recorded.ts";
import { inPieces, speak, startProvider, type Behaviour } from "./support/provider.ts";

/** The sizes in bytes that each recording is cut at. */
const SIZES = LONG ? [Infinity, 4_096, 100, 7, 1] : [7];

interface Case {
  readonly file: string;
  readonly vendor: string;
  /** Of the provider's answer; absent: 200. */
  readonly status?: number;
  /**
   * What a client gets that asks for this very model; of a stream the text and the thoughts that
   * come before an error.
   */
  readonly named: {
    readonly status: number;
    readonly error?: string;
    readonly content?: string;
    readonly reasoning?: string;
    readonly finish?: string;
    /** Of the tool call that the stream broke off in. */
    readonly call?: { readonly id: string; readonly name: string; readonly arguments: string };
    /** Prompt, completion and reasoning tokens; absent: not what this file is about. */
    readonly usage?: readonly [prompt: number, completion: number, reasoning: number];
  };
  /**
   * The model that a client of the alias gets its answer from, the second being "next"; absent: the
   * same as by name.
   */
  readonly alias?: "next";
  /** The breaker is told of it as a fault of the provider. */
  readonly counted?: true;
}

/** The thoughts in an OpenAI-compatible stream, read without the gateway's decoder. */
const thoughtsIn = (text: string): string =>
  text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)).choices?.[0]?.delta?.reasoning ?? "")
    .join("");

const TABLE: readonly Case[] = [
  {
    file: "anthropic-spliced-message-start.chunks.txt",
    vendor: "anthropic",
    named: {
      status: 200,
      error: "upstream_error",
      reasoning: "I will call the tool.",
      call: { id: "toolu_first", name: "test-tool", arguments: '{"value":"Spark' },
    },
    counted: true,
  },
  {
    file: "azure-filtered-reply-without-message.json",
    vendor: "openai",
    named: { status: 200, content: "", finish: "content_filter", usage: [15, 19, 0] },
  },
  {
    file: "gemini-model-armor-finish.json",
    vendor: "gemini",
    named: { status: 200, content: "", finish: "content_filter", usage: [19, 33, 27] },
  },
  {
    file: "gemini-model-armor-prompt-blocked.json",
    vendor: "gemini",
    named: { status: 200, content: "", finish: "content_filter" },
  },
  {
    file: "groq-tool-use-failed-400.json",
    vendor: "groq",
    status: 400,
    named: { status: 503, error: "upstream_error" },
    alias: "next",
  },
  {
    file: "groq-tool-use-failed.sse",
    vendor: "groq",
    named: { status: 200, error: "upstream_error", reasoning: "(all that came)" },
  },
  {
    file: "openrouter-error-with-usage.sse",
    vendor: "openrouter",
    // The reply was finished for its length before the error came.
    named: {
      status: 200,
      content: "",
      reasoning: "We need to respond to a greeting. The user",
      finish: "length",
    },
  },
  {
    file: "perplexity-too-many-prompt-tokens-400.json",
    vendor: "generic",
    status: 400,
    named: { status: 400, error: "context_length_exceeded" },
    alias: "next",
  },
];

/** The recorded bytes, in pieces of `size`, each a write of its own. */
function replayed({ file, status = 200 }: Case, size: number): Behaviour {
  const text = readFileSync(join(CASES, file), "utf8");
  const isBody = file.endsWith(".json");
  const framed = (line: string) => `event: ${JSON.parse(line).type}\ndata: ${line}\n\n`;
  const lines = text.split("\n").filter((line) => line !== "");
  const bytes = file.endsWith(".chunks.txt") ? lines.map(framed).join("") : text;
  return inPieces(status, isBody ? "application/json" : "text/event-stream", bytes, size);
}

/** The model "m", which answers with the recording, and the alias "both" for it and then "next". */
async function bench(t: TestContext, row: Case, size: number) {
  const provider = await startProvider(t, replayed(row, size));
  const other = await startProvider(t, { next: speak("Rescued.") });
  const config = configFor(other.url, ["next"], {
    providers: { recorded: { vendor: row.vendor, base_url: provider.url, api_key: "sk-secret" } },
    models: { m: { provider: "recorded", reasoning: true } },
    aliases: { both: { models: ["m", "next"] } },
    retry: { max_retries: 0 },
  });
  const gateway = await startGateway(t, config);
  const tool = (name: string) => ({
    type: "function",
    function: { name, parameters: { type: "object" } },
  });
  const ask = (model: string) =>
    gateway.chat({
      model,
      messages: user("hi"),
      thinking: { type: "enabled" },
      tools: [tool("test-tool"), tool("get_something_by_name")],
      tool_choice: "auto",
      ...(!row.file.endsWith(".json") && {
        stream: true,
        stream_options: { include_usage: true },
      }),
    });
  const lastFault = async () => {
    const { models } = await json(await fetch(`${gateway.gateway.adminAddress()}/status`));
    return models.find((each: any) => each.model === "m").breaker.last_fault;
  };
  return { ask, lastFault, asked: provider.asked, others: other.asked };
}

/** Asserts that the client gets what the table says. */
async function assertAnswer(response: Response, { file, named }: Case): Promise<void> {
  assert.equal(response.status, named.status);
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    const { error, choices, usage } = await json(response);
    assert.equal(error?.code, named.error);
    if (error) return;
    assert.deepEqual(
      [choices[0].message.content, choices[0].finish_reason],
      [named.content, named.finish],
    );
    assertUsage(usage, named.usage);
    return;
  }
  const { chunks, done, error } = await readStream(response);
  assertSound(chunks, "m", { finished: named.finish !== undefined });
  assert.deepEqual([done, error?.code], [named.error === undefined, named.error]);
  const { message, finish_reason } = assemble(chunks);
  const text = readFileSync(join(CASES, file), "utf8");
  const reasoning = file.startsWith("groq") ? thoughtsIn(text) : named.reasoning;
  assert.deepEqual(
    [message["content"] ?? "", message["reasoning_content"], finish_reason],
    [named.content ?? "", reasoning, named.finish ?? null],
  );
  const calls = (message["tool_calls"] ?? []).map((call: any) => ({
    id: call.id,
    ...call.function,
  }));
  assert.deepEqual(calls, named.call ? [named.call] : []);
  if (done) assertUsage(chunks.at(-1)!.usage, named.usage);
}

function assertUsage(usage: any, expected: Case["named"]["usage"]): void {
  if (expected === undefined) return;
  const [prompt, completion, reasoning] = expected;
  assert.deepEqual(
    [
      usage.prompt_tokens,
      usage.completion_tokens,
      usage.total_tokens,
      usage.completion_tokens_details.reasoning_tokens,
    ],
    [prompt, completion, prompt + completion, reasoning],
  );
}

const skip = !existsSync(CASES) && `there are no recordings at ${CASES}`;

describe("recordings that are easily read wrongly", { skip, concurrency: 2 }, () => {
  it("every file in the folder has its row in this test", () => {
    const files = readdirSync(CASES).filter((name) => /\.(json|sse|chunks\.txt)$/.test(name));
    assert.deepEqual(
      TABLE.map(({ file }) => file),
      files.sort(),
    );
  });

  for (const row of TABLE) {
    for (const size of SIZES) {
      it(`${row.file}${size === Infinity ? "" : `, in pieces of ${size}`}`, async (t) => {
        const { ask, lastFault, asked, others } = await bench(t, row, size);
        await assertAnswer(await ask("m"), row);
        assert.deepEqual([asked.length, others.length], [1, 0]);

        const shared = await ask("both");
        if (row.alias === undefined) await assertAnswer(shared, row);
        else assert.equal((await json(shared)).model, row.alias);
        assert.deepEqual(
          [asked.length, others.length],
          [2, row.alias === undefined ? 0 : 1],
          "how often each provider was asked",
        );
        if (row.counted) assert.match(await lastFault(), /^upstream_error/);
        else assert.equal(await lastFault(), null, "the breaker was told of no fault");
      });
    }
  }
});
