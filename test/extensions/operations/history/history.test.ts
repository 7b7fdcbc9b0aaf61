// The figures of the last day: bins of decreasing resolution, unknown values, accounts and models,
// rejections and faults, several processes.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AttemptRecord } from "../../../../src/core/ledger/ledger.ts";
import { createHistory } from "../../../../src/extensions/operations/history/history.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { attempt, bench, lookOf, MINUTE, START, startProcess, teller } from "./requests.ts";

const RANGE_NAMES = ["15m", "1h", "6h", "24h"] as const;
/** These members, joined as text. */
const pick = (row: any, ...names: readonly string[]) =>
  names.map((name) => String(row?.[name])).join(" ");
const pickAll = (rows: readonly (object | null)[], ...names: readonly string[]) =>
  rows.map((row) => pick(row, ...names));

describe("the bins of a range", () => {
  it("time before the start is null, not zero; an idle time is zero, not null", () => {
    const { pass, range } = bench();
    pass(30_000);
    const { bins } = range("15m");
    assert.deepEqual(pickAll(bins.slice(86, 89), "ok", "seconds"), Array(3).fill("0 10"));
    const others = [...bins.slice(0, 86), ...bins.slice(89)]; // the last bin has only just begun
    assert.deepEqual(others, Array(87).fill(null));
  });

  it("the current bin and the first one state how many of their seconds are known", () => {
    const { pass, range, tell } = bench(START + 5_000);
    tell.fine();
    pass(7_500);
    const { bins, seconds } = range("15m");
    assert.deepEqual(pickAll(bins.slice(-2), "seconds", "ok"), ["5 1", "2.5 0"]);
    assert.equal(seconds, 7.5);
  });

  it("an extra look changes nothing, and a slightly late one keeps bins complete", () => {
    const { clock, look, pass, range, tell } = bench();
    for (const ms of [3, 2_497, 2_504, 2_496, 2_500]) {
      tell.fine();
      clock.advance(ms);
      look();
    }
    pass(10_000);
    const whole = range("15m").bins.slice(-3, -1);
    assert.deepEqual(pickAll(whole, "ok", "seconds"), ["5 10", "0 10"]);
  });

  it("a request counts in one bin of each range, and disappears at the end of the range", () => {
    const { clock, look, pass, range, tell } = bench();
    tell.fine();
    pass();
    const sums = () => RANGE_NAMES.map((name) => range(name).total.ok);
    for (const [minutes, expected] of [
      [0, [1, 1, 1, 1]],
      [15, [0, 1, 1, 1]],
      [46, [0, 0, 1, 1]],
      [22 * 60, [0, 0, 0, 1]],
      [2 * 60, [0, 0, 0, 0]],
    ] as const) {
      clock.advance(minutes * MINUTE);
      look();
      assert.deepEqual(sums(), expected, `${minutes} minutes later`);
    }
  });

  it("outcomes are distinguished, and of the requests in flight the maximum counts", () => {
    const { look, pass, range, tell } = bench();
    for (const status of [401, 402, 429, 429, 400, 404, 503, 499]) tell.refuse({ status });
    tell.fine();
    // A stream that breaks after its first token is a failure, whatever its status was.
    const opening = tell.open();
    tell.settle(opening, { status: "failed", errorCode: "upstream_error" });
    tell.leave(opening, { error_code: "upstream_error" });
    pass();
    look(3);
    look(7);
    look(1);
    const outcomes = ["ok", "401", "402", "429", "4xx", "5xx", "cancelled"];
    const { bins, total } = range("15m");
    assert.equal(pick(total, ...outcomes), "1 1 1 2 2 2 1");
    assert.deepEqual([bins.at(-1)?.in_flight, total.in_flight], [7, 7]);
  });

  it("requests of monitoring programs do not count, except rejected model lists", () => {
    const { pass, range, tell } = bench();
    const nobody = { account: null, key_id: null };
    for (const route of ["/healthz", "/health", "/v1/models"]) tell.respond(route, nobody);
    for (const [route, status] of Object.entries({ "/readyz": 503, "/v1/models": 401, other: 404 }))
      tell.respond(route, { ...nobody, status });
    pass();
    assert.equal(pick(range("15m").total, "ok", "401", "4xx", "5xx"), "0 1 1 0");
  });

  it("a clock that is set back by two days starts again from its new time", () => {
    const { pass, range, tell, setBack } = bench();
    tell.fine();
    pass();
    setBack(48 * 60 * MINUTE);
    tell.fine();
    tell.fine();
    pass();
    for (const name of RANGE_NAMES) assert.equal(range(name).total.ok, 2);
  });
});

