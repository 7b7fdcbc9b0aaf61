// Every fault that a provider can show, for a client who named the model and for one who named an
// alias, whole and streamed: how often each provider is asked, what the client gets, and that the
// gateway serves on.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Clock } from "../../../src/core/clock.ts";
import {
  assemble,
  configFor,
  json,
  KEY,
  merge,
  readStream,
  startGateway,
  user,
} from "../../support/gateway.ts";
import {
  chunk,
  completion,
  endless,
  event,
  held,
  rawStream,
  reset,
  silent,
  speak,
  startProvider,
  status,
  stream,
  type Behaviour,
} from "../../support/provider.ts";
import {
  createMemoryGateway,
  memoryProvider,
  type MemoryGateway,
  type MemoryProvider,
} from "../../support/memory.ts";
import { PATIENCE_MS as ANSWER_MS, waitFor, within } from "../../support/wait.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const JSON_TYPE = { "content-type": "application/json" };
const words = (message: string, more: object = {}) => ({ error: { message, ...more } });
const begun = [chunk({ role: "assistant", content: "" }), chunk({ content: "Once" })];

/** A behaviour for each request in turn; the last one goes on. */
function inTurn(...behaviours: Behaviour[]): Behaviour {
  let count = 0;
  return (asked) => behaviours[Math.min(count++, behaviours.length - 1)]!(asked);
}

const streamedElse =
  (streamed: Behaviour, whole: Behaviour): Behaviour =>
  (asked) =>
    (asked.body["stream"] ? streamed : whole)(asked);

const filler = Buffer.alloc(1024 * 1024, "x");
const late: Behaviour = (asked) => {
  setImmediate(() => {
    speak("Fine.")(asked);
  });
};
const commentsAfterFinish: Behaviour = ({ res }) => {
  res.writeHead(200, { "content-type": "text/event-stream" });
  res.write(`${event(chunk({ content: "Fine." }))}${event(chunk({}, "stop"))}`);
  const beat = setInterval(() => res.write(": ping\n\n"), 50);
  res.on("close", () => clearInterval(beat));
};
const headersOnly: Behaviour = ({ res, body }) => {
  res
    .writeHead(200, { "content-type": body["stream"] ? "text/event-stream" : "application/json" })
    .flushHeaders();
};
const cutBody: Behaviour = ({ res, socket }) => {
  res.writeHead(200, { ...JSON_TYPE, "content-length": "99" });
  res.write("{", () => socket.resetAndDestroy());
};
const halfRefused: Behaviour = ({ res }) => {
  res.writeHead(401, { ...JSON_TYPE, "content-length": "99" });
  res.write("{");
};
const flood: Behaviour = ({ socket }) => {
  socket.write(`HTTP/1.1 200 OK\r\n${"x-filler: aaaaaaaaaaaaaaaa\r\n".repeat(3_000)}`);
};

interface Row {
  readonly fault: string;
  readonly behaviour: () => Behaviour;
  readonly only?: "whole" | "streamed";
  /** How often the faulty model's provider is asked. */
  readonly tries: number;
  /**
   * What a client who named the model gets: "ok", an error's code, or the code of an error inside
   * the stream.
   */
  readonly named: string;
  /** What a client of the alias gets: the model that served, or an error as above. */
  readonly alias: string;
  /** The other candidate's provider is asked as well. */
  readonly falls: boolean;
  readonly retryAfter?: string;
  /** The deadlines of an attempt, in ms; absent: long enough for a busy machine. */
  readonly patience?: number;
  /** What the provider does is not HTTP, so it is done on a socket. */
  readonly wire?: true;
}

/** Rows of faults that end alike; each behaviour is made anew for each request's test. */
const rows = (
  expected: readonly [tries: number, named: string, alias: string],
  behaviours: Readonly<Record<string, () => Behaviour>>,
  more: Partial<Row> = {},
): Row[] =>
  Object.entries(behaviours).map(([fault, behaviour]) => {
    const [tries, named, alias] = expected;
    return { fault, behaviour, tries, named, alias, falls: alias === "b", ...more };
  });
/**
 * The deadlines of an attempt, where the fault is not silence: beyond what an answer is waited for,
 * because an attempt that is let down otherwise must not wait for a deadline.
 */
