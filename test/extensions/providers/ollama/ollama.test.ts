// Ollama by its own API, through the gateway: what goes out, and what lines of JSON become.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
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
const FIGURES = { done: true, done_reason: "stop", prompt_eval_count: 9, eval_count: 4 };
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
  it("has the window, the parameters, images, and calls without ids", async (t) => {
    const { provider, chat } = await start(t, status(200, REPLY), {
      supports: ["tools", "images", "json_schema"],
    });
    const image_url = { url: "data:image/png;base64,aGk=" };
    const tools = [
      { type: "function", function: { name: "look", parameters: { type: "object" } } },
    ];
    await chat({
      model: "m",
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What?" },
            { type: "image_url", image_url },
            { type: "text", text: "One word." },
          ],
        },
        calling(callOf("c1", "look", '{"at":1}')),
        resultOf("c1", "A cat."),
      ],
      tools,
      tool_choice: "auto",
      max_tokens: 50,
      temperature: 0.5,
      stop: ["END"],
      seed: 3,
      thinking: { type: "enabled" },
    });
    const [asked] = provider.asked;
    assert.equal(asked!.path, "/api/chat");
    assert.equal(asked!.headers.authorization, undefined);
    assert.deepEqual(asked!.body, {
      model: "m",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "What?\nOne word.", images: ["aGk="] },
        { role: "assistant", content: "", tool_calls: [CALL] },
        { role: "tool", content: "A cat.", tool_name: "look" },
      ],
      stream: false,
      tools,
      think: true,
      options: {
        ...{ num_ctx: 32_768, num_predict: 50, stop: ["END"], seed: 3 },
        ...{ temperature: 0.5, top_p: 1 },
      },
    });
  });

  it("sends results where their calls stand: it knows them by nothing else", async (t) => {
    const { provider, chat } = await start(t);
    const turn = calling(callOf("c1"), callOf("c2"));
    const results = [resultOf("c2", "of c2"), resultOf("c1", "of c1")];
    await chat({ model: "m", messages: [...user("hi"), turn, ...results, ...user("So?")] });
    const { messages } = provider.asked[0]!.body;
    assert.deepEqual(
      messages.map(({ content }: { content: string }) => content),
      ["hi", "", "of c1", "of c2", "So?"],
    );
  });

  it("switches thinking off unless it was asked for, and knows depths where a model has some", async (t) => {
    const gpt = { efforts: ["low", "medium", "high"], thinking_off: false };
    for (const [model, fields, think] of [
      [{}, {}, false],
      [gpt, { reasoning_effort: "high" }, "high"],
      [gpt, {}, undefined],
    ] as const) {
      const { provider, chat } = await start(t, undefined, model);
      await chat({ model: "m", messages: user("hi"), ...fields });
      assert.equal(provider.asked[0]!.body["think"], think);
    }
  });

  it("asks for JSON, or for JSON of a schema", async (t) => {
    const { provider, chat } = await start(t);
    const schema = { type: "object", properties: {} };
    const named = { type: "json_schema", json_schema: { name: "x", schema } };
    for (const response_format of [{ type: "json_object" }, named])
      await chat({ model: "m", messages: user("hi"), response_format });
    assert.deepEqual(
      provider.asked.map(({ body }) => body["format"]),
      ["json", schema],
    );
  });
});

describe("a reply of Ollama", () => {
  const ASKED = { model: "m", messages: user("hi"), thinking: { type: "enabled" } };

  it("is the same whole and streamed, but for the ids of calls", async (t) => {
    const { chat } = await start(t, (asked) =>
      (asked.body["stream"] ? lines(...LINES) : status(200, REPLY))(asked),
    );
    const whole = (await json(await chat(ASKED))) as Record<string, any>;
    const { chunks, done } = await readStream(
      await chat({ ...ASKED, stream: true, stream_options: { include_usage: true } }),
    );
    assert.equal(done, true);
    const streamed = assemble(chunks);
    for (const [message, finish, usage] of [
      [whole["choices"][0].message, whole["choices"][0].finish_reason, whole["usage"]],
      [streamed.message, streamed.finish_reason, chunks.at(-1)!.usage],
    ]) {
      const { tool_calls: calls, ...texts } = message;
      assert.deepEqual(texts, { role: "assistant", content: "Grüße.", reasoning_content: "Hm." });
      assert.match(calls[0].id, /^call_/);
      assert.deepEqual(calls[0].function, { name: "look", arguments: '{"at":1}' });
      assert.deepEqual(
        [finish, usage.prompt_tokens, usage.completion_tokens],
        ["tool_calls", 9, 4],
      );
    }
  });

  it("that breaks off, or has an error in a line, is an error", async (t) => {
    for (const texts of [
      LINES.slice(0, 3),
      [...LINES.slice(0, 3), '{"error":"out of memory"}\n'],
    ]) {
      const { chat } = await start(t, lines(...texts));
      const { done, error } = await readStream(await chat({ ...ASKED, stream: true }));
      assert.deepEqual([done, error?.code], [false, "upstream_error"]);
    }
  });
});

describe("lines of JSON", () => {
  it("are the same however their bytes are cut", () => {
    const bytes = Buffer.from(`${LINES.join("")}\n{"last":1}`);
    const expected = [...LINES.map((line) => line.trim()), '{"last":1}'];
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const reader = jsonLines.createReader();
      const events = [...reader.push(bytes.subarray(0, cut)), ...reader.push(bytes.subarray(cut))];
      assert.deepEqual([...events, ...reader.end()], expected, `cut at ${cut}`);
    }
  });

  it("have a bound", () => {
    const reader = jsonLines.createReader();
    const piece = Buffer.alloc(8 * 1024 * 1024, "x");
    reader.push(piece);
    reader.push(piece);
    assert.throws(() => reader.push(Buffer.from("x")), /a line of more than 16777216 characters/);
  });
});

describe("the vendor ollama", () => {
  const issues = (provider: object) =>
    issueLines(() =>
      checkConfig({ providers: { o: { vendor: "ollama", ...provider } }, models: {} }),
    );

  it("has a bare address, and the compatible API on request", () => {
    assert.deepEqual(issues({ base_url: "http://127.0.0.1:11434/v1" }), [
      "providers.o.base_url: must not end in /v1: /api/chat is appended to it",
    ]);
    const { providers } = checkConfig({
      providers: { o: { vendor: "ollama", dialect: "openai" }, n: { vendor: "ollama" } },
      models: {},
    });
    assert.deepEqual(
      [...providers.values()].map(({ dialect, base_url }) => [dialect, base_url]),
      [
        ["openai", "http://127.0.0.1:11434/v1"],
        ["ollama", "http://127.0.0.1:11434"],
      ],
    );
  });
});
