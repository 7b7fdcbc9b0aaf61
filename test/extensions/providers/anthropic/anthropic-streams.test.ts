// Where an Anthropic stream ends, and that it is one reply: what follows its end counts for
// nothing, however the bytes are cut, and another reply inside it is a fault.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import {
  assemble,
  assertSound,
  configFor,
  json,
  readStream,
  startGateway,
  user,
} from "../../../support/gateway.ts";
import { rawStream, startProvider } from "../../../support/provider.ts";

type Event = Readonly<Record<string, unknown>>;

const start = (id: unknown): Event => ({
  type: "message_start",
  message: {
    id,
    type: "message",
    role: "assistant",
    content: [],
    usage: { input_tokens: 20, output_tokens: 1 },
  },
});
const open = (index: number, content_block: object): Event => ({
  type: "content_block_start",
  index,
  content_block,
});
const delta = (index: number, given: object): Event => ({
  type: "content_block_delta",
  index,
  delta: given,
});
const text = (index: number, said: string): Event =>
  delta(index, { type: "text_delta", text: said });
const json_delta = (index: number, partial_json: string): Event =>
  delta(index, { type: "input_json_delta", partial_json });
const END: readonly Event[] = [
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } },
  { type: "message_stop" },
];
const REPLY: readonly Event[] = [
  start("msg_1"),
  open(0, { type: "text", text: "" }),
  text(0, "Hel"),
  text(0, "lo."),
  { type: "content_block_stop", index: 0 },
  ...END,
];
const SIZES = [Infinity, 1_000, 50, 7, 1];

/** What a client gets of a stream of these events, in pieces of `size`. */
async function replay(t: TestContext, events: readonly Event[], size: number) {
  const framed = events.map(
    (each) => `event: ${String(each["type"])}\ndata: ${JSON.stringify(each)}\n\n`,
  );
  const provider = await startProvider(t, rawStream(framed.join(""), size));
  const gateway = await startGateway(
    t,
    configFor(provider.url, ["m"], {
      providers: { lab: { dialect: "anthropic", thinking: "adaptive" } },
    }),
  );
  return await gateway.chat({
    model: "m",
    messages: user("hi"),
    stream: true,
    stream_options: { include_usage: true },
    tools: [{ type: "function", function: { name: "f" } }],
    tool_choice: "auto",
  });
}

describe("what follows message_stop", { concurrency: 2 }, () => {
  const FOLLOWING: readonly [what: string, events: readonly Event[]][] = [
    ["more text", [open(1, { type: "text", text: "ghost" }), text(1, "ghost")]],
    ["a tool call", [open(1, { type: "tool_use", id: "toolu_9", name: "f", input: {} })]],
    ["an error", [{ type: "error", error: { type: "overloaded_error", message: "x" } }]],
    ["other figures", [{ type: "message_delta", delta: {}, usage: { output_tokens: 99 } }]],
    ["another reply", [start("msg_2"), ...REPLY.slice(1)]],
  ];
  for (const [what, events] of FOLLOWING) {
    for (const size of SIZES) {
      it(`${what}${size === Infinity ? "" : `, in pieces of ${size}`}: no part of the reply`, async (t) => {
        const { chunks, done, error } = await readStream(
          await replay(t, [...REPLY, ...events], size),
        );
        assertSound(chunks, "m");
        assert.deepEqual([done, error], [true, undefined]);
        const { message, finish_reason } = assemble(chunks);
        assert.deepEqual(
          [message, finish_reason],
          [{ role: "assistant", content: "Hello." }, "stop"],
        );
        const { usage } = chunks.at(-1)!;
        assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [20, 7]);
      });
    }
  }
});

describe("a second message_start", { concurrency: 2 }, () => {
  const begun = [
    start("msg_1"),
    open(0, { type: "tool_use", id: "toolu_1", name: "f", input: {} }),
  ];
  const half = json_delta(0, '{"value":"Spark');

  for (const second of ["msg_2", undefined, null, { toString: 1 }]) {
    for (const size of SIZES) {
      it(`with the id ${JSON.stringify(second)}, in pieces of ${size}: an error, and no spliced call`, async (t) => {
        const spliced = [
          ...begun,
          half,
          start(second),
          open(0, { type: "tool_use", id: "toolu_2", name: "f", input: {} }),
          json_delta(0, '{"value":"Sparkle"}'),
          ...END,
        ];
        const { chunks, done, error } = await readStream(await replay(t, spliced, size));
        assertSound(chunks, "m", { finished: false });
        assert.deepEqual([done, error?.code], [false, "upstream_error"]);
        const { message } = assemble(chunks);
        assert.deepEqual(
          message["tool_calls"].map((call: any) => [call.id, call.function.arguments]),
          [["toolu_1", '{"value":"Spark']],
        );
      });
    }
  }

  it("before the first delta: the request fails with a status of its own", async (t) => {
    const response = await replay(t, [start("msg_1"), start("msg_2"), ...REPLY.slice(1)], Infinity);
    assert.deepEqual([response.status, (await json(response)).error.code], [503, "upstream_error"]);
  });

  it("with the same id, or where neither has one, is the same reply", async (t) => {
    for (const id of ["msg_1", undefined]) {
      const twice = [start(id), start(id), ...REPLY.slice(1)];
      const { chunks, done } = await readStream(await replay(t, twice, Infinity));
      assert.deepEqual([assemble(chunks).message["content"], done], ["Hello.", true]);
    }
  });

  it("after the reply is finished changes nothing of it", async (t) => {
    const late = [...REPLY.slice(0, -1), start("msg_2"), ...REPLY.slice(1)];
    const { chunks, done } = await readStream(await replay(t, late, Infinity));
    assert.deepEqual([assemble(chunks).message["content"], done], ["Hello.", true]);
  });
});