const PATIENCE_MS = 10 * ANSWER_MS;
/** The fault is silence, or what goes on after the end. */
const BRIEF = { patience: 400 } as const;
const streamedOnly = { only: "streamed" } as const;
const inBand = (code: string) => [1, `in-band ${code}`, `in-band ${code}`] as const;
const overloaded = (retryAfter: string): Behaviour =>
  status(429, {}, { ...JSON_TYPE, "retry-after": retryAfter });
/** An error inside a 200. */
const inside = (error: object, whole = error): Behaviour =>
  streamedElse(stream([words("x", error)], "eof"), status(200, words("x", whole)));
const brokenKey = { type: "authentication_error" };
const limited = { code: "rate_limit_exceeded" };

const ROWS: Row[] = [
  ...rows([1, "ok", "a"], { none: () => speak("Fine."), "a late first token": () => late }),
  ...rows([2, "ok", "a"], {
    "500 once": () => inTurn(status(500), speak("Fine.")),
    "a reset before the headers, once": () => inTurn(reset, speak("Fine.")),
  }),
  ...rows([2, "model_overloaded", "b"], { "429": () => status(429) }, { retryAfter: "5" }),
  ...rows(
    [2, "model_overloaded", "b"],
    { "429 with a short Retry-After": () => overloaded("0") },
    { retryAfter: "1" },
  ),
  ...rows(
    [1, "model_overloaded", "b"],
    { "429 with a Retry-After beyond max_wait_ms": () => overloaded("7") },
    { retryAfter: "7" },
  ),
  ...rows([2, "model_overloaded", "b"], {
    "503 always": () => status(503),
    "an error inside a 200 that names a rate limit": () =>
      inside(limited, { type: "overloaded_error" }),
    "429 that mentions billing": () => status(429, words("Visit /account/billing", limited)),
  }),
  ...rows([1, "model_unavailable", "b"], {
    "429 for an empty purse": () => status(429, words("x", { code: "insufficient_quota" })),
    "an error inside a 200 that names a bad key": () => inside(brokenKey),
    "401": () => status(401, words("sk-provider-secret is wrong")),
    "402": () => status(402, words("sk-provider-secret is wrong")),
    "403": () => status(403, words("sk-provider-secret is wrong")),
    "404": () => status(404, words("sk-provider-secret is wrong")),
  }),
  ...rows(
    [1, "model_unavailable", "b"],
    { "401 whose body never comes": () => halfRefused },
    BRIEF,
  ),
  ...rows([2, "upstream_error", "b"], {
    "a reset before the headers": () => reset,
    "a reset in the body": () => streamedElse(stream([], "cut"), cutBody),
    "a failed finish_reason first": () =>
      streamedElse(stream([chunk({}, "network_error")]), status(200, completion({}, "error"))),
    "a page with status 200": () => status(200, "<html>", { "content-type": "text/html" }),
    "half a JSON": () => status(200, '{"choices":[{'),
    "a compressed body": () => status(200, "x", { ...JSON_TYPE, "content-encoding": "gzip" }),
    "a redirect": () => status(302, "", { location: "http://127.0.0.1:1/" }),
    "a body without end": () =>
      streamedElse(endless("text/event-stream", filler), endless("application/json", filler)),
  }),
  ...rows([2, "upstream_error", "b"], { "a flood of headers": () => flood }, { wire: true }),
  ...rows(
    [1, "upstream_timeout", "b"],
    { silence: () => silent, "headers, then silence": () => headersOnly },
    BRIEF,
  ),
  ...rows([1, "context_length_exceeded", "b"], {
    "a context that is too long": () => status(400, words("maximum context length is 10 tokens")),
    "an error inside a 200 in words only": () =>
      status(200, words("This model's maximum context length is 10 tokens")),
  }),
  ...rows(
    [1, "context_length_exceeded", "b"],
    {
      "an error event first that names it": () =>
        stream([words("x", { code: "context_length_exceeded" })], "eof"),
    },
    streamedOnly,
  ),
  ...rows([1, "content_filter", "content_filter"], {
    "a content filter": () => status(400, words("x", { code: "content_filter" })),
    "an error inside a 200 that names a filter": () => inside({ code: "content_filter" }),
  }),
  ...rows([1, "upstream_rejected", "upstream_rejected"], {
    "another 400": () => status(400, words("no such field")),
  }),
  ...rows(
    [1, "ok", "a"],
    {
      "a stream finished without [DONE]": () => stream([...begun, chunk({}, "stop")], "eof"),
      "a garbage event": () =>
        rawStream(`data: {{{\n\n${event(begun[1])}${event(chunk({}, "stop"))}`),
    },
    streamedOnly,
  ),
  ...rows(
    [1, "ok", "a"],
    { "a stream finished, then comments without end": () => commentsAfterFinish },
    { ...streamedOnly, ...BRIEF },
  ),
  ...rows(
    [2, "upstream_error", "b"],
    {
      "a stream ended before any text": () => stream([begun[0]], "done"),
      "nothing but garbage": () => rawStream("data: {{{\n\n"),
    },
    streamedOnly,
  ),
  ...rows(
    [2, "model_overloaded", "b"],
    { "an error event first": () => stream([words("overloaded", { code: 529 })], "eof") },
    streamedOnly,
  ),
  ...rows(
    inBand("upstream_error"),
    {
      "a stream cut after text": () => stream(begun, "cut"),
      "a stream ended without finish_reason": () => stream(begun, "eof"),
      "an error event after text": () => stream([...begun, words("x")], "eof"),
      "a failed finish_reason after text": () => stream([...begun, chunk({}, "abort")]),
    },
    streamedOnly,
  ),
  ...rows(
    inBand("upstream_timeout"),
    { "a stream stalled after text": () => stream(begun, "open") },
    { ...streamedOnly, ...BRIEF },
  ),
];

