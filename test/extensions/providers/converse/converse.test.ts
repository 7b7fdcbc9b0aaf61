// Converse through the gateway: what goes out for a conversation, and what replies become.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createConverseDecoder } from "../../../../src/extensions/providers/converse/decoder.ts";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { errorFrame, eventFrame, exceptionFrame } from "../../../support/event-stream.ts";
import {
  assemble,
  configFor,
  json,
  readStream,
  startGateway,
  user,
} from "../../../support/gateway.ts";
import { startProvider, status, type Asked, type Behaviour } from "../../../support/provider.ts";

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
const STREAM = [
  eventFrame("messageStart", { role: "assistant" }),
  eventFrame("contentBlockDelta", {
    contentBlockIndex: 0,
    delta: { reasoningContent: { text: "Hm." } },
  }),
  eventFrame("contentBlockDelta", {
    contentBlockIndex: 0,
    delta: { reasoningContent: { signature: "s" } },
  }),
  eventFrame("contentBlockStop", { contentBlockIndex: 0 }),
  eventFrame("contentBlockDelta", { contentBlockIndex: 1, delta: { text: "Hel" } }),
  eventFrame("contentBlockDelta", { contentBlockIndex: 1, delta: { text: "lo." } }),
  eventFrame("contentBlockStart", {
    contentBlockIndex: 2,
    start: { toolUse: { toolUseId: "t1", name: "look" } },
  }),
  eventFrame("contentBlockDelta", { contentBlockIndex: 2, delta: { toolUse: { input: '{"at"' } } }),
  eventFrame("contentBlockDelta", { contentBlockIndex: 2, delta: { toolUse: { input: ":1}" } } }),
  eventFrame("messageStop", { stopReason: "tool_use" }),
  eventFrame("metadata", { usage: USAGE }),
];

const streamed =
  (...frames: readonly Uint8Array[]): Behaviour =>
  ({ res }) => {
    res.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
    res.end(Buffer.concat(frames));
  };

async function start(t: TestContext, behaviour: Behaviour) {
  const provider = await startProvider(t, behaviour);
  const config = configFor("http://lab.invalid", [], {
    providers: {
      aws: {
        vendor: "bedrock",
        base_url: provider.url,
        region: "us-east-1",
        api_key: "bedrock-key",
      },
    },
    models: {
      nova: { provider: "aws", upstream_model: "amazon.nova-pro-v1:0", reasoning: true },
      claude: { provider: "aws", upstream_model: "anthropic.claude-x" },
      oss: { provider: "aws", upstream_model: "openai.gpt-oss-120b" },
      profiled: { provider: "aws", upstream_model: "us.anthropic.claude-opus-5" },
      profile: { provider: "aws", upstream_model: "arn:aws:bedrock:eu-1:1:inference-profile/p" },
    },
  });
  return { provider, ...(await startGateway(t, config)) };
}

const bodyOf = (asked: Asked | undefined): Record<string, any> => asked?.body ?? assert.fail();

describe("Amazon Bedrock", () => {
  it("is called by the API of each model", async (t) => {
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
    for (const { headers } of provider.asked)
      assert.equal(headers.authorization, "Bearer bedrock-key");
    const [nova, , claude] = provider.asked;
    assert.equal("model" in bodyOf(nova), false);
    assert.equal(bodyOf(claude)["model"], "anthropic.claude-x");
    assert.equal(provider.asked[1]!.headers.accept, "application/vnd.amazon.eventstream");
  });
});

