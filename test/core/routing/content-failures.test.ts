// What one request's content does to a provider must not close the model to other clients. Each
// failure that a request can cause by what it says is shown here with its outcome, and that the
// breaker does not count it; then the faults that it does count.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Clock } from "../../../src/core/clock.ts";
import { assemble, configFor, json, merge, readStream, user } from "../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../support/memory.ts";
import {
  chunk,
  completion,
  endless,
  speak,
  status,
  stream,
  USAGE,
  type Behaviour,
} from "../../support/provider.ts";

const HTML = { "content-type": "text/html" };
const error = (message: string, more: object = {}) => ({ error: { message, ...more } });
const toolUseFailed = error("Tool choice is required, but model did not call a tool", {
  type: "invalid_request_error",
  code: "tool_use_failed",
  failed_generation: "maybe",
});

/** The same, whole and streamed. */
const either =
  (whole: unknown, events: readonly unknown[]): Behaviour =>
  (asked) =>
    (asked.body["stream"] || asked.path.includes("stream")
      ? stream(events, "eof")
      : status(200, whole))(asked);
const finishing = (word: string, more: object = {}): Behaviour =>
  either(completion({ content: "" }, word, more), [chunk({}, word)]);
const candidate = (given: object) => ({ candidates: [{ index: 0, ...given }] });
const gemini = (given: object): Behaviour => either(candidate(given), [candidate(given)]);
const begins = (id: string) => ({
  type: "message_start",
  message: { id, type: "message", role: "assistant", content: [], usage: {} },
});
const anthropicStart = begins("msg_1");
const nameless = { type: "tool_use", id: "toolu_1", input: {} };

/** The reply to a harmless request in the vendor's format. */
const fine = (vendor: string): Behaviour => {
  if (vendor === "gemini")
    return gemini({ content: { parts: [{ text: "Fine." }] }, finishReason: "STOP" });
  const message = {
    id: "msg_2",
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "Fine." }],
    stop_reason: "end_turn",
    usage: { input_tokens: 3, output_tokens: 2 },
  };
  if (vendor === "anthropic")
    return either(message, [
      { type: "message_start", message },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
      { type: "message_stop" },
    ]);
  return speak("Fine.");
};

/**
 * "m" of the vendor fails for requests that say "bad"; "both" is an alias for it and then "next",
 * which is well.
 */
async function bench(
  t: TestContext,
  vendor: string,
  bad: Behaviour,
  {
    time = {},
    ...over
  }: { readonly time?: Partial<Clock>; readonly [setting: string]: unknown } = {},
) {
  const provider = memoryProvider(t, (asked) =>
    (JSON.stringify(asked.body).includes('"bad"') ? bad : fine(vendor))(asked),
  );
  const other = memoryProvider(t, { next: speak("Rescued.") });
  const config = configFor(other.url, ["next"], {
    providers: { shop: { vendor, base_url: provider.url } },
    models: { m: { provider: "shop" } },
    aliases: { both: { models: ["m", "next"] } },
    breaker: { failures: 2, cooldown_ms: 10_000 },
  });
  const gateway = createMemoryGateway(merge(config, over) as object, time);
  /** Status, and the model that served or the code of the error. */
  async function ask(model: string, content: string, streaming = false): Promise<string> {
    const response = await gateway.chat({ model, stream: streaming, messages: user(content) });
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      const { chunks, error } = await readStream(response);
      return `${response.status} ${error?.code ?? chunks[0]!.model}`;
    }
    const body = await json(response);
    return `${response.status} ${body.error?.code ?? body.model}`;
  }
  const breaker = () => gateway.catalog.models.get("m")!.status();
  return { gateway, asked: provider.asked, others: other.asked, ask, breaker };
}

const REJECTED = "400 upstream_rejected";
const FAILED = "503 upstream_error";
const CLOSED = "503 model_unavailable";

interface Row {
  readonly what: string;
  readonly vendor: string;
  readonly bad: Behaviour;
  /**
   * What a client gets that names the model. One of the alias gets its answer from the next
   * candidate if that is a 503.
   */
  readonly named: string;
}
/** Rows with one outcome. `failures`: by `VENDOR: WHAT`. */
const rows = (named: string, failures: Readonly<Record<string, Behaviour>>): Row[] =>
  Object.entries(failures).map(([name, bad]) => {
    const [vendor = "", what = ""] = name.split(": ");
    return { vendor, what, bad, named };
  });