interface Bench<G = Pick<MemoryGateway, "chat">> {
  readonly gateway: G;
  readonly first: MemoryProvider;
  readonly second: MemoryProvider;
}

/** Model a at the first URL, b and c at the second; x is [a, b]. */
const settingsOf = (first: string, second: string, over: object): object =>
  merge(
    configFor(first, ["a"], {
      providers: { other: { dialect: "openai", base_url: second } },
      models: {
        a: { context_tokens: 1_000 },
        b: { provider: "other", context_tokens: 9_000 },
        c: { provider: "other", context_tokens: 500 },
      },
      aliases: { x: { models: ["a", "b"] } },
      retry: { max_retries: 1, backoff_ms: 1, max_wait_ms: 100 },
      timeouts: { first_token_ms: 400, idle_ms: 400 },
    }),
    over,
  ) as object;
const WELL = { b: speak("Rescued."), c: speak("Also well.") };

/** Model a at a provider that does what it is told; b and c are well. */
function bench(
  t: TestContext,
  behaviour: Behaviour,
  over: object = {},
  time: Partial<Clock> = {},
): Bench<MemoryGateway> {
  const first = memoryProvider(t, { a: behaviour });
  const second = memoryProvider(t, WELL);
  const settings = settingsOf(first.url, second.url, over);
  return { gateway: createMemoryGateway(settings, time), first, second };
}

/** The same over sockets. */
async function wireBench(
  t: TestContext,
  behaviour: Behaviour,
  over: object = {},
  time: Partial<Clock> = {},
) {
  const first = await startProvider(t, { a: behaviour });
  const second = await startProvider(t, WELL);
  const settings = settingsOf(first.url, second.url, over);
  return { gateway: await startGateway(t, settings, time), first, second };
}

