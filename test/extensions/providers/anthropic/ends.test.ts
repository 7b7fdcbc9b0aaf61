// Where an Anthropic stream ends, and that it is one reply: what follows its end counts for nothing,
// and another reply inside it is a fault.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import {
  assemble,
  assertSound,
  configFor,
  json,
  merge,
  readStream,
  user,
} from "../../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../../support/memory.ts";
import { rawStream } from "../../../support/provider.ts";
import { targetOf } from "../dialect-bench.ts";
import {
  block,
  ended,
  input,
  message,
  say,
  start,
  STOP,
  streamOf,
  textBlock,
  toolUse,
} from "./events.ts";

type Json = Record<string, any>;

const decoderOf = (native?: { dialect: string; body: object; headers: object }) =>
  createAnthropicDialect(createSignatureStore()).decoder(
    targetOf({ dialect: "anthropic" }, { reasoning: true }),
    native as never,
  );

describe("the end of a stream", () => {
  const begin = (id: unknown) =>
    merge(start([], { input_tokens: 20, output_tokens: 1 }), { message: { id } }) as object;
  const rest = [...streamOf([textBlock("Hello.")]), ended(), STOP];
  const REPLY = [begin("msg_1"), ...rest];
  const call = (id: string) => toolUse(id, "f", {});

  /** What a client gets of a stream of these events, in pieces of `size` bytes. */
  async function replay(t: TestContext, events: readonly object[], size = Infinity) {
    const framed = events.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
    const { url } = memoryProvider(t, rawStream(framed, size));
    const providers = { lab: { dialect: "anthropic", thinking: "adaptive" } };
    const gateway = createMemoryGateway(configFor(url, ["m"], { providers }));
    return await gateway.chat({
      model: "m",
      messages: user("hi"),
      stream: true,
      stream_options: { include_usage: true },
      tools: [{ type: "function", function: { name: "f" } }],
      tool_choice: "auto",
    });
  }

  const FOLLOWING: readonly [what: string, events: readonly object[]][] = [
    ["more text", block(1, textBlock("ghost"), say("ghost"))],
    ["a tool call", block(1, call("toolu_9"))],
    ["an error", [{ type: "error", error: { type: "overloaded_error", message: "x" } }]],
    ["other figures", [{ type: "message_delta", delta: {}, usage: { output_tokens: 99 } }]],
    ["another reply", [begin("msg_2"), ...rest]],
  ];
  for (const [what, events] of FOLLOWING)
    it(`is message_stop: ${what} after it is no part of the reply, however the bytes are cut`, async (t) => {
      for (const size of [Infinity, 50, 1]) {
        const answer = await replay(t, [...REPLY, ...events], size);
        const { chunks, done, error } = await readStream(answer);
        assertSound(chunks, "m");
        assert.deepEqual([done, error], [true, undefined]);
        const { message, finish_reason } = assemble(chunks);
        assert.deepEqual(message, { role: "assistant", content: "Hello." });
        const { prompt_tokens, completion_tokens } = chunks.at(-1)!.usage;
        assert.deepEqual([finish_reason, prompt_tokens, completion_tokens], ["stop", 20, 7]);
      }
    });

  it("is message_stop, although the connection stays", () => {
    const { push, ended: isOver } = decoderOf();
    const over = [begin("1"), ended(), { type: "ping" }, STOP].map((each) => {
      push(each);
      return isOver?.();
    });
    assert.deepEqual(over, [false, false, false, true]);
  });

  for (const second of ["msg_2", undefined, null, { toString: 1 }])
    it(`is an error where another reply begins, with the id ${JSON.stringify(second)}: no call is spliced`, async (t) => {
      const spliced = [
        begin("msg_1"),
        ...block(0, call("toolu_1"), input('{"value":"Spark')).slice(0, -1),
        second === undefined ? { type: "message_start", message: {} } : begin(second),
        ...block(0, call("toolu_2"), input('{"value":"Sparkle"}')),
        ended(),
        STOP,
      ];
      for (const size of [Infinity, 50, 1]) {
        const { chunks, done, error } = await readStream(await replay(t, spliced, size));
        assertSound(chunks, "m", { finished: false });
        assert.deepEqual([done, error?.code], [false, "upstream_error"]);
        const calls = assemble(chunks).message["tool_calls"];
        assert.deepEqual(
          calls.map((each: Json) => [each["id"], each["function"].arguments]),
          [["toolu_1", '{"value":"Spark']],
        );
      }
    });

  it("before the first delta: a second beginning is a failure with a status of its own", async (t) => {
    const response = await replay(t, [begin("msg_1"), begin("msg_2"), ...rest]);
    assert.deepEqual([response.status, (await json(response)).error.code], [503, "upstream_error"]);
  });

  for (const [name, events] of [
    ["with the same id", [begin("msg_1"), ...REPLY]],
    ["where neither has an id", [begin(undefined), begin(undefined), ...rest]],
    ["after the finish", [...REPLY.slice(0, -1), begin("msg_2"), ...rest]],
  ] as const)
    it(`is not a second beginning ${name}`, async (t) => {
      const { chunks, done } = await readStream(await replay(t, events));
      assert.deepEqual([assemble(chunks).message["content"], done], ["Hello.", true]);
    });

  it("as a whole message after its events passes to a client of this format as their end alone", () => {
    const native = { dialect: "anthropic", body: {}, headers: {} };
    const { push } = decoderOf(native);
    const repeated = message([textBlock("Hi.")], "end_turn");
    for (const each of [start(), ...streamOf([textBlock("Hi.")])]) push(each);
    assert.deepEqual(
      push(repeated).filter(({ type }) => type !== "usage"),
      [
        { type: "native", event: ended("end_turn", repeated.usage), content: false },
        { type: "finish", reason: "stop" },
      ],
    );
  });
});
