// Converse through the gateway: what goes out for a conversation, and what replies become.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createConverseDecoder } from "../../../../src/extensions/providers/converse/decoder.ts";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { errorFrame, eventFrame } from "../../../support/event-stream.ts";
import { assemble, configFor, json, readStream, user } from "../../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../../support/memory.ts";
import { status, type Behaviour } from "../../../support/provider.ts";
import { calling, callOf, errorOf, resultOf } from "../dialect-bench.ts";

const USAGE = {
  inputTokens: 5,
  outputTokens: 7,
  cacheReadInputTokens: 3,
  cacheWriteInputTokens: 2,
};
const REPLY = {
  output: {
    message: {
      role: "assistant",
      content: [
        { reasoningContent: { reasoningText: { text: "Hm.", signature: "s" } } },
        { text: "Hello." },
        { toolUse: { toolUseId: "t1", name: "look", input: { at: 1 } } },
      ],
    },
  },
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

function start(t: TestContext, behaviour: Behaviour = status(200, REPLY)) {
  const provider = memoryProvider(t, behaviour);
  const aws = { vendor: "bedrock", base_url: provider.url, region: "us-east-1", api_key: "k" };
  const config = configFor(provider.url, [], {
    providers: { aws },
    models: {
      nova: { provider: "aws", upstream_model: "amazon.nova-pro-v1:0", reasoning: true },
      claude: { provider: "aws", upstream_model: "anthropic.claude-x" },
      oss: { provider: "aws", upstream_model: "openai.gpt-oss-120b" },
      profiled: { provider: "aws", upstream_model: "us.anthropic.claude-opus-5" },
      profile: { provider: "aws", upstream_model: "arn:aws:bedrock:eu-1:1:inference-profile/p" },
    },
  });
  return { provider, ...createMemoryGateway(config) };
}

/** What Converse is asked for these fields. */
async function bodyFor(t: TestContext, fields: object): Promise<Record<string, any>> {
  const { provider, chat } = start(t);
  const answer = await chat({ model: "nova", messages: user("hi"), ...fields });
  assert.equal(answer.status, 200);
  return provider.asked[0]!.body;
}

const called = (id: string) => calling(callOf(id, "look", '{"at":1}'));
const PDF = {
  type: "file",
  file: { file_data: "data:application/pdf;base64,aGk=", filename: "a.pdf" },
};
const document = (name: string) => ({
  document: { format: "pdf", name, source: { bytes: "aGk=" } },
});
const lookTool = (more: object = {}) => [{ type: "function", function: { name: "look", ...more } }];

describe("Amazon Bedrock", () => {
  it("is called by the API of each model", async (t) => {
    const { provider, chat } = start(t, status(404));
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
});

describe("a request to Converse", () => {
  it("has the conversation, the parameters and the tools in its own words", async (t) => {
    const parameters = { properties: { at: { type: "integer" } } };
    const { messages, ...others } = await bodyFor(t, {
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?", cache_control: { type: "ephemeral" } },
            { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
            PDF,
          ],
        },
        called("id with spaces"),
        resultOf("id with spaces", ""),
      ],
      max_tokens: 50,
      temperature: 1.5,
      stop: "END",
      tools: lookTool({ description: "Looks.", parameters }),
      tool_choice: "required",
    });
    const toolUseId = messages[1].content[0].toolUse.toolUseId;
    assert.match(toolUseId, /^[\w-]{1,64}$/);
    assert.deepEqual(
      messages.map(({ content }: any) => content),
      [
        [
          { text: "What is it?" },
          { cachePoint: { type: "default" } },
          { image: { format: "png", source: { bytes: "aGk=" } } },
          document("file-1"),
        ],
        [{ toolUse: { toolUseId, name: "look", input: { at: 1 } } }],
        [{ toolResult: { toolUseId, content: [{ text: "(nothing)" }] } }],
      ],
    );
    const json = { ...parameters, type: "object" };
    assert.deepEqual(others, {
      system: [{ text: "Be brief." }],
      inferenceConfig: { maxTokens: 50, temperature: 1, stopSequences: ["END"] },
      toolConfig: {
        tools: [{ toolSpec: { name: "look", description: "Looks.", inputSchema: { json } } }],
        toolChoice: { any: {} },
      },
    });
  });

  it("has no tools where none may be called: earlier calls and their results are texts", async (t) => {
    const { messages, toolConfig, inferenceConfig } = await bodyFor(t, {
      messages: [...user("What is it?"), called("1"), resultOf("1", "A cat.")],
      tools: lookTool(),
    });
    assert.deepEqual(messages, [
      { role: "user", content: [{ text: "What is it?" }] },
      { role: "assistant", content: [{ text: '(Called look with {"at":1}.)' }] },
      { role: "user", content: [{ text: "(look returned: A cat.)" }] },
    ]);
    assert.deepEqual([toolConfig, inferenceConfig], [undefined, { temperature: 1 }]);
  });

  it("names every document once, with a text beside it, and ends an answer's beginning without blanks", async (t) => {
    const { messages, inferenceConfig, toolConfig } = await bodyFor(t, {
      messages: [
        { role: "user", content: [PDF] },
        { role: "assistant", content: "Read." },
        { role: "user", content: [PDF, { type: "text", text: "And this?" }] },
        { role: "assistant", content: "It is " },
      ],
      stop: [" ", "END"],
      tools: lookTool({ description: "" }),
      tool_choice: "auto",
    });
    assert.deepEqual(
      messages.map(({ content }: any) => content),
      [
        [document("file-1"), { text: "(The files are attached.)" }],
        [{ text: "Read." }],
        [document("file-2"), { text: "And this?" }],
        [{ text: "It is" }],
      ],
    );
    assert.deepEqual(inferenceConfig.stopSequences, ["END"]);
    assert.deepEqual(toolConfig.tools, [
      { toolSpec: { name: "look", inputSchema: { json: { type: "object" } } } },
    ]);
  });

  it("has a temperature or a top_p for Claude, and both for others", async (t) => {
    for (const [model, sent] of [
      ["profiled", { temperature: 0.5 }],
      ["nova", { temperature: 0.5, topP: 0.9 }],
    ] as const) {
      const { inferenceConfig } = await bodyFor(t, { model, temperature: 0.5, top_p: 0.9 });
      assert.deepEqual(inferenceConfig, sent);
    }
  });

  it("has the client's marks only for a model with a cache; one that refuses them stays open to others", async (t) => {
    const refusal = {
      message:
        "You invoked an unsupported model or your request did not allow prompt caching. " +
        "See the documentation for more information.",
    };
    const { provider, chat } = start(t, (asked) =>
      JSON.stringify(asked.body).includes("cachePoint")
        ? status(403, refusal, { "x-amzn-errortype": "AccessDeniedException" })(asked)
        : status(200, REPLY)(asked),
    );
    const text = { type: "text", text: "hi", cache_control: { type: "ephemeral" } };
    const messages = [{ role: "user", content: [text] }];
    assert.equal((await chat({ model: "profile", messages })).status, 200);
    assert.equal(provider.asked[0]!.body["messages"][0].content.length, 1);
    const { error } = await json(await chat({ model: "nova", messages }));
    assert.equal(error.code, "upstream_rejected");
    assert.equal((await chat({ model: "nova", messages: user("hi") })).status, 200);
  });

  it("has no marks beside the results of tools for Nova, which refuses these", async (t) => {
    const { provider, chat } = start(t, status(200, REPLY));
    const text = { type: "text", text: "hi", cache_control: { type: "ephemeral" } };
    const messages = [
      { role: "user", content: [text] },
      called("call_12345"),
      { role: "tool", tool_call_id: "call_12345", content: [text] },
    ];
    for (const model of ["nova", "profiled"])
      await chat({ model, messages, tools: lookTool(), tool_choice: "auto" });
    const kinds = provider.asked.map(({ body }) =>
      body["messages"].map(({ content }: any) => content.flatMap(Object.keys).join()),
    );
    assert.deepEqual(kinds, [
      ["text,cachePoint", "toolUse", "toolResult"],
      ["text,cachePoint", "toolUse", "toolResult,cachePoint"],
    ]);
  });

  it("has the beginning of an answer once if it has a mark", async (t) => {
    const begun = { type: "text", text: "It is ", cache_control: { type: "ephemeral" } };
    const { messages } = await bodyFor(t, {
      messages: [...user("What is it?"), { role: "assistant", content: [begun] }],
    });
    assert.deepEqual(messages[1].content, [{ text: "It is" }, { cachePoint: { type: "default" } }]);
  });
});

describe("a reply of Converse", () => {
  const ASKED = { model: "nova", messages: user("hi"), thinking: { type: "enabled" } };

  it("is the same whole and streamed", async (t) => {
    const { chat } = start(t, (asked) =>
      asked.path.endsWith("-stream") ? streamed(...STREAM)(asked) : status(200, REPLY)(asked),
    );
    const whole = await json(await chat(ASKED));
    const { chunks, done } = await readStream(
      await chat({ ...ASKED, stream: true, stream_options: { include_usage: true } }),
    );
    const both = [
      [whole.choices[0].message, whole.choices[0].finish_reason, whole.usage],
      [assemble(chunks).message, assemble(chunks).finish_reason, chunks.at(-1)!.usage],
    ] as const;
    assert.equal(done, true);
    for (const [message, finish, usage] of both) {
      assert.deepEqual(message, {
        role: "assistant",
        content: "Hello.",
        reasoning_content: "Hm.",
        tool_calls: [
          { id: "t1", type: "function", function: { name: "look", arguments: '{"at":1}' } },
        ],
      });
      const { prompt_tokens, completion_tokens, prompt_tokens_details } = usage;
      assert.deepEqual([finish, prompt_tokens, completion_tokens], ["tool_calls", 10, 7]);
      assert.equal(prompt_tokens_details.cached_tokens, 3);
    }
  });

  it("that is cut or damaged is an error, never an end", async (t) => {
    const damaged = Buffer.from(STREAM[5]!);
    damaged[damaged.length - 1] = damaged[damaged.length - 1]! ^ 1;
    for (const frames of [
      [...STREAM.slice(0, 5), damaged, ...STREAM.slice(6)],
      STREAM.slice(0, 6),
      [...STREAM.slice(0, 6), STREAM[6]!.subarray(0, 20)],
    ]) {
      const { chat } = start(t, streamed(...frames));
      const { done, error } = await readStream(await chat({ ...ASKED, stream: true }));
      assert.deepEqual([done, error?.code], [false, "upstream_error"]);
    }
  });

  it("keeps texts with citations, and what it does not know, as its JSON", () => {
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

  it("keeps calls apart that have the same block", () => {
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
  for (const [name, behaviour, stream, code] of [
    [
      "Amazon's type",
      status(400, { message: "input is too long" }, VALIDATION),
      false,
      "upstream_rejected",
    ],
    ["an error frame", streamed(errorFrame("ThrottlingException", "x")), true, "model_overloaded"],
    [
      "its message",
      status(400, { message: "Input is too long for requested model." }),
      false,
      "context_length_exceeded",
    ],
  ] as const)
    it(`that is a refusal by ${name} is ${code}`, async (t) => {
      const { chat } = start(t, behaviour);
      const answer = await chat({ model: "nova", messages: user("hi"), stream });
      assert.equal((await json(answer)).error.code, code);
    });
});