/** What a client gets, in the words of the table. Checks on the way what holds for every answer. */
async function outcome(
  gateway: Pick<MemoryGateway, "chat">,
  model: string,
  streaming: boolean,
): Promise<{ got: string; retryAfter: string | null }> {
  const response = await within(
    gateway.chat({ model, stream: streaming, messages: user("hi") }),
    "the answer",
  );
  const retryAfter = response.headers.get("retry-after");
  const served = (name: string) => (model === "x" ? name : "ok");
  if (response.status !== 200) {
    const { error } = await json(response);
    assert.equal(
      response.status,
      /^(context|content|upstream_rejected)/.test(error.code) ? 400 : 503,
    );
    assert.ok(!/sk-provider|127\.0\.0\.1|\blab\b|\bother\b/.test(JSON.stringify(error)));
    return { got: error.code, retryAfter };
  }
  if (!streaming) {
    const reply = await json(response);
    if (model !== "x") assert.equal(reply.model, model);
    assert.equal(reply.choices[0].message.content, reply.model === "b" ? "Rescued." : "Fine.");
    return { got: served(reply.model), retryAfter };
  }
  const { chunks, done, error } = await within(readStream(response), "the end of the stream");
  const models = new Set(chunks.map((each) => each.model));
  assert.equal(models.size, 1, "one model in every chunk");
  if (model !== "x") assert.ok(models.has(model), "a named model answers under its name");
  assert.equal(done, error === undefined, "[DONE] if and only if there was no error");
  const text = assemble(chunks).message["content"];
  assert.ok(
    models.has("b") ? text === "Rescued." : ["Fine.", "Once"].includes(text),
    `never two answers in one: ${text}`,
  );
  return { got: error ? `in-band ${error.code}` : served(chunks[0]!.model), retryAfter };
}

/**
 * Named, the faulty model has no fallback, and waits for no deadline but where one is the fault.
 */
async function assertByName(row: Row, streaming: boolean, { gateway, first, second }: Bench) {
  const { named, retryAfter, tries } = row;
  const from = performance.now();
  const direct = await outcome(gateway, "a", streaming);
  const took = performance.now() - from;
  if (named.endsWith("upstream_timeout")) assert.ok(took >= 390, `${took} ms`);
  assert.equal(direct.got, named);
  if (retryAfter !== undefined) assert.equal(direct.retryAfter, retryAfter);
  assert.deepEqual(
    [first.asked.length, second.asked.length],
    [tries, 0],
    "a named model has no fallback",
  );
}

async function assertByAlias(row: Row, streaming: boolean, { gateway, first, second }: Bench) {
  assert.equal((await outcome(gateway, "x", streaming)).got, row.alias);
  assert.deepEqual([first.asked.length, second.asked.length], [row.tries, row.falls ? 1 : 0]);
  for (const asked of first.asked) assert.equal(asked.body["model"], "a");
  const after = await gateway.chat({ model: "b", messages: user("hi") });
  assert.equal(after.status, 200, "the gateway serves on");
}

describe("every fault, by name and by alias, whole and streamed", { concurrency: 4 }, () => {
  const ways = ROWS.flatMap((row) =>
    [false, true]
      .filter((streaming) => row.only === undefined || streaming === (row.only === "streamed"))
      .map((streaming) => ({ row, streaming })),
  );
  for (const { row, streaming } of ways) {
    it(`${row.fault}${streaming ? ", streamed" : ""}`, async (t) => {
      const { patience = PATIENCE_MS, behaviour, wire } = row;
      const over = { timeouts: { first_token_ms: patience, idle_ms: patience } };
      const open = wire ? wireBench : bench;
      await assertByName(row, streaming, await open(t, behaviour(), over));
      await assertByAlias(row, streaming, await open(t, behaviour(), over));
    });
  }
});