const refused = (code: number, message: string, more: object = {}): Behaviour =>
  status(code, error(message, more));
const NO_CHOICE = { id: "x", object: "chat.completion", choices: [], usage: USAGE };
const NAMELESS = [{ index: 0, id: "c", function: {} }];
const FILE_DENIED = "You do not have permission to access the File abc or it may not exist.";

const NOT_COUNTED: readonly Row[] = [
  ...rows(FAILED, {
    "groq: tool_use_failed as a 400": status(400, toolUseFailed),
    "groq: tool_use_failed inside a 200": either(toolUseFailed, [
      chunk({ role: "assistant", content: "" }),
      toolUseFailed,
    ]),
    "openai: invalid content as a 500": refused(500, "The model produced invalid content."),
    "sglang: a tool call that it cannot parse": refused(500, "error parsing tool call: raw='{'"),
    "llama.cpp: output that it cannot parse": refused(
      500,
      "Failed to parse input at pos 13: <tool_use>",
      { code: 500 },
    ),
    "openrouter: finish_reason error": finishing("error"),
    "gemini: a functionCall without a name": gemini({
      content: { parts: [{ functionCall: { args: {} } }] },
      finishReason: "STOP",
    }),
    "openai: a tool call without a name": either(
      completion({ content: null, tool_calls: NAMELESS }, "tool_calls"),
      [chunk({ tool_calls: NAMELESS }), chunk({}, "tool_calls")],
    ),
    "anthropic: a tool_use without a name": either(
      { ...anthropicStart.message, content: [nameless], stop_reason: "tool_use" },
      [anthropicStart, { type: "content_block_start", index: 0, content_block: nameless }],
    ),
    "openai: usage, and no choice": status(200, NO_CHOICE),
  }),
  ...rows(REJECTED, {
    "openai: a text quoted": refused(400, "messages.0: 'your credit balance is too low' is bad"),
    "gemini: a 403 for a file": refused(403, FILE_DENIED, {
      code: 403,
      status: "PERMISSION_DENIED",
    }),
  }),
];

const COUNTED: readonly Row[] = [
  ...rows(FAILED, {
    "openai: a page with status 200": status(200, "<html>", HTML),
    "openai: half a JSON": status(200, '{"choices":[{'),
    "openai: a JSON that is no reply": status(200, {}),
  }),
];

describe("a failure that one request's content causes", { concurrency: 2 }, () => {
  for (const { what, vendor, bad, named } of NOT_COUNTED) {
    it(`${vendor}: ${what}: ${named}, and the breaker stays closed`, async (t) => {
      const { gateway, ask, breaker, asked, others } = await bench(t, vendor, bad);
      for (const streaming of [false, true, false, true, false])
        assert.equal(await ask("m", "bad", streaming), named);
      const shared = await ask("both", "bad");
      if (named.startsWith("503")) assert.equal(shared, "200 next");
      else assert.equal(shared, named);
      assert.equal(others.length, shared === "200 next" ? 1 : 0);
      assert.equal(asked.length, 6, "every request reached the provider");
      const { state, failures, lastFault } = breaker();
      assert.deepEqual([state, failures ?? 0, lastFault], ["closed", 0, null]);
      const blames = new Set(gateway.diagnostics.map(({ blame = "provider" }) => blame));
      if (named === FAILED) assert.deepEqual([...blames], ["provider"]);
      assert.equal(await ask("m", "good"), "200 m", "another client is served");
    });
  }

  for (const { what, vendor, bad, named } of COUNTED) {
    it(`${vendor}: ${what} says something of the provider, so it counts`, async (t) => {
      const { ask, asked, breaker } = await bench(t, vendor, bad);
      const first = await ask("m", "bad");
      await ask("m", "bad");
      assert.deepEqual([first, breaker().state], [named, "open"]);
      assert.equal(await ask("m", "good"), CLOSED);
      assert.ok(asked.length <= 2);
    });
  }

  for (const [what, vendor, bad] of [
    ["a second reply inside a stream", "anthropic", stream(["msg_1", "msg_2"].map(begins), "eof")],
    ["an event without end", "generic", endless("text/event-stream", Buffer.alloc(1_048_576, "x"))],
  ] as const)
    it(`${vendor}: ${what} says something of the provider, so it counts`, async (t) => {
      const { ask, breaker } = await bench(t, vendor, bad);
      for (let count = 0; count < 2; count += 1) assert.equal(await ask("m", "bad", true), FAILED);
      assert.equal(breaker().state, "open");
    });

  it("the same model is asked again within max_retries, for another generation may succeed", async (t) => {
    let count = 0;
    const bad: Behaviour = (asked) => {
      count += 1;
      return (count === 1 ? status(400, toolUseFailed) : speak("Fine."))(asked);
    };
    const { ask, others } = await bench(t, "groq", bad, {
      retry: { max_retries: 1, backoff_ms: 1 },
    });
    assert.equal(await ask("both", "bad"), "200 m");
    assert.deepEqual([count, others.length], [2, 0]);
  });

  it("a probe that meets one says nothing of the provider: the next request is the probe", async (t) => {
    const clock = { now: 0 };
    const answers = [status(403, error("no")), status(400, toolUseFailed), speak("Fine.")];
    const { ask, asked, breaker } = await bench(t, "groq", (each) => answers.shift()!(each), {
      time: { monotonic: () => clock.now },
    });
    assert.equal(await ask("m", "bad"), CLOSED);
    assert.equal(await ask("m", "bad"), CLOSED, "it is open, and nobody is asked");
    assert.equal(asked.length, 1);
    clock.now += 10_000;
    assert.equal(await ask("both", "bad"), "200 next");
    assert.equal(breaker().state, "open", "neither closed nor opened anew");
    assert.equal(await ask("m", "bad"), "200 m", "at the same moment");
    assert.equal(breaker().state, "closed");
    assert.equal(asked.length, 3);
  });
});

