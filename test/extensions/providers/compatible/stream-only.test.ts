// Models that only stream (the trait stream_only): their whole replies are assembled from a stream.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { assemble, configFor, json, readStream, user } from "../../../support/gateway.ts";
import {
  createMemoryGateway,
  memoryProvider,
  type MemoryGateway,
} from "../../../support/memory.ts";
import {
  chunk,
  completion,
  endless,
  event,
  reset,
  speak,
  status,
  stream,
  usageChunk,
  USAGE,
  type Behaviour,
} from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";

const ON = { thinking: { type: "enabled" } };
const TOOLS = [{ type: "function", function: { name: "f" } }];

/** The vendor's model "m", and "both": an alias for it and then "ok", which has no more room. */
async function failing(
  t: TestContext,
  vendor: string,
  behaviour: Behaviour,
  settings: object = {},
) {
  const provider = memoryProvider(t, { m: behaviour, ok: speak("Fine.") });
  const over = {
    providers: {
      shop: { vendor, base_url: provider.url },
      other: { dialect: "openai", base_url: provider.url },
    },
    models: {
      m: { provider: "shop", context_tokens: 9_000, ...settings },
      ok: { provider: "other", context_tokens: 9_000 },
    },
    aliases: { both: { models: ["m", "ok"] } },
  };
  return { ...provider, gw: createMemoryGateway(configFor(provider.url, ["m"], over)) };
}

/** Status, and the model that served or the code of the error, whole or streamed. */
async function outcome(gw: MemoryGateway, request: object): Promise<[number, string]> {
  const response = await gw.chat({ messages: user("hi"), ...request });
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    const { chunks, done, error } = await readStream(response);
    assert.equal(done, error === undefined);
    return [response.status, error?.code ?? chunks[0]!.model];
  }
  const body = await json(response);
  return [response.status, body.error?.code ?? body.model];
}

describe("models that only stream", { concurrency: 2 }, () => {
  const setting = { stream_only: true };
  const events = [
    chunk({ role: "assistant", content: "" }),
    chunk({ reasoning_content: "Let " }),
    chunk({ reasoning_content: "me." }),
    chunk({ content: "Hel" }),
    {
      ...chunk({ content: "lo." }),
      choices: [
        {
          index: 0,
          delta: { content: "lo." },
          finish_reason: null,
          logprobs: { content: [{ token: "lo.", logprob: -1, bytes: null, top_logprobs: [] }] },
        },
      ],
    },
    chunk({
      tool_calls: [
        { index: 0, id: "a", type: "function", function: { name: "f", arguments: '{"x"' } },
      ],
    }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }),
    chunk({}, "tool_calls"),
    usageChunk(),
  ];

  it("a stream without end is cut at the size that whole replies are cut at", async (t) => {
    const provider = memoryProvider(t, {
      m: endless("text/event-stream", event(chunk({ content: "x".repeat(1024 * 1024) }))),
    });
    const gw = createMemoryGateway(configFor(provider.url, ["m"], { models: { m: setting } }));
    const response = await gw.chat({ model: "m", messages: user("hi") });
    assert.deepEqual([response.status, (await json(response)).error.code], [503, "upstream_error"]);
    await waitFor(
      () =>
        gw.diagnostics.some(({ detail }) =>
          String(detail).includes("a reply of more than 16777216 bytes"),
        ),
      "the diagnostic line",
    );
  });

  it("a whole reply is what the stream says; what goes out is a request for a stream, with its usage", async (t) => {
    const provider = memoryProvider(t, { m: stream(events) });
    const over = (vendor: string) => ({
      providers: { shop: { vendor, base_url: provider.url } },
      models: { m: { provider: "shop", ...setting } },
    });
    for (const [vendor, usage] of [
      ["qwen", { stream_options: { include_usage: true } }],
      ["zhipu", {}],
    ] as const) {
      const gw = createMemoryGateway(configFor(provider.url, ["m"], over(vendor)));
      const request = {
        model: "m",
        messages: user("hi"),
        ...ON,
        tools: TOOLS,
        tool_choice: "auto",
        ...(vendor === "qwen" && { logprobs: true }),
      };
      const response = await gw.chat(request);
      assert.deepEqual(
        [response.status, response.headers.get("content-type")],
        [200, "application/json"],
      );
      const {
        choices: [choice],
        usage: counted,
      } = await json(response);
      const { body, headers } = provider.asked.at(-1)!;
      assert.equal(headers.accept, "text/event-stream");
      assert.deepEqual(
        [body["stream"], body["stream_options"]],
        [true, "stream_options" in usage ? usage.stream_options : undefined],
      );
      const { chunks } = await readStream(
        await gw.chat({ ...request, stream: true, stream_options: { include_usage: true } }),
      );
      assert.deepEqual(provider.asked.at(-1)!.body, body);
      const streamed = assemble(chunks);
      assert.deepEqual(choice.message, {
        role: "assistant",
        content: "Hello.",
        reasoning_content: "Let me.",
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } }],
      });
      assert.deepEqual(
        [choice.message, choice.finish_reason, choice.logprobs?.content ?? [], counted],
        [streamed.message, streamed.finish_reason, streamed.logprobs, chunks.at(-1)!.usage],
      );
      assert.deepEqual(
        [
          choice.logprobs?.content.length,
          counted.completion_tokens,
          counted.prompt_cache_hit_tokens,
        ],
        [vendor === "qwen" ? 1 : undefined, USAGE.completion_tokens, 8],
      );
    }
  });

  const half = [chunk({ content: "Hel" }), chunk({ content: "lo." })];
  const FAILURES: [name: string, behaviour: Behaviour, expected: [number, string]][] = [
    ["a reset in its middle", stream(half, "cut"), [503, "upstream_error"]],
    ["an end without a finish", stream(half, "eof"), [503, "upstream_error"]],
    ["[DONE] without a finish", stream(half), [503, "upstream_error"]],
    [
      "an error event in its middle",
      stream([...half, { error: { code: 429, message: "slow down" } }]),
      [503, "model_overloaded"],
    ],
    [
      "an error event of the client's making",
      stream([...half, { error: { code: 400, message: "content_filter" } }]),
      [400, "content_filter"],
    ],
    [
      "a finish that is a failure",
      stream([...half, chunk({}, "network_error")]),
      [503, "upstream_error"],
    ],
    ["a reset at once", reset, [503, "upstream_error"]],
    ["a refusal", status(400, { error: { message: "no" } }), [400, "upstream_rejected"]],
  ];
  for (const [name, behaviour, expected] of FAILURES) {
    it(`${name}: nobody has seen any of it, so an alias asks the next one`, async (t) => {
      const { gw } = await failing(t, "qwen", behaviour, setting);
      assert.deepEqual(await outcome(gw, { model: "m" }), expected);
      assert.deepEqual(
        await outcome(gw, { model: "both" }),
        expected[0] === 503 ? [200, "ok"] : expected,
      );
    });
  }

  it("what breaks after the finish takes nothing from the reply; a whole answer all the same is taken", async (t) => {
    for (const behaviour of [
      stream([...half, chunk({}, "stop")], "cut"),
      status(200, completion({ content: "Hello." })),
    ]) {
      const { gw } = await failing(t, "qwen", behaviour, setting);
      const {
        choices: [{ message, finish_reason }],
      } = await json(await gw.chat({ model: "m", messages: user("hi") }));
      assert.deepEqual([message.content, finish_reason], ["Hello.", "stop"]);
    }
  });
});