describe("attempts", () => {
  it("a prompt that plainly has no room in the first candidate goes to the second", async (t) => {
    const { gateway, first } = bench(t, speak("Fine."));
    const response = await gateway.chat({ model: "x", messages: user("word ".repeat(2_000)) });
    assert.equal((await json(response)).model, "b");
    assert.equal(first.asked.length, 0);
  });

  it("different faults of different models: model_unavailable, with the soonest Retry-After if all are known", async (t) => {
    const second = memoryProvider(t, {
      b: status(429, {}, { ...JSON_TYPE, "retry-after": "9" }),
    });
    const { gateway } = bench(t, status(500), {
      providers: { other: { base_url: second.url } },
    });
    assert.deepEqual(
      await outcome(gateway, "x", false),
      { got: "model_unavailable", retryAfter: null },
      "the first may be asked at once",
    );
    const third = memoryProvider(t, { b: status(401) });
    const shut = bench(t, status(503, {}, { ...JSON_TYPE, "retry-after": "9" }), {
      providers: { other: { base_url: third.url } },
    });
    assert.deepEqual(await outcome(shut.gateway, "x", false), {
      got: "model_unavailable",
      retryAfter: "9",
    });
  });

  it("the model with more room is only shut out for a while: that is no fault of the client", async (t) => {
    const second = memoryProvider(t, { b: status(401) });
    const { gateway } = bench(t, status(400, words("maximum context length")), {
      providers: { other: { base_url: second.url } },
    });
    assert.deepEqual(await outcome(gateway, "b", false), {
      got: "model_unavailable",
      retryAfter: "15",
    });
    assert.deepEqual(await outcome(gateway, "x", false), {
      got: "model_unavailable",
      retryAfter: "15",
    });
  });

  it("Retry-After: the provider's own, which opens no breaker; of several models the earlier", async (t) => {
    const rules = { breaker: { failures: 1, cooldown_ms: 30_000 }, retry: { max_retries: 0 } };
    const busy = status(429, {}, { ...JSON_TYPE, "retry-after": "2" });
    assert.deepEqual(await outcome(bench(t, busy, rules).gateway, "a", false), {
      got: "model_overloaded",
      retryAfter: "2",
    });
    const second = memoryProvider(t, {
      b: status(429, {}, { ...JSON_TYPE, "retry-after": "50" }),
    });
    const both = bench(t, busy, { ...rules, providers: { other: { base_url: second.url } } });
    assert.deepEqual(await outcome(both.gateway, "x", false), {
      got: "model_overloaded",
      retryAfter: "2",
    });
  });

  it("there is no waiting for a breaker that has just opened, nor beyond the request's own time", async (t) => {
    const busy = status(429, {}, { ...JSON_TYPE, "retry-after": "3" });
    const rules = { retry: { max_wait_ms: 5_000 } };
    for (const [busyProvider, more] of [
      [status(503), { breaker: { failures: 1 } }],
      [busy, { timeouts: { total_ms: 2_000 } }],
    ] as const) {
      // On a clock that stands still, whatever waits does not end.
      const { gateway, first } = bench(t, busyProvider, { ...rules, ...more }, createFakeClock());
      assert.equal((await outcome(gateway, "x", false)).got, "b");
      assert.equal(first.asked.length, 1);
    }
  });

  it("a provider that is silent for the whole of the request's time counts as failing", async (t) => {
    const { gateway, first } = bench(t, silent, {
      timeouts: { total_ms: 50 },
      breaker: { failures: 2 },
    });
    for (let i = 0; i < 2; i += 1)
      assert.equal((await outcome(gateway, "a", false)).got, "upstream_timeout");
    assert.equal((await outcome(gateway, "a", false)).got, "model_unavailable");
    assert.equal(first.asked.length, 2);
    assert.deepEqual(
      gateway.diagnostics.map((line) => line["event"]),
      ["request_timed_out", "request_timed_out"],
    );
  });

  it("a reply that is nested beyond what this Node can write is the provider's fault, never ours", async (t) => {
    const nested = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const { gateway } = bench(
      t,
      status(
        200,
        `{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":${nested}}}]}}]}`,
      ),
    );
    const copes = (() => {
      try {
        return JSON.stringify(JSON.parse(nested)) === nested;
      } catch {
        return false; // newer Node lines do not recurse here
      }
    })();
    assert.equal(
      (await json(await gateway.chat({ model: "x", messages: user("hi") }))).model,
      copes ? "a" : "b",
    );
    const named = await gateway.chat({ model: "a", messages: user("hi") });
    assert.equal(
      copes ? named.status : (await json(named)).error.code,
      copes ? 200 : "upstream_error",
    );
  });

  it("max_retries is obeyed, also a provider's own", async (t) => {
    for (const [over, tries] of [
      [{ retry: { max_retries: 3 } }, 4],
      [{ providers: { lab: { retry: { max_retries: 2 } } } }, 3],
      [{ retry: { max_retries: 0 } }, 1],
    ] as const) {
      const { gateway, first } = bench(t, status(500), over);
      await outcome(gateway, "a", false);
      assert.equal(first.asked.length, tries);
    }
  });

  it("one total_ms over all attempts", async (t) => {
    const { gateway, second } = bench(t, silent, { timeouts: { total_ms: 100 } });
    assert.equal((await outcome(gateway, "x", false)).got, "upstream_timeout");
    assert.equal(second.asked.length, 0);
  });

  it("a client that leaves between two attempts ends them", async (t) => {
    const { gateway, first } = await wireBench(
      t,
      status(429, {}, { ...JSON_TYPE, "retry-after": "60" }),
      { retry: { max_wait_ms: 86_400_000 }, timeouts: { total_ms: 120_000 } },
    );
    const control = new AbortController();
    const headers = {
      "content-type": "application/json",
      authorization: `Bearer ${KEY}`,
      "x-request-id": "left",
    };
    const body = JSON.stringify({ model: "a", messages: user("hi") });
    const request = fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers,
      body,
      signal: control.signal,
    });
    await waitFor(() => gateway.diagnostics.length === 1, "the first attempt to fail");
    control.abort();
    await request.catch(() => undefined);
    assert.equal((await gateway.accessOf("left"))["status"], 499);
    assert.equal(first.asked.length, 1);
  });

  it("the operator is told of a refused key, loudly", async (t) => {
    const { gateway } = bench(t, status(401));
    await outcome(gateway, "x", false);
    const line = await waitFor(
      () => gateway.diagnostics.find((each) => each["event"] === "attempt_failed"),
      "the diagnostic line",
    );
    assert.deepEqual(
      [line["level"], line["blame"], line["status"], line["model"]],
      ["error", "operator", 401, "a"],
    );
  });

  it("comments may go out before the first delta; the fallback after them is still invisible", async (t) => {
    let fail = () => {};
    const failure = new Promise<void>((resolve) => (fail = resolve));
    const failing: Behaviour = ({ res }) =>
      failure.then(() => {
        res.destroy();
      });
    const { gateway } = await wireBench(t, failing, {
      server: { keep_alive_ms: 20 },
      timeouts: { first_token_ms: 20_000 },
    });
    const response = await gateway.chat({ model: "x", stream: true, messages: user("hi") }); // it has begun, with a comment
    fail();
    const { chunks, comments, done } = await readStream(response);
    assert.ok(comments > 0 && done);
    assert.deepEqual([...new Set(chunks.map(({ model }) => model))], ["b"]);
  });
});

