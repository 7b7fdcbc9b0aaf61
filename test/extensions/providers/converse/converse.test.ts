// Converse through the gateway: the request for a conversation, and the reading of replies.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createConverseDecoder } from "../../../../src/extensions/providers/converse/decoder.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { errorFrame, eventFrame } from "../../../support/event-stream.ts";
import {
  assemble,
  configFor,
  json,
  readStream,
  user,
  startGateway,
} from "../../../support/gateway.ts";
import { status, type Behaviour, startProvider } from "../../../support/provider.ts";
import { calling, callOf, errorOf, resultOf } from "../dialect-bench.ts";

const USAGE = {
  inputTokens: 5,
  outputTokens: 7,
  cacheReadInputTokens: 3,
  cacheWriteInputTokens: 2,
  cacheDetails: ["5m", "1h"].map((ttl) => ({ ttl, inputTokens: 1 })),
};
const CONTENT = [
  { reasoningContent: { reasoningText: { text: "Hm.", signature: "s" } } },
  { text: "Hello." },
  { toolUse: { toolUseId: "t1", name: "look", input: { at: 1 } } },
];
const REPLY = {
  output: { message: { role: "assistant", content: CONTENT } },
  stopReason: "tool_use",
  usage: USAGE,
};
const block = (contentBlockIndex: number, delta: object) =>
  eventFrame("contentBlockDelta", { contentBlockIndex, delta });
const STREAM = [
  eventFrame("messageStart", { role: "assistant" }),
  block(0, { reasoningContent: { text: "Hm." } }),
  block(0, { reasoningContent: { signature: "s" } }),
  eventFrame("contentBlockStop", { contentBlockIndex: 0 }),
  block(1, { text: "Hel" }),
  block(1, { text: "lo." }),
  eventFrame("contentBlockStart", {
    contentBlockIndex: 2,
    start: { toolUse: { toolUseId: "t1", name: "look" } },
  }),
  block(2, { toolUse: { input: '{"at"' } }),
  block(2, { toolUse: { input: ":1}" } }),
  eventFrame("messageStop", { stopReason: "tool_use" }),
  eventFrame("metadata", { usage: USAGE }),
];

const streamed =
  (...frames: readonly Uint8Array[]): Behaviour =>
  ({ res }) => {
    res.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
    res.end(Buffer.concat(frames));
  };

async function start(t: TestContext, behaviour: Behaviour = status(200, REPLY)) {
  const provider = await startProvider(t, behaviour);
  const aws = { vendor: "bedrock", base_url: provider.url, region: "us-east-1", api_key: "k" };
  const config = configFor(provider.url, [], {
    providers: { aws },
    models: {
      nova: { provider: "aws", upstream_model: "amazon.nova-pro-v1:0", reasoning: true },
      claude: { provider: "aws", upstream_model: "anthropic.claude-x" },
      oss: { provider: "aws", upstream_model: "openai.gpt-oss-120b" },
      profiled: { provider: "aws", upstream_model: "us.anthropic.claude-opus-5" },
      formatted: { provider: "aws", upstream_model: "eu.anthropic.x", supports: ["json_schema"] },
      profile: { provider: "aws", upstream_model: "arn:aws:bedrock:eu-1:1:inference-profile/p" },
    },
  });
  return { provider, ...(await startGateway(t, config)) };
}

/** The request to Converse for these fields, and the content of each of its messages. */
async function bodyFor(t: TestContext, fields: object): Promise<Record<string, any>> {
  const { provider, chat } = await start(t);
  const answer = await chat({ model: "nova", messages: user("hi"), ...fields });
  assert.equal(answer.status, 200);
  const { body } = provider.asked[0]!;
  return { ...body, contents: body["messages"].map(({ content }: any) => content) };
}

const called = (id: string) => calling(callOf(id, "look", '{"at":1}'));
const says = (role: string, ...content: object[]) => ({ role, content });
const text = (words: string) => ({ type: "text", text: words });
const marked = (words: string) => ({ ...text(words), cache_control: { type: "ephemeral" } });
const PDF = {
  type: "file",
  file: { file_data: "data:application/pdf;base64,aGk=", filename: "a.pdf" },
};
const document = (name: string) => ({
  document: { format: "pdf", name, source: { bytes: "aGk=" } },
});
/** The kind of a block, or the lifetime of a cache mark. */
const kindOf = ({ cachePoint, ...block }: any) =>
  cachePoint ? (cachePoint.ttl ?? "5m") : Object.keys(block).join();
const lookTool = (more: object = {}) => [{ type: "function", function: { name: "look", ...more } }];

