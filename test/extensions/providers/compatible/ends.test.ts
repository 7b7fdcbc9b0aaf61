// Where replies of OpenAI-compatible servers end: streams without a finish_reason, filters, and
// whole replies assembled from a stream (the trait stream_only).

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import {
  assemble,
  configFor,
  json,
  readStream,
  user,
  startGateway,
} from "../../../support/gateway.ts";
import {
  chunk,
  completion,
  speak,
  status,
  stream,
  usageChunk,
  USAGE,
  type Behaviour,
  startProvider,
} from "../../../support/provider.ts";
import { errorOf } from "../dialect-bench.ts";
import { call, choice, decoderWith, delta, streamed } from "./events.ts";

/** A gateway before the model "m" with these traits, and "both": an alias for it and then "ok". */
async function before(t: TestContext, m: Behaviour, traits: object = {}) {
  const { url, asked } = await startProvider(t, { m, ok: speak("Fine.") });
  const over = { models: { m: traits }, aliases: { both: { models: ["m", "ok"] } } };
  return { asked, ...(await startGateway(t, configFor(url, ["m", "ok"], over))) };
}

describe("a stream that ends with [DONE] and has no finish_reason", () => {
  const usage = { prompt_tokens: 3, completion_tokens: 2 };
  const SAID = [delta({ content: "Hi" }), delta({ content: "." })];
  const FIGURES = { choices: [], usage };
  const CALLS = [delta({ tool_calls: [{ index: 0, ...call("call_12345", "f") }] })];
  const NAMELESS = delta({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] });
  const DONE = "[DONE]";
  const CUT = "upstream_error";
  const IS_DONE = { done_without_finish: true };
  const IS_CUT = { done_without_finish: false };
  /** `expected`: the finish that a client sees, or the code of its error. */
  const CASES: [name: string, events: unknown[], expected: string, traits?: object][] = [
    ["with usage is complete", [...SAID, FIGURES, DONE], "stop"],
    ["with usage in its last chunk is complete", [...SAID, { ...SAID[0], usage }, DONE], "stop"],
    ["with usage and calls ends in them", [...CALLS, FIGURES, DONE], "tool_calls"],
    ["without usage is cut off", [...SAID, DONE], CUT],
    ["without [DONE] is cut off", [...SAID, FIGURES], CUT],
    ["and says nothing is no reply", [FIGURES, DONE], CUT],
    ["with a call that has no name is a failure", [NAMELESS, ...SAID, FIGURES, DONE], CUT],
    ["without usage is complete if the trait says so", [...SAID, DONE], "stop", IS_DONE],
    ["without [DONE] is cut off whatever the trait says", SAID, CUT, IS_DONE],
    ["with usage is cut off if the trait says so", [...SAID, FIGURES, DONE], CUT, IS_CUT],
  ];
  for (const [name, events, expected, traits] of CASES)
    it(name, async (t) => {
      const { chat } = await before(t, stream(events, "eof"), traits);
      const response = await chat({ model: "m", stream: true, messages: user("hi") });
      if (response.status !== 200) {
        assert.equal((await json(response)).error.code, expected);
        return;
      }
      const { chunks, done, error } = await readStream(response);
      assert.equal(done ? assemble(chunks).finish_reason : error?.code, expected);
    });

  it("is a failure if a choice has an error", () => {
    const failing = choice({ delta: {}, error: { code: 503, message: "overloaded" } }, "error");
    assert.equal(errorOf(() => decoderWith().push(failing)).code, "model_overloaded");
  });

  it("keeps a finish_reason that arrived earlier", () => {
    const finished = decoderWith();
    finished.push({ ...delta({ content: "Hi." }, "length"), usage });
    assert.deepEqual(finished.done?.(), []);
  });
});

const filter = { content_filter_results: { hate: { filtered: false, severity: "safe" } } };
const first = { id: "", choices: [], prompt_filter_results: [{ prompt_index: 0, ...filter }] };
/** An asynchronous filter's event about earlier text: no id, and no delta. */
const later = { id: "", ...choice({ ...filter, content_filter_offsets: { check_offset: 44 } }) };

for (const [finish, last] of [
  ["stop", [later]],
  ["content_filter", []],
] as const)
  it(`a stream of Azure OpenAI ends with the finish ${finish}, and the filter's events are not part of the reply`, () => {
    assert.deepEqual(decoderWith().push(first), []);
    const words = [delta({ role: "assistant", content: "" }), delta({ content: "Hi." }), later];
    const reply = streamed([first, ...words, delta({}, finish), ...last]);
    assert.deepEqual([reply.text, reply.finish], ["Hi.", finish]);
  });