describe("accounts and models", () => {
  it("have the tokens, costs and times of the requests", () => {
    const { pass, range, tell } = bench();
    for (let n = 0; n < 4; n += 1) tell.fine();
    pass();
    const { accounts, models, requested, total } = range("15m");
    const charge = ["prompt_tokens", "completion_tokens", "cost"];
    assert.deepEqual(pickAll(accounts, "account", "ok", ...charge), ["acme 4 40 80 2"]);
    const counts = ["requests", "attempts", "faults", ...charge];
    assert.deepEqual(pickAll(models, "model", ...counts), ["m 4 4 0 40 80 2"]);
    const rates = ["stream_ms", "stream_tokens", "cache_hit", "cache_miss"];
    assert.equal(pick(models[0], ...rates), "1600 80 16 24");
    assert.deepEqual(requested, [
      { name: "auto/m", other: false, cache_hit: 16, cache_miss: 24, served: { m: 4 } },
    ]);
    assert.ok(total.first_token.p50! > 0.05 && total.first_token.p50! <= 0.1);
  });

  it("beyond 50 the busiest accounts have their own rows, and the others share one", () => {
    const { pass, range, tell } = bench();
    for (let n = 0; n < 50; n += 1) tell.refuse({ account: `early ${n}` });
    pass();
    for (let n = 0; n < 10; n += 1)
      for (let times = 0; times < (n < 5 ? 2 : 9); times += 1)
        tell.refuse({ account: `late ${n}` });
    pass();
    const { accounts, refused, total } = range("15m");
    assert.equal(accounts.length, 51);
    const named = new Set(accounts.map(({ account }) => account));
    for (let n = 0; n < 10; n += 1) assert.ok(named.has(`late ${n}`));
    assert.equal(accounts.find(({ other }) => other)?.["429"], 10);
    assert.equal(total["429"], 50 + 5 * 2 + 5 * 9, "no request is lost");
    assert.equal(refused.length, 51);
    const others = refused.filter(({ other }) => other);
    assert.deepEqual(others, [{ account: null, code: null, other: true, count: 10 }]);
  });
});

describe("more accounts than a process has rows for", () => {
  it("lose no request and no cost, however often all of them return", () => {
    const { pass, range, tell } = bench();
    for (let round = 1; round <= 3; round += 1) {
      for (let n = 0; n < 2_000; n += 1) tell.fine({ account: `account ${n}` });
      pass();
      const { accounts, models, total } = range("15m");
      assert.equal(total.ok, round * 2_000);
      const sum = (figure: "cost" | "prompt_tokens") =>
        accounts.reduce((all, row) => all + row[figure], 0);
      assert.deepEqual([sum("cost"), sum("prompt_tokens")], [round * 1_000, round * 20_000]);
      assert.equal(models[0]?.requests, round * 2_000);
    }
  });

  it("pass their rows to new accounts once they have been idle", () => {
    const { pass, range, tell } = bench();
    for (let n = 0; n < 2_000; n += 1) tell.fine({ account: `account ${n}` });
    pass(16 * MINUTE);
    for (let n = 0; n < 5; n += 1) tell.fine({ account: "late" });
    pass();
    assert.deepEqual(pickAll(range("15m").accounts, "account", "ok", "cost"), ["late 5 2.5"]);
  });
});