it("Amazon Bedrock is called by each model's API", async (t) => {
  const { provider, chat } = await start(t, status(404));
  for (const model of ["nova", "claude", "oss", "profile"])
    for (const stream of [false, true]) await chat({ model, messages: user("hi"), stream });
  assert.deepEqual(
    provider.asked.map(({ path }) => path),
    [
      "/model/amazon.nova-pro-v1%3A0/converse",
      "/model/amazon.nova-pro-v1%3A0/converse-stream",
      "/anthropic/v1/messages",
      "/anthropic/v1/messages",
      "/v1/chat/completions",
      "/v1/chat/completions",
      "/model/arn%3Aaws%3Abedrock%3Aeu-1%3A1%3Ainference-profile%2Fp/converse",
      "/model/arn%3Aaws%3Abedrock%3Aeu-1%3A1%3Ainference-profile%2Fp/converse-stream",
    ],
  );
  for (const { headers } of provider.asked) assert.equal(headers.authorization, "Bearer k");
  const [nova, streaming, claude] = provider.asked;
  assert.equal("model" in nova!.body, false);
  assert.equal(claude!.body["model"], "anthropic.claude-x");
  assert.equal(streaming!.headers.accept, "application/vnd.amazon.eventstream");
});

describe("a request to Converse", () => {
  it("has the schema of a structured reply, if the model supports it", async (t) => {
    const formatOf = (schema: object) => ({
      response_format: { type: "json_schema", json_schema: { name: "n", schema, strict: true } },
    });
    const properties = { at: { type: "integer", minimum: 1 } };
    const bounded = formatOf({ type: "object", properties });
    const { outputConfig } = await bodyFor(t, { model: "formatted", ...bounded });
    const at = { type: "integer", description: "minimum: 1" };
    const closed = { type: "object", properties: { at }, additionalProperties: false };
    const jsonSchema = { schema: JSON.stringify(closed), name: "n" };
    assert.deepEqual(outputConfig, {
      textFormat: { type: "json_schema", structure: { jsonSchema } },
    });
    const { provider, chat } = await start(t);
    const recursive = formatOf({ items: { $ref: "#" } });
    for (const [model, format, words] of [
      ["formatted", recursive, "no schema refers to itself"],
      ["nova", bounded, "is not supported with this model"],
    ] as const) {
      const { error } = await json(await chat({ model, messages: user("hi"), ...format }));
      assert.deepEqual([error.param, error.message.includes(words)], ["response_format", true]);
    }
    assert.equal(provider.asked.length, 0);
  });

  it("has the conversation, the parameters and the tools in Converse's format", async (t) => {
    const properties = { at: { type: "integer" } };
    const parameters = { properties, anyOf: [{ required: ["at"] }], additionalProperties: false };
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } };
    const {
      messages: _,
      contents,
      ...others
    } = await bodyFor(t, {
      messages: [
        { role: "system", content: "Be brief." },
        says("user", marked("What is it?"), image, PDF),
        called("id with spaces"),
        resultOf("id with spaces", ""),
      ],
      max_tokens: 50,
      temperature: 1.5,
      stop: "END",
      tools: lookTool({ description: "Looks.", parameters }),
      tool_choice: "required",
    });
    const { toolUseId } = contents[1][0].toolUse;
    assert.match(toolUseId, /^[\w-]{1,64}$/);
    assert.deepEqual(contents, [
      [
        { text: "What is it?" },
        { cachePoint: { type: "default" } },
        { image: { format: "png", source: { bytes: "aGk=" } } },
        document("file-1"),
      ],
      [{ toolUse: { toolUseId, name: "look", input: { at: 1 } } }],
      [{ toolResult: { toolUseId, content: [{ text: "(nothing)" }] } }],
    ]);
    const json = { properties, type: "object" };
    assert.deepEqual(others, {
      system: [{ text: "Be brief." }],
      inferenceConfig: { maxTokens: 50, temperature: 1, stopSequences: ["END"] },
      toolConfig: {
        tools: [{ toolSpec: { name: "look", description: "Looks.", inputSchema: { json } } }],
        toolChoice: { any: {} },
      },
    });
  });

  it("has schemas without references for Nova, and never endless ones", async (t) => {
    const ref = (name: number) => ({ $ref: `#/$defs/${name}` });
    const growing = Array.from({ length: 40 }, (_, at) => ({ items: Array(10).fill(ref(at + 2)) }));
    const $defs = [{ items: ref(0) }, ...growing];
    const like = { $ref: "#/properties/a~1b/items" };
    const properties = { "a/b": { items: { type: "string" } }, like, me: ref(0), many: ref(1) };
    const tools = lookTool({ parameters: { properties, $defs } });
    const { toolConfig } = await bodyFor(t, { tools, tool_choice: "auto" });
    const { json } = toolConfig.tools[0].toolSpec.inputSchema;
    assert.deepEqual([Object.keys(json).length, json.properties.me], [2, { items: {} }]);
    assert.deepEqual(json.properties.like, { type: "string" });
    assert.ok(JSON.stringify(json).length < 1_000_000);
  });

  it("has no tools if none may be called: earlier calls and their results become texts", async (t) => {
    const { messages, toolConfig, inferenceConfig } = await bodyFor(t, {
      messages: [...user("What is it?"), called("1"), resultOf("1", "A cat.")],
      tools: lookTool(),
    });
    assert.deepEqual(messages, [
      says("user", { text: "What is it?" }),
      says("assistant", { text: '(Called look with {"at":1}.)' }),
      says("user", { text: "(look returned: A cat.)" }),
    ]);
    assert.deepEqual([toolConfig, inferenceConfig], [undefined, { temperature: 1 }]);
  });

  it("names every document once, adds a text, and trims blanks at the end of a begun answer", async (t) => {
    const { contents, inferenceConfig, toolConfig } = await bodyFor(t, {
      messages: [
        says("user", PDF),
        { role: "assistant", content: "Read." },
        says("user", PDF, text("And this?")),
        { role: "assistant", content: "It is " },
      ],
      stop: [" ", "END"],
      tools: lookTool({ description: "" }),
      tool_choice: "auto",
    });
    assert.deepEqual(contents, [
      [document("file-1"), { text: "(The files are attached.)" }],
      [{ text: "Read." }],
      [document("file-2"), { text: "And this?" }],
      [{ text: "It is" }],
    ]);
    assert.deepEqual(inferenceConfig.stopSequences, ["END"]);
    const toolSpec = { name: "look", inputSchema: { json: { type: "object" } } };
    assert.deepEqual(toolConfig.tools, [{ toolSpec }]);
  });

  it("has a temperature or a top_p for Claude, and both for other models", async (t) => {
    for (const [model, sent] of [
      ["profiled", { temperature: 0.5 }],
      ["nova", { temperature: 0.5, topP: 0.9 }],
    ] as const) {
      const { inferenceConfig } = await bodyFor(t, { model, temperature: 0.5, top_p: 0.9 });
      assert.deepEqual(inferenceConfig, sent);
    }
  });

  for (const [model, kinds] of [
    ["profile", ["text,document,document", "toolUse", "toolResult", "text"]],
    ["nova", ["text,5m,document,5m,document", "toolUse", "toolResult", "text,5m"]],
    ["profiled", ["text,5m,document,1h,document", "toolUse", "toolResult,5m", "text,5m"]],
  ] as const)
    it(`has the client's cache marks if the model takes them: ${model}`, async (t) => {
      const result = resultOf("call_12345", [marked("hi")]);
      const begun = says("assistant", marked("It is "));
      const csv = { type: "file", file: { file_data: "data:text/csv;base64,aGk=" } };
      const cache_control = { type: "ephemeral", ttl: "1h" };
      const files = [PDF, csv].map((part) => ({ ...part, cache_control }));
      const { contents } = await bodyFor(t, {
        model,
        messages: [says("user", marked("hi"), ...files), called("call_12345"), result, begun],
        tools: lookTool(),
        tool_choice: "auto",
      });
      assert.deepEqual(
        contents.map((content: object[]) => content.map(kindOf).join()),
        kinds,
      );
      assert.equal(contents[3][0].text, "It is");
    });

  it("with a mark that the model rejects does not open the model's breaker", async (t) => {
    const message =
      "You invoked an unsupported model or your request did not allow prompt caching. " +
      "See the documentation for more information.";
    const { chat } = await start(t, (asked) =>
      JSON.stringify(asked.body).includes("cachePoint")
        ? status(403, { message }, { "x-amzn-errortype": "AccessDeniedException" })(asked)
        : status(200, REPLY)(asked),
    );
    const messages = [says("user", marked("hi"))];
    const { error } = await json(await chat({ model: "nova", messages }));
    assert.equal(error.code, "upstream_rejected");
    assert.equal((await chat({ model: "nova", messages: user("hi") })).status, 200);
  });
});

