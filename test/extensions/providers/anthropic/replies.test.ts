// Reading Anthropic's replies, whole and streamed: content, token counts, failures, and the end of
// a stream.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { assemble, configFor, readStream, startGateway, user } from "../../../support/gateway.ts";
import { endless, startProvider } from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";
import { errorOf, replyTo, targetOf } from "../dialect-bench.ts";
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
  thought,
  toolUse,
  USAGE,
} from "./events.ts";

type Json = Record<string, any>;

const DECODED = targetOf({ dialect: "anthropic" }, { reasoning: true });
const newDialect = () => createAnthropicDialect(createSignatureStore());
const answers = (reply: object, events: readonly object[]) =>
  replyTo(newDialect, reply, events, DECODED);

describe("content, whole and streamed", () => {
  const REDACTED = { type: "redacted_thinking", data: "cmVkYWN0ZWQ=" };
  const F = toolUse("toolu_1", "f", { a: 1 });
  const G = toolUse("toolu_2", "g", {});
  const calledF = ["toolu_1", "f", '{"a":1}'];
  const calledG = ["toolu_2", "g", "{}"];
  const said = (text: string, reasoning = "", ...calls: string[][]) => ({ text, reasoning, calls });
  const SEARCH = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} };
  const FOUND = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] };
  const LISTED = { type: "mcp_tool_listing", mcp_server_name: "m", tools: [] };
  const HANDED = { type: "fallback", from: { model: "a" }, to: { model: "b" } };
  const NEWS = { type: "news", at: 1 };
  const HI = textBlock("Hi.");
  /**
   * The content, the expected result, and the events of the same content in a stream. Absent: each
   * block begins empty and has deltas.
   */
  const CASES: [string, object[], ReturnType<typeof said>, object[]?][] = [
    ["nothing", [], said("")],
    ["thinking that is not shown", [thought("", "c2ln"), HI], said("Hi.")],
    [
      "redacted thinking",
      [REDACTED, thought("a", "x"), REDACTED, thought("b", "y"), HI],
      said("Hi.", "ab"),
    ],
    ["parallel tools after text", [HI, F, G], said("Hi.", "", calledF, calledG)],
    [
      "several texts, one of which begins with its first letter, and has citations",
      [HI, { ...textBlock("two."), citations: [{ cited_text: "x" }] }],
      said("Hi.two."),
      [
        ...block(0, textBlock(""), say("Hi.")),
        ...block(1, textBlock("t"), { type: "citations_delta", citation: {} }, say("wo.")),
      ],
    ],
    ["input in the block's beginning", [F], said("", "", calledF), block(0, F)],
    [
      "input in the block's beginning, which deltas repeat",
      [F],
      said("", "", calledF),
      block(0, F, input('{"a"'), input(":1}")),
    ],
    ["input as a text in the whole reply", [{ ...F, input: '{"a":1}' }], said("", "", calledF)],
    [
      "content in the message's beginning",
      [F, thought("Hm.", "s"), HI, G],
      said("Hi.", "Hm.", calledF, calledG),
      [start([F, thought("Hm.", "s"), HI]), ...block(0, G)],
    ],
    [
      "the provider's own tools, pings, and unknown events and deltas are left out",
      [SEARCH, FOUND, HI, F],
      said("Hi.", "", calledF),
      [
        { type: "ping" },
        ...block(0, SEARCH, input('{"query":"x"}')),
        ...block(1, FOUND),
        ...block(2, textBlock(""), say("H"), { type: "news_delta", text: "no" }, say("i.")),
        { type: "news", text: "no", delta: { type: "text_delta", text: "no" } },
        ...block(3, { ...F, input: {} }, input('{"a":1}')),
      ],
    ],
    [
      "lists of a server's tools, and the place where another model goes on, are left out",
      [LISTED, textBlock("H"), HANDED, textBlock("i.")],
      said("Hi."),
    ],
    ["an unknown block becomes text", [HI, NEWS], said('Hi.{"type":"news","at":1}')],
    [
      "a whole message at the end of a stream, which repeats it",
      [HI, F],
      said("Hi.", "", calledF),
      [...streamOf([HI, F]), message([HI, F], "tool_use")],
    ],
  ];
  for (const [name, content, expected, events = streamOf(content)] of CASES)
    it(name, () => {
      const [stop, finish] = expected.calls.length
        ? ["tool_use", "tool_calls"]
        : ["end_turn", "stop"];
      const begins = events.some((event) => (event as Json)["type"] === "message_start");
      const streamed = [...(begins ? [] : [start()]), ...events, ended(stop), STOP];
      const { usage: _, ...reply } = answers(message(content, stop), streamed);
      assert.deepEqual(reply, { ...expected, finish });
    });
});

