// The limiter by itself, on a clock that the test sets: an exact sliding window of 60 seconds, and
// requests in flight. Over HTTP: in-flight.test.ts, rate-limit.test.ts.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  createLimiter,
  WINDOW_MS,
  type AdmissionDecision,
  type Limit,
} from "../../../src/core/accounts/limiter.ts";
import { heldNow } from "../../support/effort.ts";
import { LONG } from "../../support/long.ts";
import { createRandom } from "../../support/random.ts";

/** A decision without its admission time, which only a refund needs. */
const figures = ({ countedAt, ...decision }: AdmissionDecision) => decision;

/** A limiter on a clock that stands still until the test sets it. */
function clocked(start = 0) {
  const clock = { now: start };
  const limiter = createLimiter(() => clock.now);
  return {
    clock,
    limiter,
    admit: (...limits: readonly Limit[]) =>
      figures(limiter.admit({ account: "acme", limits, maxInFlight: null })),
    /** Admits a request under one limit. */
    one: (rpm: number | null, name = "a") =>
      figures(limiter.admit({ account: "acme", limits: [{ name, rpm }], maxInFlight: null })),
  };
}

const UNLIMITED = { admitted: true, limit: null, remaining: Infinity, resetMs: 0 };

/** A slow and simple limiter that the real one must agree with. */
function plainLimiter() {
  const admitted = new Map<string, number[]>();
  return (now: number, limits: readonly Limit[]): Omit<AdmissionDecision, "countedAt"> => {
    const counting = limits.filter(({ rpm }) => rpm !== null);
    const recent = ({ name }: Limit) =>
      (admitted.get(name) ?? []).filter((time) => time + WINDOW_MS > now);
    const isAdmitted = counting.every((limit) => recent(limit).length < limit.rpm!);
    if (isAdmitted) for (const limit of counting) admitted.set(limit.name, [...recent(limit), now]);
    const standing = counting.map((limit) => {
      const times = recent(limit);
      const first = times[Math.max(0, times.length - limit.rpm!)] ?? now; // the one to expire
      const remaining = Math.max(0, limit.rpm! - times.length);
      return { limit: limit.rpm, remaining, resetMs: first + WINDOW_MS - now };
    });
    const [told = { limit: null, remaining: Infinity, resetMs: 0 }] = standing.sort(
      (a, b) => a.remaining - b.remaining || b.resetMs - a.resetMs,
    );
    return { admitted: isAdmitted, ...told };
  };
}

it("the window drops a refunded request and keeps counting the others", () => {
  const { clock, limiter } = clocked();
  const both = [
    { name: "a", rpm: 3 },
    { name: "key", rpm: 2 },
  ];
  const request = { account: "acme", limits: both, maxInFlight: null };
  const at = (now: number) => {
    clock.now = now;
    return limiter.admit(request);
  };
  const [first, second] = [at(0), at(10)];
  assert.ok(first.admitted && second.admitted && !at(20).admitted);
  limiter.refund(request, first);
  assert.deepEqual([limiter.used("a"), limiter.used("key")], [1, 1]);
  limiter.refund(request, first);
  assert.equal(limiter.used("a"), 1, "a second refund has no effect");
  assert.ok(at(30).admitted);
  assert.equal(at(WINDOW_MS + 9).admitted, false, "the second is now the oldest");
  assert.ok(at(WINDOW_MS + 10).admitted);
  limiter.refund(request, second);
  assert.equal(limiter.used("a"), 2, "refunding an expired one has no effect");
  limiter.refund(request, at(WINDOW_MS + 11));
  assert.equal(limiter.used("a"), 2, "refunding a refused one has no effect");
});

/** Mostly bursts at one instant, sometimes pauses, rarely exactly a window's length. */
function pauseOf(next: () => number): number {
  const kind = next();
  if (kind < 0.5) return 0;
  if (kind < 0.9) return next() * 3_000;
  if (kind < 0.98) return next() * 40_000;
  return WINDOW_MS;
}

/**
 * Runs a random schedule under two changing limits. Each decision must match the plain limiter's.
 */
