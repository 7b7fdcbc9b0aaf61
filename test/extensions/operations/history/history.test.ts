// The figures of the last day: bins of falling resolution, what is not known, accounts and models,
// refusals and faults, several processes.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createHistory } from "../../../../src/extensions/operations/history/history.ts";
import { startRecorder } from "../../../../src/extensions/operations/history/recorder.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { attempt, teller } from "./requests.ts";

/** A quarter of an hour, so that bins of all levels begin here. */
const START = Date.parse("2026-11-22T09:00:00Z");
const QUIET = { inFlight: 0, loopDelay: 0 };
const MINUTE = 60_000;
const RANGE_NAMES = ["15m", "1h", "6h", "24h"] as const;

function setUp(start = START) {
  const clock = createFakeClock(start);
  const recorder = startRecorder(clock);
  const history = createHistory(clock);
  const look = (moment = QUIET) => history.take([recorder.report()], moment);
  /** Lets time pass, with a look every two seconds, as a running gateway does. */
  const pass = (ms: number) => {
    for (let left = ms; left > 0; left -= 2_000) {
      clock.advance(Math.min(left, 2_000));
      look();
    }
  };
  const { range } = history;
  return { clock, recorder, history, look, pass, range, tell: teller(recorder, clock) };
}

describe("the bins of a range", () => {
  it("time before the start is null and not zero, and a quiet time is zero and not null", () => {
    const { pass, range } = setUp();
    pass(30_000);
    const { bins } = range("15m");
    assert.equal(bins.length, 90);
    assert.deepEqual(bins.slice(0, 86), Array(86).fill(null));
    assert.deepEqual(
      bins.slice(86, 89).map((bin) => [bin?.ok, bin?.seconds]),
      [
        [0, 10],
        [0, 10],
        [0, 10],
      ],
    );
    assert.equal(bins[89], null, "it has only just begun");
  });

  it("the bin that is not over, and that of the start, say how many seconds of them are known", () => {
    const { pass, range, tell } = setUp(START + 4_000);
    tell.fine();
    pass(10_000);
    const { bins, seconds } = range("15m");
    assert.deepEqual(
      bins.filter((bin) => bin !== null).map((bin) => [bin.seconds, bin.ok]),
      [
        [6, 1],
        [4, 0],
      ],
    );
    assert.equal(seconds, 10);
  });

  it("a request counts in one bin of each range, and is gone when the range is over", () => {
    const { pass, range, tell } = setUp();
    tell.fine();
    pass(4_000);
    const sums = () => RANGE_NAMES.map((name) => range(name).total.ok);
    assert.deepEqual(sums(), [1, 1, 1, 1]);
    pass(15 * MINUTE);
    assert.deepEqual(sums(), [0, 1, 1, 1]);
    pass(46 * MINUTE);
    assert.deepEqual(sums(), [0, 0, 1, 1]);
  });

  it("a day later nothing is left of it", () => {
    const { clock, look, pass, range, tell } = setUp();
    tell.fine();
    pass(4_000);
    clock.advance(23 * 60 * MINUTE);
    look();
    assert.equal(range("24h").total.ok, 1);
    clock.advance(61 * MINUTE);
    look();
    assert.equal(range("24h").total.ok, 0);
  });

  it("outcomes are told apart, and of what is sampled the highest counts", () => {
    const { look, pass, range, tell } = setUp();
    for (const status of [401, 402, 429, 429, 400, 404, 503, 499]) tell.refuse({ status });
    tell.fine();
    look({ inFlight: 3, loopDelay: 0.5 });
    look({ inFlight: 7, loopDelay: 0.25 });
    pass(4_000);
    const { total } = range("15m");
    assert.deepEqual(
      ["ok", "401", "402", "429", "4xx", "5xx", "cancelled"].map(
        (name) => total[name as keyof typeof total],
      ),
      [1, 1, 1, 2, 2, 1, 1],
    );
    assert.deepEqual([total.in_flight, total.loop_delay], [7, 0.5]);
  });

  it("a stream that breaks off after its first token is a failure, whatever its status was", () => {
    const { pass, range, tell } = setUp();
    const opening = tell.open();
    tell.settle(opening, { status: "failed", errorCode: "upstream_error" });
    tell.leave(opening);
    pass(2_000);
    assert.deepEqual([range("15m").total["5xx"], range("15m").total.ok], [1, 0]);
  });

  it("what programs ask that look after the gateway is no request, unless a list is refused", () => {
    const { pass, range, tell } = setUp();
    tell.respond("/healthz");
    tell.respond("/health");
    tell.respond("/readyz", { status: 503 });
    tell.respond("/v1/models");
    tell.respond("/v1/models", { status: 401, account: null, key_id: null });
    tell.respond("other", { status: 404, account: null, key_id: null });
    pass(2_000);
    const { total } = range("15m");
    assert.deepEqual([total.ok, total["401"], total["4xx"], total["5xx"]], [0, 1, 1, 0]);
  });

  it("a clock that is set back by two days begins anew where it stands", () => {
    const clock = createFakeClock(START);
    let setBack = 0;
    const shifted = { ...clock, now: () => clock.now() - setBack };
    const recorder = startRecorder(shifted);
    const history = createHistory(shifted);
    const tell = teller(recorder, clock);
    const look = () => {
      clock.advance(2_000);
      history.take([recorder.report()], QUIET);
    };
    tell.fine();
    look();
    setBack = 48 * 60 * MINUTE;
    tell.fine();
    tell.fine();
    look();
    assert.deepEqual(
      RANGE_NAMES.map((name) => history.range(name).total.ok),
      [2, 2, 2, 2],
    );
  });
});