describe("token counts", () => {
  const CACHED = { prompt: 20, completion: 7, cacheHit: 8, reasoning: 0, cacheWrite: 2 };
  const NINE_WRITTEN = { ...CACHED, prompt: 27, cacheWrite: 9, cacheWrite1h: 6 };
  const HOUR_WRITTEN = { ...CACHED, cacheWrite1h: 2 };
  const PARTS_WRITTEN = { ...NINE_WRITTEN, prompt: 19, cacheHit: 0 };
  const ESTIMATED = { prompt: 1, completion: 7, cacheHit: 0, reasoning: 0, cacheWrite: 0 };
  const BEGUN = { ...USAGE, output_tokens: 1 };
  const NULLS = {
    input_tokens: null,
    cache_creation_input_tokens: null,
    cache_read_input_tokens: null,
    output_tokens_details: null,
  };
  const ZEROS = { input_tokens: 0, cache_read_input_tokens: 0 };
  const TWO_SPANS = { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 6 };
  const NO_SPANS = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 };
  const NINE = { ...USAGE, cache_creation_input_tokens: 9, cache_creation: TWO_SPANS };
  const NO_WRITES = { cache_creation_input_tokens: 0, cache_creation: NO_SPANS };
  const PARTS = { input_tokens: 10, cache_creation: TWO_SPANS, output_tokens: 7 };
  const HOUR_ALONE = { ...NO_SPANS, ephemeral_1h_input_tokens: 2 };
  const WRITTEN = { ...USAGE, cache_creation: HOUR_ALONE };
  const GROWN = { cache_creation_input_tokens: 9 };
  const ALL_HOUR = { ...NINE_WRITTEN, cacheWrite1h: 9 };
  const HOUR = { cache_creation: { ephemeral_1h_input_tokens: 90 } };
  const THOUGHT = { output_tokens_details: { thinking_tokens: 3 } };
  const LATER = { input_tokens: 90, cache_read_input_tokens: 8 };
  const TEN = { input_tokens: 10, output_tokens: 1 };
  const OUT = { output_tokens: 7 };
  const SUMMARY = { type: "compaction", ...NINE };
  const SUMMED = { iterations: [SUMMARY, { type: "message", ...USAGE }, SUMMARY] };
  const BOTH = { prompt: 74, completion: 21, cacheHit: 24, cacheWrite: 20, cacheWrite1h: 12 };
  // In a stream: the counts at its beginning, then those at its end besides the output.
  const COUNTS: [name: string, whole: Json, first: Json, last: Json, counts: typeof CACHED][] = [
    ["a cache stands beside the input", USAGE, BEGUN, {}, CACHED],
    ["nulls are no figures", USAGE, BEGUN, NULLS, CACHED],
    ["thinking is output", { ...USAGE, ...THOUGHT }, BEGUN, THOUGHT, { ...CACHED, reasoning: 3 }],
    ["a later figure counts", { ...USAGE, ...LATER }, USAGE, LATER, { ...CACHED, prompt: 100 }],
    ["zeros at the end are no figures", USAGE, BEGUN, ZEROS, CACHED],
    ["all of it at the end", USAGE, {}, USAGE, CACHED],
    ["an hour's share of more than all", { ...USAGE, ...HOUR }, BEGUN, HOUR, HOUR_WRITTEN],
    ["for an hour and for five minutes", NINE, NINE, { cache_creation: null }, NINE_WRITTEN],
    ["more for an hour at the end", { ...WRITTEN, ...GROWN }, WRITTEN, GROWN, ALL_HOUR],
    ["zeros for the parts of the cache writes", NINE, NINE, NO_WRITES, NINE_WRITTEN],
    ["only the parts of the cache writes", PARTS, TEN, PARTS, PARTS_WRITTEN],
    ["compactions too", { ...USAGE, ...SUMMED }, BEGUN, SUMMED, { ...CACHED, ...BOTH }],
    ["of the reply alone: the prompt is estimated", OUT, { output_tokens: 1 }, {}, ESTIMATED],
  ];
  for (const [name, usage, first, last, counts] of COUNTS)
    it(name, () => {
      const reply = answers(message([textBlock("Hi.")], "end_turn", usage), [
        start([], first),
        ...streamOf([textBlock("Hi.")]),
        ended(null, { output_tokens: 3 }),
        ended("end_turn", { ...OUT, ...last }),
        STOP,
      ]);
      assert.deepEqual(reply.usage, makeUsage(counts));
      assert.equal(reply.finish, "stop");
    });
});