function assertSchedule(seed: number): void {
  const next = createRandom(seed).random;
  const anyRpm = () => (next() < 0.1 ? null : Math.floor(next() * 40));
  let rpms = [anyRpm(), anyRpm(), anyRpm(), 0];
  const { clock, admit } = clocked(next() * 1e6);
  const plain = plainLimiter();
  let count = 0;
  for (let step = 0; step < 3_000; step += 1) {
    clock.now += pauseOf(next);
    if (next() < 0.01) rpms = [anyRpm(), anyRpm(), anyRpm(), 0];
    const which = 1 + Math.floor(next() * 3);
    const limits = [
      { name: "account", rpm: rpms[0]! },
      { name: `key ${which}`, rpm: rpms[which]! },
    ];
    const { resetMs, ...decision } = admit(...limits);
    const { resetMs: expectedMs, ...expected } = plain(clock.now, limits);
    const at = `seed ${seed}, step ${step}: ${JSON.stringify(limits)}`;
    assert.deepEqual(decision, expected, at);
    assert.ok(Math.abs(resetMs - expectedMs) < 1e-6, `${at}: ${resetMs}, not ${expectedMs}`);
    if (decision.admitted) count += 1;
  }
  assert.ok(count > 0 && count < 3_000, `seed ${seed} met no limit, or nothing else`);
}

// The last seed is new in each run.
for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, (Date.now() ^ process.pid) | 0])
  it(`random schedules get the plain limiter's decisions (seed ${seed})`, () =>
    assertSchedule(seed));

const MB = 1024 * 1024;
/** A name of 4 KiB, made from bytes: V8 shares the common end of concatenated strings. */
const long = (name: string): string =>
  Buffer.from(`${name} `.padEnd(4_096, "x")).toString("latin1");

describe("idle windows", () => {
  /** Admits 3,000 accounts once each: 12 MB of names. */
  const come = (one: (rpm: number, name: string) => AdmissionDecision, mark: string) => {
    for (let at = 0; at < 3_000; at += 1) assert.ok(one(1, long(`${mark} ${at}`)).admitted);
  };

  it("are freed: nothing of 3,000 accounts used once remains after a window's time", () => {
    const { clock, one } = clocked();
    one(2, "somebody"); // comes first, and continues
    const before = heldNow();
    come(one, "a");
    assert.ok(heldNow() - before > 9 * MB, "times that count are held");
    clock.now = WINDOW_MS - 0.001;
    one(2, "somebody");
    assert.ok(heldNow() - before > 9 * MB, "until the window ends");
    clock.now = WINDOW_MS;
    one(2, "somebody");
    assert.ok(heldNow() - before < 2 * MB, "any next request frees them");
    assert.equal(one(2, "somebody").admitted, false, "and frees no others");
  });

  it("a busy window stores no more than twice the entries that count", () => {
    const { clock, one } = clocked();
    const before = heldNow();
    for (let at = 0; at < (LONG ? 1_000_000 : 600_000); at += 1) {
      clock.now += 1;
      one(1_000_000); // 60,000 of them count
    }
    assert.equal(one(1_000_000).remaining, 1_000_000 - 60_001);
    assert.ok(heldNow() - before < 4 * MB, "all times would be 5 MB or more");
  });

  it("reading the usage returns what counts, and creates no window", () => {
    const { clock, limiter, one } = clocked();
    for (clock.now = 0; clock.now < 30; clock.now += 10) one(2);
    const used: number[] = [];
    for (const now of [30, WINDOW_MS - 1, WINDOW_MS, WINDOW_MS + 9, WINDOW_MS + 10]) {
      clock.now = now;
      used.push(limiter.used("a"));
    }
    assert.deepEqual([limiter.used("b"), ...used], [0, 2, 2, 1, 1, 0]);
    assert.deepEqual(one(2), one(2, "c"), "an empty window is like a new one");
    const before = heldNow();
    for (let at = 0; at < 3_000; at += 1) limiter.used(long(`${at}`));
    assert.ok(heldNow() - before < 2 * MB);
  });
});

const full = { ...UNLIMITED, admitted: false, rejectedBy: "in_flight" };
const request = (maxInFlight: number | null) => ({ account: "a", maxInFlight, limits: [] });
const limiter = () => createLimiter(() => 0);

it("max_in_flight 0 admits nothing, null admits everything and counts nothing", () => {
  const { admit, release } = limiter();
  assert.deepEqual(admit(request(0)), full);
  for (let at = 0; at < 100; at += 1) assert.ok(admit(request(null)).admitted);
  assert.ok(admit(request(1)).admitted);
  for (let at = 0; at < 100; at += 1) release(request(null));
  assert.deepEqual(admit(request(1)), full, "a request without a slot releases none");
});

it("slots belong to one account, and surplus releases add none", () => {
  const { admit, release } = limiter();
  for (let at = 0; at < 5; at += 1) release(request(2));
  for (const admitted of [true, true, false]) assert.equal(admit(request(2)).admitted, admitted);
  assert.ok(admit({ ...request(2), account: "b" }).admitted);
});
