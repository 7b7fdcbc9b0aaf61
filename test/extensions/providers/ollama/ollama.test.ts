// Ollama's own API through the gateway: the request, and the reading of JSON lines.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { jsonLines } from "../../../../src/extensions/providers/ollama/json-lines.ts";
import { checkConfig } from "../../../support/config.ts";
import {
  assemble,
  configFor,
  json,
  readStream,
  user,
  startGateway,
} from "../../../support/gateway.ts";
import { status, type Behaviour, startProvider } from "../../../support/provider.ts";
import { issueLines } from "../../../support/token-service.ts";
import { calling, callOf, resultOf } from "../dialect-bench.ts";

const CALL = { function: { name: "look", arguments: { at: 1 } } };
const COUNTS = { prompt_eval_count: 9, prompt_eval_cached_count: 5, eval_count: 4 };
const FIGURES = { done: true, done_reason: "stop", ...COUNTS };
const REPLY = {
  message: { role: "assistant", thinking: "Hm.", content: "Grüße.", tool_calls: [CALL] },
  ...FIGURES,
};
const LINES = [
  { message: { role: "assistant", thinking: "H", content: "" }, done: false },
  { message: { role: "assistant", thinking: "m.", content: "" }, done: false },
  { message: { role: "assistant", content: "Grü" }, done: false },
  { message: { role: "assistant", content: "ße.", tool_calls: [CALL] }, done: false },
  { message: { role: "assistant", content: "" }, ...FIGURES },
].map((line) => `${JSON.stringify(line)}\n`);

const ON = { thinking: { type: "enabled" } };

const lines =
  (...texts: readonly string[]): Behaviour =>
  ({ res }) => {
    res.writeHead(200, { "content-type": "application/x-ndjson" });
    res.end(texts.join(""));
  };

async function start(
  t: TestContext,
  behaviour: Behaviour = status(200, REPLY),
  model: object = {},
) {
  const provider = await startProvider(t, behaviour);
  const config = configFor(provider.url, [], {
    providers: { local: { vendor: "ollama", base_url: provider.url } },
    models: { m: { provider: "local", reasoning: true, context_tokens: 32_768, ...model } },
  });
  return { provider, ...(await startGateway(t, config)) };
}

describe("a request to Ollama", () => {
  /** Ollama's request for these fields. */
  async function askedFor(t: TestContext, fields: object, model?: object) {
    const { provider, chat } = await start(t, undefined, model);
    await chat({ model: "m", messages: user("hi"), ...fields });
    return provider.asked[0]!;
  }

  it("has the window, the parameters, images, and calls without ids", async (t) => {
    const text = (words: string) => ({ type: "text", text: words });
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } };
    const look = { name: "look", parameters: { type: "object" } };
    const tools = [{ type: "function", function: look }];
    const parameters = { ...look.parameters, properties: {} };
    const same = { stop: ["END"], seed: 3, temperature: 0.5 };
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: [text("What?"), image, text("One word.")] },
      calling(callOf("c1", "look", '{"at":1}')),
      resultOf("c1", "A cat."),
    ];
    const fields = { messages, tools, tool_choice: "auto", max_tokens: 50, ...same };
    const supports = ["tools", "images", "json_schema"];
    const { path, headers, body } = await askedFor(t, { ...fields, ...ON }, { supports });
    assert.deepEqual([path, headers.authorization], ["/api/chat", undefined]);
    assert.deepEqual(body, {
      model: "m",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "What?\nOne word.", images: ["aGk="] },
        { role: "assistant", content: "", tool_calls: [CALL] },
        { role: "tool", content: "A cat.", tool_name: "look" },
      ],
      stream: false,
      tools: [{ type: "function", function: { ...look, parameters } }],
      think: true,
      truncate: false,
      shift: false,
      options: { num_ctx: 32_768, num_predict: 50, top_p: 1, ...same },
    });
  });

  it("sends results directly after their calls, because Ollama matches them only by position", async (t) => {
    const turn = calling(callOf("c1"), callOf("c2"));
    const results = [resultOf("c2", "of c2"), resultOf("c1", "of c1")];
    const messages = [...user("hi"), turn, ...results, ...user("So?")];
    const { body } = await askedFor(t, { messages });
    const contents = body["messages"].map(({ content }: { content: string }) => content);
    assert.deepEqual(contents, ["hi", "", "of c1", "of c2", "So?"]);
  });

  const GPT = { efforts: ["low", "medium", "high"], thinking_off: false };
  const schema = { type: "object", properties: {} };
  const json_schema = { name: "x", schema };
  const toolsWith = (any: unknown) => [
    { type: "function", function: { name: "f", parameters: { ...schema, properties: { any } } } },
  ];
  for (const [fields, field, sent, model] of [
    [{}, "think", false],
    [{ reasoning_effort: "high" }, "think", "high", GPT],
    [{}, "think", undefined, GPT],
    [{ response_format: { type: "json_object" } }, "format", "json"],
    [{ response_format: { type: "json_schema", json_schema } }, "format", schema],
    [{ tools: toolsWith(true), tool_choice: "auto" }, "tools", toolsWith({})],
  ] as const)
    it(`has ${field} for ${JSON.stringify([fields, model])}`, async (t) =>
      assert.deepEqual((await askedFor(t, fields, model)).body[field], sent));
});