describe("a reply of which a filter has left nothing", { concurrency: 2 }, () => {
  const filtered = (choice: object): object => ({
    id: "x",
    object: "chat.completion",
    model: "gpt",
    choices: [{ index: 0, finish_reason: "content_filter", logprobs: null, ...choice }],
    usage: { prompt_tokens: 15, completion_tokens: 19, total_tokens: 34 },
  });
  const prompt = { id: "", object: "", model: "", choices: [], prompt_filter_results: [] };
  const stopped = { promptFeedback: { blockReason: "MODEL_ARMOR" } };
  const REPLIES: readonly (readonly [name: string, vendor: string, behaviour: Behaviour])[] = [
    ["without a message", "openai", either(filtered({}), [prompt, filtered({})])],
    [
      "with a message of null",
      "openai",
      either(filtered({ message: null }), [prompt, filtered({ delta: null })]),
    ],
    ["a candidate without content", "gemini", gemini({ finishReason: "SAFETY" })],
    [
      "a candidate whose content is null",
      "gemini",
      gemini({ finishReason: "SPII", content: null }),
    ],
    ["a prompt that Model Armor stopped", "gemini", either(stopped, [stopped])],
    [
      "a refusal without content",
      "anthropic",
      either({ ...anthropicStart.message, content: null, stop_reason: "refusal" }, [
        anthropicStart,
        { type: "message_delta", delta: { stop_reason: "refusal" } },
        { type: "message_stop" },
      ]),
    ],
  ];
  for (const [name, vendor, behaviour] of REPLIES) {
    it(`${vendor}: ${name}: a filtered reply, not a fault`, async (t) => {
      const { gateway, asked, others, breaker } = await bench(t, vendor, behaviour, {
        retry: { max_retries: 2, backoff_ms: 1 },
        breaker: { failures: 1 },
      });
      const whole = await json(await gateway.chat({ model: "both", messages: user("bad") }));
      const [choice] = whole.choices;
      assert.deepEqual(
        [whole.model, choice.message.content, choice.finish_reason],
        ["m", "", "content_filter"],
      );
      const response = await gateway.chat({ model: "both", stream: true, messages: user("bad") });
      const { chunks, done } = await readStream(response);
      const streamed = assemble(chunks);
      assert.deepEqual(
        [done, streamed.message["content"], streamed.finish_reason],
        [true, "", "content_filter"],
      );
      assert.deepEqual([asked.length, others.length], [2, 0], "asked once for each request");
      const { state, lastFault } = breaker();
      assert.deepEqual([state, lastFault], ["closed", null]);
    });
  }

  it("a whole reply without a message that is not filtered is no reply", async (t) => {
    for (const finish_reason of ["stop", "length", null]) {
      const { ask } = await bench(t, "openai", status(200, filtered({ finish_reason })));
      assert.deepEqual([await ask("m", "bad"), await ask("both", "bad")], [FAILED, "200 next"]);
    }
  });
});
