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
  /** What the client gets: the status, then the code of the error or the reason of the end. */
  readonly outcome: string;
  /** The thoughts and calls of a stream, or the tokens of prompt, completion and reasoning. */
  readonly content?: RegExp;
}

const TABLE: readonly Case[] = [
  {
    file: "anthropic-spliced-message-start.chunks.txt",
    vendor: "anthropic",
    outcome: "200 upstream_error",
    content: /^I will call the tool\. toolu_first test-tool \{"value":"Spark$/,
  },
  {
    file: "azure-filtered-reply-without-message.json",
    vendor: "openai",
    outcome: "200 content_filter",
    content: /^15 19 0$/,
  },
  {
    file: "gemini-model-armor-finish.json",
    vendor: "gemini",
    outcome: "200 content_filter",
    content: /^19 33 27$/,
  },
  {
    file: "gemini-model-armor-prompt-blocked.json",
    vendor: "gemini",
    outcome: "200 content_filter",
  },
  {
    file: "groq-tool-use-failed-400.json",
    vendor: "groq",
    status: 400,
    outcome: "503 upstream_error",
  },
  {
    file: "groq-tool-use-failed.sse",
    vendor: "groq",
    outcome: "200 upstream_error",
    content: /^We need to call the tool with invalid parameters/,
  },
  {
    // The reply was finished for its length before the error came.
    file: "openrouter-error-with-usage.sse",
    vendor: "openrouter",
    outcome: "200 length",
    content: /^We need to respond to a greeting\. The user$/,
  },
  {
    file: "perplexity-too-many-prompt-tokens-400.json",
    vendor: "generic",
    status: 400,
    outcome: "400 context_length_exceeded",
  },
];

/** The errors among the recordings. */
const ERRORS: readonly Case[] = [
  {
    file: "gemini/google-429-retry-info.json",
    vendor: "gemini",
    status: 429,
    outcome: "503 model_overloaded, in 35 s",
  },
  {
    file: "openai/reasoning-model-legacy-parameter-error.json",
    vendor: "openai",
    status: 400,
    outcome: "400 upstream_rejected",
  },
];

async function readWhole(response: Response) {
  const { error, choices, usage } = await json(response);
  const wait = response.headers.get("retry-after");
  if (error) return { outcome: wait ? `${error.code}, in ${wait} s` : error.code, content: "" };
  const [{ message, finish_reason }] = choices;
  assert.equal(message.content, "");
  const { prompt_tokens, completion_tokens, completion_tokens_details } = usage;
  const counts = [prompt_tokens, completion_tokens, completion_tokens_details.reasoning_tokens];
  return { outcome: finish_reason, content: counts.join(" ") };
}

async function readStreamed(response: Response) {
  const { chunks, done, error } = await readStream(response);
  const { message, finish_reason } = assemble(chunks);
  assertSound(chunks, "m", { finished: finish_reason !== null });
  assert.deepEqual([done, message["content"] ?? ""], [error === undefined, ""]);
  const [call] = message["tool_calls"] ?? [];
  const { name, arguments: args } = call?.function ?? {};
  const content = [message["reasoning_content"], ...(call ? [call.id, name, args] : [])].join(" ");
  return { outcome: error?.code ?? finish_reason, content };
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
        const { file, vendor, status = 200, outcome, content = /^/ } = row;
        const text = readFileSync(join(folder, file), "utf8");
        const { response } = await replay(t, {
          provider: { vendor },
          status,
          text: file.endsWith(".chunks.txt") ? framed(vendor, linesOf(text)) : text,
          size,
          streaming: !file.endsWith(".json"),
          tools: ["test-tool", "get_something_by_name"],
        });
        const read = await (file.endsWith(".json") ? readWhole : readStreamed)(response);
        assert.equal(`${response.status} ${read.outcome}`, outcome);
        assert.match(read.content, content);
      });
});