describe("breaker", () => {
  const rules = { breaker: { failures: 3, cooldown_ms: 10_000 }, retry: { max_retries: 0 } };

  it("a provider that flaps for a minute: no client notices, and the primary gets its traffic back", async (t) => {
    const clock = { now: 0 };
    const up = () => Math.floor(clock.now / 5_000) % 2 === 0;
    const behaviour: Behaviour = (asked) => (up() ? speak("Fine.") : reset)(asked);
    const { gateway, first } = bench(
      t,
      behaviour,
      { ...rules, breaker: { failures: 2, cooldown_ms: 2_000 } },
      { monotonic: () => clock.now },
    );
    let downs = 0;
    for (; clock.now < 60_000; clock.now += 250) {
      const before = first.asked.length;
      assert.match((await outcome(gateway, "x", clock.now % 500 === 0)).got, /^[ab]$/);
      if (!up()) downs += first.asked.length - before;
    }
    assert.ok(downs <= 6 * 5, `${downs} requests went to a provider that was down`);
    clock.now = 60_000 + 4_000;
    assert.equal((await outcome(gateway, "x", false)).got, "a");
  });

  it("a stream that is cut counts, though it had begun", async (t) => {
    const { gateway, first } = bench(t, stream(begun, "cut"), rules);
    for (let i = 0; i < 3; i += 1)
      assert.equal((await outcome(gateway, "a", true)).got, "in-band upstream_error");
    assert.equal((await outcome(gateway, "a", true)).got, "model_unavailable");
    assert.equal(first.asked.length, 3);
  });

  it("a client that leaves while its request is the probe gives the turn to another", async (t) => {
    const clock = { now: 0 };
    const behaviour = inTurn(status(403), silent, speak("Fine."));
    const { gateway, first } = await wireBench(t, behaviour, rules, { monotonic: () => clock.now });
    await outcome(gateway, "a", false);
    clock.now += 10_000;
    const ready = async () => (await fetch(`${gateway.url}/readyz`)).status;
    const control = new AbortController();
    const headers = {
      "content-type": "application/json",
      authorization: `Bearer ${KEY}`,
      "x-request-id": "probe",
    };
    const request = fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers,
      body: JSON.stringify({ model: "a", messages: user("hi") }),
      signal: control.signal,
    });
    await first.nth(1);
    assert.deepEqual(
      await outcome(gateway, "a", false),
      { got: "model_unavailable", retryAfter: "1" },
      "one probe at a time",
    );
    assert.equal(await ready(), 200, "other models can serve");
    control.abort();
    await request.catch(() => undefined);
    await gateway.accessOf("probe");
    assert.equal((await outcome(gateway, "a", false)).got, "ok");
  });
});