describe("accounts and models", () => {
  it("tokens, costs and times are those of the requests", () => {
    const { pass, range, tell } = setUp();
    for (let n = 0; n < 4; n += 1) tell.fine();
    pass(2_000);
    const { accounts, models, total } = range("15m");
    assert.deepEqual(
      accounts.map(({ account, ok, prompt_tokens, completion_tokens, cost }) => [
        account,
        ok,
        prompt_tokens,
        completion_tokens,
        cost,
      ]),
      [["acme", 4, 40, 80, 2]],
    );
    const [model] = models;
    assert.deepEqual(
      [model?.model, model?.requests, model?.attempts, model?.faults, model?.cost],
      ["m", 4, 4, 0, 2],
    );
    assert.deepEqual([model?.reply_ms, model?.stream_ms, model?.stream_tokens], [2_000, 1_600, 80]);
    assert.ok(total.first_token.p50! > 0.05 && total.first_token.p50! <= 0.1);
  });

  it("of more accounts than 50 the busiest have rows of their own, and the others share one", () => {
    const { pass, range, tell } = setUp();
    for (let n = 0; n < 60; n += 1)
      for (let times = 0; times <= (n < 55 ? 1 : 9); times += 1)
        tell.refuse({ account: `account ${n}`, key_id: `key ${n}` });
    pass(2_000);
    const { accounts } = range("15m");
    assert.equal(accounts.length, 51);
    const named = new Set(accounts.map(({ account }) => account));
    for (let n = 55; n < 60; n += 1) assert.ok(named.has(`account ${n}`));
    assert.equal(accounts.find(({ other }) => other)?.["429"], 20);
    assert.equal(
      accounts.reduce((sum, row) => sum + row["429"], 0),
      range("15m").total["429"],
    );
  });

  it("an account that becomes busy takes the row of one that is not, and no request is lost", () => {
    const { pass, range, tell } = setUp();
    for (let n = 0; n < 50; n += 1) tell.refuse({ account: `early ${n}` });
    pass(2_000);
    for (let n = 0; n < 5; n += 1) tell.refuse({ account: "late" });
    pass(2_000);
    const { accounts, total } = range("15m");
    assert.equal(accounts.find(({ account }) => account === "late")?.["429"], 5);
    assert.equal(accounts.find(({ other }) => other)?.["429"], 1);
    assert.equal(total["429"], 55);
  });
});