describe("a request to Converse", () => {
  it("has the conversation, the parameters and the tools in its own words", async (t) => {
    const { provider, chat } = await start(t, status(200, REPLY));
    const png = "data:image/png;base64,aGk=";
    const pdf = { file_data: "data:application/pdf;base64,aGk=", filename: "a.pdf" };
    const call = {
      id: "id with spaces",
      type: "function",
      function: { name: "look", arguments: '{"at":1}' },
    };
    const parameters = { properties: { at: { type: "integer" } } };
    await chat({
      model: "nova",
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?", cache_control: { type: "ephemeral" } },
            { type: "image_url", image_url: { url: png } },
            { type: "file", file: pdf },
          ],
        },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: call.id, content: "" },
      ],
      max_tokens: 50,
      temperature: 1.5,
      stop: "END",
      tools: [{ type: "function", function: { name: "look", description: "Looks.", parameters } }],
      tool_choice: "required",
    });
    const { messages, ...others } = bodyOf(provider.asked[0]);
    const id = messages[1].content[0].toolUse.toolUseId;
    assert.match(id, /^[\w-]{1,64}$/);
    assert.deepEqual(messages, [
      {
        role: "user",
        content: [
          { text: "What is it?" },
          { cachePoint: { type: "default" } },
          { image: { format: "png", source: { bytes: "aGk=" } } },
          { document: { format: "pdf", name: "file-1", source: { bytes: "aGk=" } } },
        ],
      },
      {
        role: "assistant",
        content: [{ toolUse: { toolUseId: id, name: "look", input: { at: 1 } } }],
      },
      {
        role: "user",
        content: [{ toolResult: { toolUseId: id, content: [{ text: "(nothing)" }] } }],
      },
    ]);
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
    const { provider, chat } = await start(t, status(200, REPLY));
    const call = { id: "1", type: "function", function: { name: "look", arguments: '{"at":1}' } };
    await chat({
      model: "nova",
      messages: [
        ...user("What is it?"),
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "1", content: "A cat." },
      ],
      tools: [{ type: "function", function: { name: "look" } }],
    });
    const { messages, toolConfig, inferenceConfig } = bodyOf(provider.asked[0]);
    assert.deepEqual(messages, [
      { role: "user", content: [{ text: "What is it?" }] },
      { role: "assistant", content: [{ text: '(Called look with {"at":1}.)' }] },
      { role: "user", content: [{ text: "(look returned: A cat.)" }] },
    ]);
    assert.equal(toolConfig, undefined);
    assert.deepEqual(inferenceConfig, { temperature: 1 });
  });

  it("names every document once, with a text beside it, and ends an answer's beginning without blanks", async (t) => {
    const { provider, chat } = await start(t, status(200, REPLY));
    const file = { file_data: "data:application/pdf;base64,aGk=", filename: "a.pdf" };
    const document = (name: string) => ({
      document: { format: "pdf", name, source: { bytes: "aGk=" } },
    });
    await chat({
      model: "nova",
      messages: [
        { role: "user", content: [{ type: "file", file }] },
        { role: "assistant", content: "Read." },
        {
          role: "user",
          content: [
            { type: "file", file },
            { type: "text", text: "And this?" },
          ],
        },
        { role: "assistant", content: "It is " },
      ],
      stop: [" ", "END"],
      tools: [{ type: "function", function: { name: "look", description: "" } }],
      tool_choice: "auto",
    });
    const { messages, inferenceConfig, toolConfig } = bodyOf(provider.asked[0]);
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
    const { provider, chat } = await start(t, status(200, REPLY));
    for (const model of ["profiled", "nova"])
      await chat({ model, messages: user("hi"), temperature: 0.5, top_p: 0.9 });
    assert.deepEqual(
      provider.asked.map((asked) => bodyOf(asked)["inferenceConfig"]),
      [{ temperature: 0.5 }, { temperature: 0.5, topP: 0.9 }],
    );
  });

  it("has the client's marks only for a model with a cache; one that refuses them stays open to others", async (t) => {
    const refusal = {
      message:
        "You invoked an unsupported model or your request did not allow prompt caching. " +
        "See the documentation for more information.",
    };
    const { provider, chat } = await start(t, (asked) =>
      JSON.stringify(asked.body).includes("cachePoint")
        ? status(403, refusal, { "x-amzn-errortype": "AccessDeniedException" })(asked)
        : status(200, REPLY)(asked),
    );
    const text = { type: "text", text: "hi", cache_control: { type: "ephemeral" } };
    const messages = [{ role: "user", content: [text] }];
    const { status: marked } = await chat({ model: "profile", messages });
    assert.deepEqual([marked, bodyOf(provider.asked[0])["messages"][0].content.length], [200, 1]);
    const refused = await chat({ model: "nova", messages });
    assert.deepEqual(
      [refused.status, (await json(refused)).error.code],
      [400, "upstream_rejected"],
    );
    assert.equal((await chat({ model: "nova", messages: user("hi") })).status, 200);
  });

  it("is refused where Converse has no form for it", async (t) => {
    const { provider, chat } = await start(t, status(200, REPLY));
    const image = { type: "image_url", image_url: { url: "https://example.com/a.png" } };
    const answer = await chat({ model: "nova", messages: [{ role: "user", content: [image] }] });
    assert.equal(answer.status, 400);
    const { error } = await json(answer);
    assert.equal(error.code, "unsupported_value");
    assert.equal(provider.asked.length, 0);
  });
});