it("a refusal without content is a filtered reply", () => {
  const refusal = { ...message([], "refusal"), content: null };
  const { text, finish } = answers(refusal, [start(), ended("refusal"), STOP]);
  assert.deepEqual([text, finish], ["", "content_filter"]);
});

it("an object of another type is not a reply", () => {
  assert.equal(errorOf(() => answers({ type: "completion" }, [])).code, "upstream_error");
});

const decoderOf = (native?: { dialect: string; body: object; headers: object }) =>
  newDialect().decoder(DECODED, native as never);

it("thinking with redacted text begins a reply", () => {
  const begun = decoderOf().push(streamOf([thought("", "c2ln")])[0]);
  assert.deepEqual(begun, [{ type: "reasoning", text: "" }]);
});

// Events after the end are ignored. Another reply inside a stream is a fault.
describe("the end of a stream", () => {
  const begin = (id: unknown) => ({ ...start(), message: { ...start().message, id } });
  const rest = [...streamOf([textBlock("Hello.")]), ended(), STOP];

  it("is message_stop, even if the connection stays open", () => {
    const { push, ended: isOver } = decoderOf();
    const over = [begin("1"), ended(), { type: "ping" }, STOP].map((each) => {
      push(each);
      return isOver?.();
    });
    assert.deepEqual(over, [false, false, false, true]);
  });

  it("closes the connection of a provider that sends on, and the reply is complete", async (t) => {
    const framed = [begin("1"), ...rest].map((each) => `data: ${JSON.stringify(each)}\n\n`);
    const { url, nth } = await startProvider(t, endless("text/event-stream", framed.join("")));
    const providers = { lab: { dialect: "anthropic", thinking: "adaptive" } };
    const { chat } = await startGateway(t, configFor(url, ["m"], { providers }));
    const answer = await chat({ model: "m", messages: user("hi"), stream: true });
    const { chunks, done } = await readStream(answer);
    assert.deepEqual([assemble(chunks).message["content"], done], ["Hello.", true]);
    const { closed } = await nth(0);
    await waitFor(closed, "the provider's connection to close");
  });

  for (const second of ["msg_2", undefined, null, { toString: 1 }])
    it(`is an error if another reply begins, with the id ${JSON.stringify(second)}`, () => {
      const { push, ended: isOver } = decoderOf();
      push(begin("msg_1"));
      const { code, usage, countsForBreaker } = errorOf(() => push(begin(second)));
      assert.deepEqual([code, usage, isOver?.()], ["upstream_error", undefined, true]);
      assert.equal(countsForBreaker, true);
    });

  for (const [name, events] of [
    ["with the same id", [begin("msg_1"), begin("msg_1"), ...rest]],
    ["where neither has an id", [begin(undefined), begin(undefined), ...rest]],
  ] as const)
    it(`is not a second beginning ${name}`, () => {
      const { push } = decoderOf();
      const texts = events.flatMap(push).map((part) => (part.type === "text" ? part.text : ""));
      assert.equal(texts.join(""), "Hello.");
    });

  it("is all that a client of this format gets of a whole message after its events", () => {
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
