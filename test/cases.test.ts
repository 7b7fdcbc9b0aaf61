// Recorded traffic that is easily read wrongly: filtered replies, failed tool calls, two replies in
// one stream, errors. Each file is replayed through a running gateway, and what the client gets is
// written down here by hand. The files are kept beside the project, or where CASES says: bodies
// (*.json), streams as they came (*.sse) and streams of which each line is the JSON of one event
// (*.chunks.txt). Where the folder is absent, this is skipped; other tests cover the same shapes,
// and what an alias and the breaker make of them (test/core/routing/content-failures.test.ts).

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { assemble, assertSound, json, readStream } from "./support/gateway.ts";
import { CASES, framed, linesOf, RECORDINGS, replay, SIZES } from "./support/recorded.ts";

interface Case {
  readonly file: string;
  readonly vendor: string;
  /** Of the provider's answer. Absent: 200. */
  readonly status?: number;
  /** Of the client's. Absent: 200. */
  readonly answer?: number;
  readonly error?: string;
  /** In seconds. */
  readonly retryAfter?: string;
  /** Of a stream that breaks off: what came before. */
  readonly reasoning?: RegExp;
  readonly call?: { readonly id: string; readonly name: string; readonly arguments: string };
  readonly finish?: string;
  /** Prompt, completion and reasoning tokens. */
  readonly usage?: readonly number[];
}

const TABLE: readonly Case[] = [
  {
    file: "anthropic-spliced-message-start.chunks.txt",
    vendor: "anthropic",
    error: "upstream_error",
    reasoning: /^I will call the tool\.$/,
    call: { id: "toolu_first", name: "test-tool", arguments: '{"value":"Spark' },
  },
  {
    file: "azure-filtered-reply-without-message.json",
    vendor: "openai",
    finish: "content_filter",
    usage: [15, 19, 0],
  },
  {
    file: "gemini-model-armor-finish.json",
    vendor: "gemini",
    finish: "content_filter",
    usage: [19, 33, 27],
  },
  {
    file: "gemini-model-armor-prompt-blocked.json",
    vendor: "gemini",
    finish: "content_filter",
  },
  {
    file: "groq-tool-use-failed-400.json",
    vendor: "groq",
    status: 400,
    answer: 503,
    error: "upstream_error",
  },
  {
    file: "groq-tool-use-failed.sse",
    vendor: "groq",
    error: "upstream_error",
    reasoning: /^We need to call the tool with invalid parameters/,
  },
  {
    // The reply was finished for its length before the error came.
    file: "openrouter-error-with-usage.sse",
    vendor: "openrouter",
    reasoning: /^We need to respond to a greeting\. The user$/,
    finish: "length",
  },
  {
    file: "perplexity-too-many-prompt-tokens-400.json",
    vendor: "generic",
    status: 400,
    answer: 400,
    error: "context_length_exceeded",
  },
];

/** The errors among the recordings. */
const ERRORS: readonly Case[] = [
  {
    file: "gemini/google-429-retry-info.json",
    vendor: "gemini",
    status: 429,
    answer: 503,
    error: "model_overloaded",
    retryAfter: "35",
  },
  {
    file: "openai/reasoning-model-legacy-parameter-error.json",
    vendor: "openai",
    status: 400,
    answer: 400,
    error: "upstream_rejected",
  },
];

async function assertWhole(response: Response, row: Case): Promise<void> {
  const { error, choices, usage } = await json(response);
  assert.equal(error?.code, row.error);
  assert.equal(response.headers.get("retry-after") ?? undefined, row.retryAfter);
  if (error) return;
  const [{ message, finish_reason }] = choices;
  assert.deepEqual([message.content, finish_reason], ["", row.finish]);
  const { prompt_tokens, completion_tokens, completion_tokens_details } = usage;
  const counts = [prompt_tokens, completion_tokens, completion_tokens_details.reasoning_tokens];
  assert.deepEqual(counts, row.usage ?? counts);
}

async function assertStream(response: Response, row: Case): Promise<void> {
  const { chunks, done, error } = await readStream(response);
  assertSound(chunks, "m", { finished: row.finish !== undefined });
  assert.deepEqual([done, error?.code], [row.error === undefined, row.error]);
  const { message, finish_reason } = assemble(chunks);
  assert.match(message["reasoning_content"], row.reasoning!);
  assert.deepEqual([message["content"] ?? "", finish_reason ?? undefined], ["", row.finish]);
  const calls = (message["tool_calls"] ?? []).map((call: any) => ({
    id: call.id,
    ...call.function,
  }));
  assert.deepEqual(calls, row.call ? [row.call] : []);
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

  const rows = [...TABLE.map((row) => [CASES, row]), ...ERRORS.map((row) => [RECORDINGS, row])];
  for (const [folder, row] of rows as [string, Case][])
    for (const size of SIZES)
      it(`${row.file}${size === Infinity ? "" : `, in pieces of ${size}`}`, async (t) => {
        const { file, vendor, status = 200, answer = 200 } = row;
        const text = readFileSync(join(folder, file), "utf8");
        const { response } = await replay(t, {
          provider: { vendor },
          status,
          text: file.endsWith(".chunks.txt") ? framed(vendor, linesOf(text)) : text,
          size,
          streaming: !file.endsWith(".json"),
          tools: ["test-tool", "get_something_by_name"],
        });
        assert.equal(response.status, answer);
        if (file.endsWith(".json")) await assertWhole(response, row);
        else await assertStream(response, row);
      });
});