describe("a reply of Converse", () => {
  const ASKED = { model: "nova", messages: user("hi"), thinking: { type: "enabled" } };

  it("is the same whole and streamed", async (t) => {
    const { chat } = await start(t, (asked) =>
      asked.path.endsWith("-stream") ? streamed(...STREAM)(asked) : status(200, REPLY)(asked),
    );
    const { choices, usage } = await json(await chat(ASKED));
    const { message, finish_reason } = choices[0];
    const function_ = { name: "look", arguments: '{"at":1}' };
    assert.deepEqual(message, {
      role: "assistant",
      content: "Hello.",
      reasoning_content: "Hm.",
      tool_calls: [{ id: "t1", type: "function", function: function_ }],
    });
    assert.equal(finish_reason, "tool_calls");
    const written = { cacheWrite: 2, cacheWrite1h: 1 };
    const counts = { prompt: 10, completion: 7, cacheHit: 3, reasoning: 0, ...written };
    assert.deepEqual(usage, makeUsage(counts));
    const stream = { stream: true, stream_options: { include_usage: true } };
    const { chunks, done } = await readStream(await chat({ ...ASKED, ...stream }));
    const assembled = assemble(chunks);
    assert.deepEqual(
      [assembled.message, assembled.finish_reason, chunks.at(-1)!.usage, done],
      [message, finish_reason, usage, true],
    );
  });

  it("that is cut or damaged is an error, never a normal end", async (t) => {
    const damaged = Buffer.from(new Uint8Array(STREAM[5]!).fill(0, -4));
    for (const frames of [STREAM.with(5, damaged), STREAM.slice(0, 6)]) {
      const { chat } = await start(t, streamed(...frames));
      const { done, error } = await readStream(await chat({ ...ASKED, stream: true }));
      assert.deepEqual([done, error?.code], [false, "upstream_error"]);
    }
  });

  it("keeps texts with citations, and unknown content as JSON", () => {
    const cited = { content: [{ text: "Grass is " }, { text: "green." }], citations: [{}] };
    const content = [{ citationsContent: cited }, { image: { format: "png" } }];
    const whole = createConverseDecoder().push({ output: { message: { content } } });
    const texts = (parts: readonly Part[]) =>
      parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
    assert.equal(texts(whole), 'Grass is green.{"image":{"format":"png"}}');
    const decoder = createConverseDecoder();
    const deltas = [{ text: "Green." }, { citation: { title: "T" } }, { newThing: 1 }, {}];
    const parts = deltas.flatMap((delta) => decoder.push({ contentBlockDelta: { delta } }));
    assert.equal(texts(parts), 'Green.{"newThing":1}');
  });

  it("leaves out calls of Amazon's own tools, and their results", () => {
    const own = { toolUseId: "t1", name: "nova_grounding", type: "server_tool_use" };
    const found = { toolResult: { toolUseId: "t1", content: [{ text: "Rain." }] } };
    const content = [{ toolUse: { ...own, input: {} } }, found, { text: "It rains." }];
    const says = [{ type: "text", text: "It rains." }];
    assert.deepEqual(createConverseDecoder().push({ output: { message: { content } } }), says);
    const { push } = createConverseDecoder();
    const blocks = [{ start: { toolUse: own } }, { start: found }].map((contentBlockStart) =>
      push({ contentBlockStart }),
    );
    const deltas = [{ toolUse: { input: "{}" } }, { toolResult: [{ text: "Rain." }] }, content[2]];
    const parts = deltas.flatMap((delta) => push({ contentBlockDelta: { delta } }));
    assert.deepEqual([...blocks.flat(), ...parts], says);
  });

  it("separates calls with the same block index", () => {
    const { push } = createConverseDecoder();
    const indexes = ["a", "b", "c"].flatMap((toolUseId) =>
      push({ contentBlockStart: { start: { toolUse: { toolUseId, name: "look" } } } }).map(
        (part) => part.type === "tool_call" && part.call,
      ),
    );
    assert.deepEqual(indexes, [0, 1, 2]);
  });

  for (const [kind, code] of [
    ["throttling", "model_overloaded"],
    ["validation", "upstream_rejected"],
    ["serviceUnavailable", "model_overloaded"],
    ["modelStreamError", "upstream_error"],
    ["internalServer", "upstream_error"],
  ] as const)
    it(`that is a ${kind}Exception is ${code}`, () => {
      const { push } = createConverseDecoder();
      assert.equal(errorOf(() => push({ [`${kind}Exception`]: { message: "no" } })).code, code);
    });

  const VALIDATION = { "x-amzn-errortype": "ValidationException:http://internal.amazon.com/" };
  const SHORT = { message: "input is too long" };
  const LONG = { message: "Input is too long for requested model." };
  for (const [name, stream, code, behaviour] of [
    ["Amazon's type", false, "upstream_rejected", status(400, SHORT, VALIDATION)],
    ["an error frame", true, "model_overloaded", streamed(errorFrame("ThrottlingException", "x"))],
    ["its message", false, "context_length_exceeded", status(400, LONG)],
  ] as const)
    it(`that is rejected by ${name} is ${code}`, async (t) => {
      const { chat } = await start(t, behaviour);
      const answer = await chat({ model: "nova", messages: user("hi"), stream });
      assert.equal((await json(answer)).error.code, code);
    });
});