describe("rejections and faults", () => {
  it("a rejected account is shown with key, code, count and start time, and anew after ten minutes without one", () => {
    const { clock, pass, range, tell } = bench();
    pass(60_000);
    const since = clock.now() + 2_500;
    for (let n = 0; n < 3; n += 1) {
      tell.refuse({ key_id: "key_bad" });
      pass(MINUTE);
    }
    tell.refuse({ status: 401, error_code: "invalid_api_key", account: null, key_id: null });
    pass();
    const bad = { account: "acme", key: "key_bad", rpm: null };
    const limited = { ...bad, status: 429, code: "rate_limit_exceeded" };
    const unknown = { account: null, key: null, rpm: null, status: 401, code: "invalid_api_key" };
    const [last, lastly] = [since + 2 * MINUTE, since + 3 * MINUTE];
    assert.deepEqual(range("15m").refusals, [
      { ...limited, count: 3, since, last },
      { ...unknown, count: 1, since: lastly, last: lastly },
    ]);
    assert.deepEqual(range("15m").keys, [{ key: "key_bad", requests: 3, refused: 3, last }]);
    pass(11 * MINUTE);
    tell.refuse({ key_id: "key_bad" });
    tell.fine({ keyId: "key_bad" });
    pass();
    const now = clock.now();
    const anew = range("15m").refusals.find(({ key, count }) => key !== null && count === 1);
    assert.deepEqual(anew, { ...limited, count: 1, since: now, last: now });
    assert.deepEqual(range("15m").keys, [{ key: "key_bad", requests: 5, refused: 4, last: now }]);
  });

  it("rejections of an account with a code are summed over the range, whatever key was used", () => {
    const { pass, range, tell } = bench();
    const unknown = { status: 401, error_code: "invalid_api_key", account: null, key_id: null };
    for (const key_id of ["key_1", "key_2", "key_2"]) tell.refuse({ key_id });
    pass(8 * MINUTE);
    for (const over of [{}, { key_id: "key_2" }, unknown]) tell.refuse(over);
    pass();
    const told = () => pickAll(range("15m").refused, "account", "code", "count");
    assert.deepEqual(told(), ["acme rate_limit_exceeded 5", "null invalid_api_key 1"]);
    pass(8 * MINUTE);
    assert.equal(told()[0], "acme rate_limit_exceeded 2");
    assert.equal(range("1h").refused[0]?.count, 5);
    pass(8 * MINUTE);
    assert.deepEqual(told(), []);
  });

  it("a provider's faults count against the tried model; the last one is shown with its message", () => {
    const { clock, pass, range, tell } = bench();
    const bad = { model: "bad", outcome: "upstream_error", status: 500, detail: "out of GPUs" };
    const failed = (requestId: string, ...failures: Partial<AttemptRecord>[]) =>
      tell.fine({ requestId }, { attempts: [...failures, {}].map(attempt) });
    failed("first", bad);
    failed("other", { ...bad, model: "worse" });
    failed("picky", { model: "picky", outcome: "content_filter", status: 400, detail: "no" });
    clock.advance(1);
    failed("second", { ...bad, detail: "no disk" }, bad);
    for (let n = 0; n < 1_000; n += 1) tell.fine();
    for (let look = 0; look < 2; look += 1) pass();
    const { faults, models, total } = range("15m");
    const { outcome: code, ...said } = bad;
    const all = { ...said, provider: "lab", code };
    const inTime = faults.toSorted((one, other) => one.time - other.time);
    assert.deepEqual(inTime, [
      { ...all, model: "worse", time: START, request_id: "other" },
      { ...all, time: START + 1, request_id: "second" },
    ]);
    const counts = pickAll(models, "model", "attempts", "faults").toSorted();
    assert.deepEqual(counts, ["bad 3 3", "m 1004 0", "picky 1 0", "worse 1 1"]);
    assert.equal(total.faults, 4);
  });
});

it("several processes add up, and a late or replaced process counts nothing twice", () => {
  const clock = createFakeClock(START);
  const [one, two] = [startProcess(clock, "one"), startProcess(clock, "two")];
  const history = createHistory(clock);
  const look = (...seen: readonly (typeof one)[]) => {
    clock.advance(2_500);
    history.add(lookOf(seen.map((process) => process.report())));
    const { count } = history.find({}, { skip: 0, limit: 1 });
    return [history.range("15m").total.ok, count];
  };
  const fine = ({ observers }: typeof one) => teller(observers, clock).fine();
  for (const process of [one, two]) fine(process);
  assert.deepEqual(look(one, two), [2, 2]);
  fine(one);
  assert.deepEqual(look(one, two), [3, 3]);
  assert.deepEqual(look(one, two), [3, 3], "nothing has happened since");
  fine(two);
  assert.deepEqual(look(one), [3, 3]);
  assert.deepEqual(look(one, two), [4, 4]);
  const three = startProcess(clock, "three");
  fine(three);
  assert.deepEqual(look(two, three), [5, 5]);
});