const ASKED = { model: "m", messages: user("hi"), ...ON };

it("a reply of Ollama is the same whole and streamed, except for the ids of calls", async (t) => {
  const { chat } = await start(t, (asked) =>
    (asked.body["stream"] ? lines(...LINES) : status(200, REPLY))(asked),
  );
  const { choices, usage } = await json(await chat(ASKED));
  const streaming = { stream: true, stream_options: { include_usage: true } };
  const { chunks, done } = await readStream(await chat({ ...ASKED, ...streaming }));
  assert.equal(done, true);
  assert.deepEqual(usage, makeUsage({ prompt: 9, completion: 4, cacheHit: 5, reasoning: 0 }));
  assert.deepEqual(chunks.at(-1)!.usage, usage);
  const calls = { name: "look", arguments: '{"at":1}' };
  for (const { message, finish_reason } of [choices[0], assemble(chunks)]) {
    const {
      tool_calls: [call, ...more],
      ...texts
    } = message;
    assert.deepEqual(texts, { role: "assistant", content: "Grüße.", reasoning_content: "Hm." });
    assert.match(call.id, /^call_/);
    assert.deepEqual([call.function, more, finish_reason], [calls, [], "tool_calls"]);
  }
});

it("a reply of Ollama that breaks off, or has an error in a line, is an error", async (t) => {
  for (const texts of [LINES.slice(0, 3), [...LINES.slice(0, 3), '{"error":"out of memory"}\n']]) {
    const { chat } = await start(t, lines(...texts));
    const { done, error } = await readStream(await chat({ ...ASKED, stream: true }));
    assert.deepEqual([done, error?.code], [false, "upstream_error"]);
  }
});

it("lines of JSON are read the same however their bytes are split", () => {
  const bytes = Buffer.from(`${LINES.join("")}\n{"last":1}`);
  const expected = [...LINES.map((line) => line.trim()), '{"last":1}'];
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const reader = jsonLines.createReader();
    const events = [...reader.push(bytes.subarray(0, cut)), ...reader.push(bytes.subarray(cut))];
    assert.deepEqual([...events, ...reader.end()], expected, `cut at ${cut}`);
  }
});

it("lines of JSON have a size limit", () => {
  const reader = jsonLines.createReader();
  const piece = Buffer.alloc(8 * 1024 * 1024, "x");
  reader.push(piece);
  reader.push(piece);
  assert.throws(() => reader.push(Buffer.from("x")), /a line of more than 16777216 characters/);
});

it("the vendor ollama takes an address without a path, and the compatible API on request", () => {
  const checked = (providers: object) => checkConfig({ providers, models: {} });
  const base_url = "http://127.0.0.1:11434/v1";
  assert.deepEqual(
    issueLines(() => checked({ o: { vendor: "ollama", base_url } })),
    ["providers.o.base_url: must not end in /v1: /api/chat is appended to it"],
  );
  const { providers } = checked({
    o: { vendor: "ollama", dialect: "openai" },
    n: { vendor: "ollama" },
  });
  const [o, n] = [providers.get("o")!, providers.get("n")!];
  assert.deepEqual([o.dialect, o.base_url], ["openai", base_url]);
  assert.deepEqual([n.dialect, n.base_url], ["ollama", "http://127.0.0.1:11434"]);
});