describe("refusals and faults", () => {
  it("an account that is refused is told with its key, the code, how often, and since when", () => {
    const { clock, pass, range, tell } = setUp();
    pass(60_000);
    const since = clock.now();
    for (let n = 0; n < 3; n += 1) {
      tell.refuse({ key_id: "key_bad" });
      pass(MINUTE);
    }
    tell.refuse({ status: 401, error_code: "invalid_api_key", account: null, key_id: null });
    pass(2_000);
    assert.deepEqual(range("15m").refusals, [
      {
        account: "acme",
        key: "key_bad",
        status: 429,
        code: "rate_limit_exceeded",
        count: 3,
        since,
        last: since + 2 * MINUTE,
      },
      {
        account: null,
        key: null,
        status: 401,
        code: "invalid_api_key",
        count: 1,
        since: since + 3 * MINUTE,
        last: since + 3 * MINUTE,
      },
    ]);
  });

  it("after ten minutes without a refusal the next one begins anew", () => {
    const { clock, pass, range, tell } = setUp();
    tell.refuse();
    pass(11 * MINUTE);
    const since = clock.now();
    tell.refuse();
    pass(2_000);
    assert.deepEqual(
      range("15m").refusals.map((episode) => [episode.count, episode.since]),
      [[1, since]],
    );
  });

  it("a provider's fault counts against the model that was asked, with the provider's words", () => {
    const { clock, pass, range, tell } = setUp();
    const attempts = [
      attempt({ model: "bad", outcome: "upstream_error", status: 500, detail: "out of GPUs" }),
      attempt({ model: "picky", outcome: "content_filter", status: 400, detail: "no" }),
      attempt(),
    ];
    tell.fine({ requestId: "the one" }, { attempts });
    const time = clock.now();
    pass(2_000);
    const { faults, models, total } = range("15m");
    assert.deepEqual(faults, [
      {
        model: "bad",
        provider: "lab",
        time,
        code: "upstream_error",
        status: 500,
        detail: "out of GPUs",
        request_id: "the one",
      },
    ]);
    assert.deepEqual(
      models.map(({ model, attempts: made, faults: failed }) => [model, made, failed]),
      [
        ["bad", 1, 1],
        ["picky", 1, 0],
        ["m", 1, 0],
      ],
    );
    assert.equal(total.faults, 1);
  });

  it("the use of each key is told: when, how often, how often refused, and for how much", () => {
    const { clock, pass, range, tell } = setUp();
    tell.fine();
    pass(10_000);
    tell.refuse();
    const last = clock.now();
    pass(2_000);
    assert.deepEqual(range("15m").keys, [
      { key: "key_1", requests: 2, refused: 1, cost: 0.5, last },
    ]);
  });
});

describe("several processes", () => {
  it("add up, and whoever else looks at them neither takes nor doubles anything", () => {
    const clock = createFakeClock(START);
    const recorders = [startRecorder(clock), startRecorder(clock)];
    const history = createHistory(clock);
    for (const recorder of recorders) teller(recorder, clock).fine();
    clock.advance(2_000);
    for (const recorder of recorders) recorder.report(); // somebody else's look
    for (let looks = 0; looks < 3; looks += 1)
      history.take(
        recorders.map((recorder) => recorder.report()),
        QUIET,
      );
    assert.equal(history.range("15m").total.ok, 2);
  });

  it("one that misses a look is counted at the next", () => {
    const { clock, pass, range, tell, history } = setUp();
    tell.fine();
    clock.advance(3_000);
    history.take([], QUIET);
    assert.equal(range("15m").total.ok, 0);
    pass(3_000);
    assert.equal(range("15m").total.ok, 1);
  });
});
