// Models that only stream (the trait stream_only): their whole replies are assembled from a stream.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { assemble, configFor, json, readStream, user } from "../../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../../support/memory.ts";
import {
  chunk,
  completion,
  speak,
  status,
  stream,
  usageChunk,
  USAGE,
  type Behaviour,
} from "../../../support/provider.ts";

const ON = { thinking: { type: "enabled" } };
const TOOLS = [{ type: "function", function: { name: "f" } }];

/** A gateway before the model "m", which only streams, and "both": an alias for it and then "ok". */
function before(t: TestContext, behaviour: Behaviour) {
  const { url } = memoryProvider(t, { m: behaviour, ok: speak("Fine.") });
  const over = {
    models: { m: { stream_only: true } },
    aliases: { both: { models: ["m", "ok"] } },
  };
  return createMemoryGateway(configFor(url, ["m", "ok"], over));
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
    ["an error event", stream([...half, { error: { code: 429 } }]), [503, "model_overloaded"]],
    ["a finish that is a failure", stream([...half, chunk({}, "abort")]), [503, "upstream_error"]],
    ["a refusal", status(400, { error: { message: "no" } }), [400, "upstream_rejected"]],
  ];
  for (const [name, behaviour, expected] of FAILURES)
    it(`${name}: nobody has seen any of it, so an alias asks the next one`, async (t) => {
      const gw = before(t, behaviour);
      const outcome = async (model: string) => {
        const response = await gw.chat({ model, messages: user("hi") });
        const { error, model: served } = await json(response);
        return [response.status, error?.code ?? served];
      };
      assert.deepEqual(await outcome("m"), expected);
      assert.deepEqual(await outcome("both"), expected[0] === 503 ? [200, "ok"] : expected);
    });

  it("what breaks after the finish takes nothing from the reply; a whole answer all the same is taken", async (t) => {
    for (const behaviour of [
      stream([...half, chunk({}, "stop")], "cut"),
      status(200, completion({ content: "Hello." })),
    ]) {
      const gw = before(t, behaviour);
      const {
        choices: [{ message, finish_reason }],
      } = await json(await gw.chat({ model: "m", messages: user("hi") }));
      assert.deepEqual([message.content, finish_reason], ["Hello.", "stop"]);
    }
  });
});