it("a whole reply whose message a filter removed is a reply, and no other without a message is", () => {
  for (const fields of [{}, { message: null }]) {
    assert.equal(compatibleDialect.isReply(choice(fields, "content_filter")), true);
    assert.deepEqual(decoderWith().push(choice(fields, "content_filter")), [
      { type: "finish", reason: "content_filter" },
    ]);
    for (const finish of ["stop", "length", null])
      assert.equal(compatibleDialect.isReply(choice(fields, finish)), false);
  }
});

describe("models that only stream", () => {
  const ONLY = { stream_only: true };
  const whole = { model: "m", messages: user("hi") };

  it("give a whole reply from a stream, which is requested with usage", async (t) => {
    const tokens = [{ token: "lo.", logprob: -1, bytes: null, top_logprobs: [] }];
    const logprobs = { content: tokens, refusal: null };
    const fragment = (id: string | undefined, args: string) =>
      chunk({ tool_calls: [{ index: 0, ...call(id, id && "f", args) }] });
    const events = [
      chunk({ reasoning_content: "Let me." }),
      chunk({ content: "Hel" }),
      choice({ delta: { content: "lo." }, logprobs }),
      fragment("a", '{"x"'),
      fragment(undefined, ":1}"),
      chunk({}, "tool_calls"),
      usageChunk(),
    ];
    const { chat, asked } = await before(t, stream(events), ONLY);
    const request = {
      ...whole,
      thinking: { type: "enabled" },
      tools: [{ type: "function", function: { name: "f" } }],
      tool_choice: "auto",
      logprobs: true,
    };
    const response = await chat(request);
    assert.equal(response.headers.get("content-type"), "application/json");
    const { choices, usage } = await json(response);
    const include_usage = { stream: true, stream_options: { include_usage: true } };
    const { chunks } = await readStream(await chat({ ...request, ...include_usage }));
    const { message, finish_reason, logprobs: listed } = assemble(chunks);
    assert.deepEqual(message, {
      role: "assistant",
      content: "Hello.",
      reasoning_content: "Let me.",
      tool_calls: [call("a", "f", '{"x":1}')],
    });
    const [given] = choices;
    assert.deepEqual([given.message, given.finish_reason], [message, finish_reason]);
    assert.deepEqual([given.logprobs.content, listed], [tokens, tokens]);
    assert.deepEqual(usage, chunks.at(-1)!.usage);
    assert.equal(usage.completion_tokens, USAGE.completion_tokens);
    const [sent, streamed] = asked;
    assert.equal(sent!.headers.accept, "text/event-stream");
    assert.deepEqual(sent!.body, { ...sent!.body, ...include_usage });
    assert.deepEqual(streamed!.body, sent!.body);
  });

  const half = [chunk({ content: "Hel" }), chunk({ content: "lo." })];
  const BUSY = { error: { code: 429 } };
  const FAILURES: [name: string, behaviour: Behaviour, code: number, error: string][] = [
    ["a reset in its middle", stream(half, "cut"), 503, "upstream_error"],
    ["an error event", stream([...half, BUSY]), 503, "model_overloaded"],
    ["a finish that means failure", stream([...half, chunk({}, "abort")]), 503, "upstream_error"],
    ["a refusal", status(400, { error: { message: "no" } }), 400, "upstream_rejected"],
  ];
  for (const [name, behaviour, code, error] of FAILURES)
    it(`${name}: the client has seen none of it, so an alias tries the next one`, async (t) => {
      const { chat } = await before(t, behaviour, ONLY);
      const named = await chat(whole);
      assert.deepEqual([named.status, (await json(named)).error.code], [code, error]);
      const both = await chat({ ...whole, model: "both" });
      assert.equal((await json(both)).model, code === 503 ? "ok" : undefined);
    });

  for (const [name, behaviour] of [
    ["a break after the finish", stream([...half, chunk({}, "stop")], "cut")],
    ["a whole answer all the same", status(200, completion({ content: "Hello." }))],
  ] as const)
    it(`${name}: the reply is complete`, async (t) => {
      const { choices } = await json(await (await before(t, behaviour, ONLY)).chat(whole));
      const [{ message, finish_reason }] = choices;
      assert.deepEqual([message.content, finish_reason], ["Hello.", "stop"]);
    });
});