describe("readyz and status", () => {
  const get = async (url: string) => {
    const response = await fetch(url);
    return { status: response.status, body: await json(response) };
  };

  it("ready while a model can serve; status tells which, in what order, and why not", async (t) => {
    const clock = { now: 0 };
    const second = await startProvider(t, { b: status(401) });
    const over = {
      breaker: { failures: 1, cooldown_ms: 10_000 },
      retry: { max_retries: 0 },
      providers: { other: { base_url: second.url } },
      accounts: { acme: { rpm: 50 } },
    };
    const { gateway } = await wireBench(t, status(500), over, { monotonic: () => clock.now });
    const admin = gateway.gateway.adminAddress()!;
    assert.deepEqual(await get(`${gateway.url}/readyz`), {
      status: 200,
      body: { status: "ready" },
    });
    await outcome(gateway, "x", false);
    assert.equal((await get(`${gateway.url}/readyz`)).status, 200, "c is not known to fail");
    await outcome(gateway, "c", false);
    const notReady = await get(`${gateway.url}/readyz`);
    assert.equal(notReady.status, 503);
    assert.equal(notReady.body.error.code, "model_unavailable");
    assert.equal((await get(`${gateway.url}/healthz`)).status, 200);
    const { body } = await get(`${admin}/status`);
    assert.deepEqual(
      body.models.map((model: any) => [
        model.model,
        model.provider,
        model.breaker.state,
        model.breaker.retry_ms,
      ]),
      [
        ["a", "lab", "open", 10_000],
        ["b", "other", "open", 10_000],
        ["c", "other", "open", 10_000],
      ],
    );
    assert.match(
      body.models[1].breaker.last_fault,
      /model_unavailable: the provider answered with status 401/,
    );
    assert.deepEqual(body.aliases, [
      {
        alias: "x",
        enabled: true,
        candidates: [
          { rank: 1, model: "a", why: "number 1 in the alias's list", breaker: "open" },
          { rank: 2, model: "b", why: "number 2 in the alias's list", breaker: "open" },
        ],
      },
    ]);
    assert.deepEqual(
      [body.status, body.in_flight, body.limits],
      [
        "serving",
        0,
        { store: "memory", fault: null, accounts: [{ account: "acme", rpm: 50, used: 2 }] },
      ],
    );
    clock.now += 10_000;
    assert.equal((await get(`${gateway.url}/readyz`)).status, 200, "a probe could be served");
    assert.ok(!JSON.stringify(body).includes("sk-"));
  });

  it("the public listener has no /status, and the admin listener no chat", async (t) => {
    const { gateway } = await wireBench(t, speak("Fine."));
    assert.equal((await get(`${gateway.url}/status`)).status, 404);
    assert.equal((await get(`${gateway.gateway.adminAddress()}/v1/models`)).status, 404);
  });

  it("while draining: not ready, no new requests on old connections, those in flight run on", async (t) => {
    const { behaviour, finish } = held();
    const { gateway } = await wireBench(t, behaviour);
    const response = await gateway.chat({ model: "a", stream: true, messages: user("hi") });
    const admin = gateway.gateway.adminAddress()!;
    const closing = gateway.gateway.close(5_000);
    assert.equal((await get(`${admin}/status`)).body.status, "draining");
    assert.equal((await get(`${admin}/status`)).body.in_flight, 1);
    finish();
    const { chunks, done } = await readStream(response);
    assert.ok(done);
    assert.equal(assemble(chunks).message["content"], "Fine.");
    await within(closing, "the gateway to close");
  });
});