describe("a reply of Converse", () => {
  const ASKED = { model: "nova", messages: user("hi"), thinking: { type: "enabled" } };

  it("is the same whole and streamed", async (t) => {
    const { chat } = await start(t, (asked) =>
      asked.path.endsWith("-stream") ? streamed(...STREAM)(asked) : status(200, REPLY)(asked),
    );
    const whole = await json(await chat(ASKED));
    const { chunks, done } = await readStream(
      await chat({ ...ASKED, stream: true, stream_options: { include_usage: true } }),
    );
    assert.equal(done, true);
    const calls = [
      { id: "t1", type: "function", function: { name: "look", arguments: '{"at":1}' } },
    ];
    const message = {
      role: "assistant",
      content: "Hello.",
      reasoning_content: "Hm.",
      tool_calls: calls,
    };
    assert.deepEqual(whole.choices[0].message, message);
    assert.deepEqual(assemble(chunks).message, message);
    for (const [finish, usage] of [
      [whole.choices[0].finish_reason, whole.usage],
      [assemble(chunks).finish_reason, chunks.at(-1)!.usage],
    ]) {
      assert.equal(finish, "tool_calls");
      assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [10, 7]);
      assert.equal(usage.prompt_tokens_details.cached_tokens, 3);
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
      const { chat } = await start(t, streamed(...frames));
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

  it("that is an exception has the code of its kind", () => {
    const codeOf = (type: string): unknown => {
      try {
        createConverseDecoder().push({ [type]: { message: "no" } });
      } catch (error) {
        return (error as { code: unknown }).code;
      }
      return assert.fail("nothing was thrown");
    };
    assert.deepEqual(
      ["throttling", "validation", "serviceUnavailable", "modelStreamError", "internalServer"].map(
        (kind) => codeOf(`${kind}Exception`),
      ),
      [
        "model_overloaded",
        "upstream_rejected",
        "model_overloaded",
        "upstream_error",
        "upstream_error",
      ],
    );
  });

  it("is refused by its status and Amazon's type", async (t) => {
    const { chat } = await start(t, (asked) =>
      status(
        400,
        { message: "The model returned: input is too long" },
        {
          "content-type": "application/json",
          "x-amzn-errortype": "ValidationException:http://internal.amazon.com/",
        },
      )(asked),
    );
    const answer = await chat({ model: "nova", messages: user("hi") });
    assert.deepEqual([answer.status, (await json(answer)).error.code], [400, "upstream_rejected"]);
    const exception = await start(t, streamed(exceptionFrame("throttlingException", "slow")));
    const overloaded = await exception.chat({ model: "nova", messages: user("hi"), stream: true });
    assert.equal(overloaded.status, 503);
    const unmodelled = errorFrame("ThrottlingException", "Too many requests");
    const error = await start(t, streamed(unmodelled));
    const told = await error.chat({ model: "nova", messages: user("hi"), stream: true });
    assert.deepEqual([told.status, (await json(told)).error.code], [503, "model_overloaded"]);
    const long = await start(t, status(400, { message: "Input is too long for requested model." }));
    const { error: tooLong } = await json(await long.chat({ model: "nova", messages: user("hi") }));
    assert.equal(tooLong.code, "context_length_exceeded");
  });
});
