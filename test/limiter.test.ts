// The limit: an exact sliding window of 60 seconds, first by itself on a clock that the test turns, then over HTTP.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createLimiter, WINDOW_MS, type Decision, type Limit } from "../src/accounts/limiter.ts";
import { configFor, KEY, startGateway, user, type RunningGateway } from "./support/gateway.ts";
import { speak, startProvider } from "./support/provider.ts";

/** A limiter on a clock that stands still until it is set. */
function clocked(start = 0) {
  const clock = { now: start };
  const limiter = createLimiter(() => clock.now);
  return {
    clock,
    admit: (...limits: readonly Limit[]) => limiter.admit({ account: "acme", limits, maxInFlight: null }),
    /** Under one limit. */
    one: (rpm: number | null, name = "a") => limiter.admit({ account: "acme", limits: [{ name, rpm }], maxInFlight: null }),
  };
}

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The most admissions in any half-open span of 60 seconds. */
function busiest(times: readonly number[]): number {
  let most = 0;
  let from = 0;
  times.forEach((time, index) => {
    while (times[from]! + WINDOW_MS <= time) from += 1;
    most = Math.max(most, index - from + 1);
  });
  return most;
}

/** The obvious limiter, slow and plain: what the real one must agree with. */
function plainLimiter() {
  const admitted = new Map<string, number[]>();
  return (now: number, limits: readonly Limit[]): boolean => {
    const recent = ({ name }: Limit) => (admitted.get(name) ?? []).filter((time) => time + WINDOW_MS > now);
    const ok = limits.every((limit) => limit.rpm === null || recent(limit).length < limit.rpm);
    if (ok) for (const limit of limits) if (limit.rpm !== null) admitted.set(limit.name, [...recent(limit), now]);
    return ok;
  };
}

describe("the window", () => {
  it("admits the limit, refuses the next, and says when there is room", () => {
    const { clock, one } = clocked(1_000);
    const remaining = [2, 1, 0].map(() => one(3));
    assert.deepEqual(remaining.map((each) => [each.admitted, each.limit, each.remaining, each.resetMs]), [
      [true, 3, 2, 60_000], [true, 3, 1, 60_000], [true, 3, 0, 60_000],
    ]);
    clock.now = 11_000;
    assert.deepEqual(one(3), { admitted: false, limit: 3, remaining: 0, resetMs: 50_000 });
  });

  it("is exact to the millisecond: one before the end refused, at the end admitted", () => {
    const { clock, one } = clocked();
    assert.ok(one(1).admitted);
    clock.now = WINDOW_MS - 0.001;
    const refused = one(1);
    assert.equal(refused.admitted, false);
    assert.ok(refused.resetMs > 0 && refused.resetMs < 0.01, `${refused.resetMs}`);
    clock.now = WINDOW_MS;
    assert.ok(one(1).admitted);
  });

  it("has no burst at an edge: late requests of one minute count in the next", () => {
    const { clock, one } = clocked();
    clock.now = 59_999;
    for (let i = 0; i < 60; i += 1) assert.ok(one(60).admitted);
    for (clock.now = 60_000; clock.now < 119_999; clock.now += 777) assert.equal(one(60).admitted, false, `at ${clock.now}`);
    clock.now = 119_999;
    assert.ok(one(60).admitted);
  });

  it("gives room back one by one, as the requests leave the window", () => {
    const { clock, one } = clocked();
    for (clock.now = 0; clock.now < 3_000; clock.now += 1_000) assert.ok(one(3).admitted);
    for (const [now, admitted] of [[59_999, false], [60_000, true], [60_001, false], [61_000, true], [61_999, false],
      [62_000, true]] as const) {
      clock.now = now;
      assert.equal(one(3).admitted, admitted, `at ${now}`);
    }
  });

  it("a refused request costs nothing", () => {
    const { clock, one } = clocked();
    assert.ok(one(1).admitted);
    for (clock.now = 1; clock.now < WINDOW_MS; clock.now += 100) assert.equal(one(1).admitted, false);
    clock.now = WINDOW_MS;
    assert.ok(one(1).admitted);
  });

  it("resetMs is enough, and no less would be", () => {
    const { clock, one } = clocked();
    for (const at of [0, 10, 400]) {
      clock.now = at;
      one(3);
    }
    clock.now = 1_234;
    const { resetMs } = one(3);
    clock.now = 1_234 + resetMs - 0.5;
    assert.equal(one(3).admitted, false);
    clock.now = 1_234 + resetMs;
    assert.ok(one(3).admitted);
  });

  it("rpm 0 admits nothing, ever, and still names a time", () => {
    const { clock, one } = clocked(5);
    for (clock.now = 5; clock.now < 200_000; clock.now += 30_000) {
      assert.deepEqual(one(0), { admitted: false, limit: 0, remaining: 0, resetMs: WINDOW_MS });
    }
  });

  it("null is unlimited and counts nothing", () => {
    const { one } = clocked();
    for (let i = 0; i < 5_000; i += 1) assert.deepEqual(one(null), { admitted: true, limit: null, remaining: Infinity, resetMs: 0 });
    assert.deepEqual(one(1), { admitted: true, limit: 1, remaining: 0, resetMs: WINDOW_MS });
  });

  it("no limits at all admit", () => assert.deepEqual(clocked().admit(), { admitted: true, limit: null, remaining: Infinity, resetMs: 0 }));

  it("names have windows of their own, also odd ones", () => {
    const { one } = clocked();
    for (const name of ["a", "b", "__proto__", "constructor", ""]) {
      assert.ok(one(1, name).admitted, name);
      assert.equal(one(1, name).admitted, false, name);
    }
  });

  it("a lowered limit holds at once, and resetMs counts what has to leave first", () => {
    const { clock, one } = clocked();
    for (clock.now = 0; clock.now < 10; clock.now += 1) one(10);
    assert.deepEqual(one(4), { admitted: false, limit: 4, remaining: 0, resetMs: 6 + WINDOW_MS - 10 });
    clock.now = WINDOW_MS + 5.9;
    assert.equal(one(4).admitted, false);
    clock.now = WINDOW_MS + 6;
    assert.ok(one(4).admitted);
    assert.equal(one(4).admitted, false);
  });

  it("a raised limit has room at once", () => {
    const { one } = clocked();
    one(1);
    assert.equal(one(1).admitted, false);
    assert.deepEqual(one(3), { admitted: true, limit: 3, remaining: 1, resetMs: WINDOW_MS });
  });

  it("the real clock is used if none is given", () => {
    const limiter = createLimiter();
    const ask = { account: "acme", limits: [{ name: "a", rpm: 1 }], maxInFlight: null };
    assert.ok(limiter.admit(ask).admitted);
    const refused = limiter.admit(ask);
    assert.equal(refused.admitted, false);
    assert.ok(refused.resetMs > 50_000 && refused.resetMs <= WINDOW_MS, `${refused.resetMs}`);
  });
});

describe("the ring of times", () => {
  // It starts with 8 places: fill to each size, let some leave so that it wraps, and fill again while it is wrapped.
  for (const rpm of [1, 7, 8, 9, 16, 17, 1_000]) {
    it(`grows and wraps without losing count at ${rpm}`, () => {
      const { clock, one } = clocked();
      const times: number[] = [];
      const plain = plainLimiter();
      for (let step = 0; step < 4_000; step += 1) {
        clock.now = step * 97;
        const decision = one(rpm);
        assert.equal(decision.admitted, plain(clock.now, [{ name: "a", rpm }]), `step ${step}`);
        if (decision.admitted) times.push(clock.now);
      }
      assert.equal(busiest(times), Math.min(rpm, Math.ceil(WINDOW_MS / 97)));
    });
  }

  it("growing while it is wrapped keeps the order of the times", () => {
    const { clock, one } = clocked();
    const fill = (at: number, count: number, rpm: number) => {
      clock.now = at;
      for (let i = 0; i < count; i += 1) assert.ok(one(rpm).admitted, `${i} at ${at}`);
    };
    fill(0, 5, 100);
    fill(1_000, 3, 100); // full: 8
    fill(60_000, 5, 100); // the first five have left, and these stand in their places
    fill(60_500, 20, 100); // grows while wrapped
    clock.now = 60_999;
    assert.equal(one(100).remaining, 100 - 29);
    clock.now = 61_000;
    assert.equal(one(100).remaining, 100 - 27, "the three of 1,000 have left, one more has come");
    clock.now = 120_000;
    assert.equal(one(100).remaining, 100 - 23, "the five of 60,000 have left");
    clock.now = 120_500;
    assert.equal(one(100).remaining, 100 - 4);
  });

  it("a million admissions go through in moderate time", () => {
    const { clock, one } = clocked();
    for (let i = 0; i < 1_000_000; i += 1) {
      clock.now = i / 10;
      assert.ok(one(1_000_000).admitted);
    }
    assert.equal(one(1_000_000).remaining, 1_000_000 - 600_000 - 1);
  });
});

describe("two limits", () => {
  const limits = (account: number | null, key: number | null): [Limit, Limit] =>
  [{ name: "account", rpm: account }, { name: "key", rpm: key }];

  it("admit under both or count under neither", () => {
    const { admit, one } = clocked();
    assert.ok(admit(...limits(10, 1)).admitted);
    for (let i = 0; i < 5; i += 1) assert.equal(admit(...limits(10, 1)).admitted, false);
    assert.equal(one(10, "account").remaining, 8, "the account has paid for one, and now for a second, not for five more");
    const other = clocked();
    assert.ok(other.admit(...limits(1, 10)).admitted);
    for (let i = 0; i < 5; i += 1) assert.equal(other.admit(...limits(1, 10)).admitted, false);
    assert.equal(other.one(10, "key").remaining, 8, "nor the key for what its account refused");
  });

  it("the answer tells of the one that is nearer to its end", () => {
    const { admit } = clocked();
    assert.deepEqual(admit(...limits(10, 3)), { admitted: true, limit: 3, remaining: 2, resetMs: WINDOW_MS });
    assert.deepEqual(clocked().admit(...limits(3, 10)), { admitted: true, limit: 3, remaining: 2, resetMs: WINDOW_MS });
    assert.equal(clocked().admit(...limits(5, null)).limit, 5);
    assert.equal(clocked().admit(...limits(null, 5)).limit, 5);
    assert.equal(clocked().admit(...limits(null, null)).limit, null);
  });

  it("when both are full the later of the two times is told, so that waiting is enough", () => {
    const { clock, admit } = clocked();
    admit({ name: "account", rpm: 2 });
    clock.now = 20_000;
    assert.ok(admit(...limits(2, 1)).admitted);
    clock.now = 30_000;
    const refused = admit(...limits(2, 1));
    assert.deepEqual(refused, { admitted: false, limit: 1, remaining: 0, resetMs: 50_000 });
    clock.now = 60_000;
    assert.equal(admit(...limits(2, 1)).admitted, false, "the account has room again, the key has not");
    clock.now = 80_000;
    assert.ok(admit(...limits(2, 1)).admitted);
  });
});

describe("random schedules", () => {
  const seeds = [1, 2, 3, 4, 5, 6, 7, 8];
  const fresh = (Date.now() ^ process.pid) | 0;
  for (const seed of [...seeds, fresh]) {
    it(`never more than the limit in any 60 s, never fewer than there is room for (seed ${seed}${seed === fresh ? ", a new one each run" : ""})`, () => {
      const next = random(seed);
      const accountRpm = 1 + Math.floor(next() * 40);
      const keyRpms = [1 + Math.floor(next() * 40), null, Math.floor(next() * 10)];
      const { clock, admit } = clocked(next() * 1e6);
      const plain = plainLimiter();
      const account: number[] = [];
      const keys: number[][] = [[], [], []];
      for (let step = 0; step < 3_000; step += 1) {
        // Mostly bursts at one instant, sometimes pauses, now and then exactly a window's length.
        const kind = next();
        clock.now += kind < 0.5 ? 0 : kind < 0.9 ? next() * 3_000 : kind < 0.98 ? next() * 40_000 : WINDOW_MS;
        const which = Math.floor(next() * 3);
        const limits = [{ name: "account", rpm: accountRpm }, { name: `key ${which}`, rpm: keyRpms[which]! }];
        const { admitted, remaining, resetMs }: Decision = admit(...limits);
        assert.equal(admitted, plain(clock.now, limits), `seed ${seed}, step ${step}`);
        assert.ok(remaining >= 0 && resetMs > 0 && resetMs <= WINDOW_MS, `seed ${seed}, step ${step}: ${remaining}, ${resetMs}`);
        if (admitted) {
          account.push(clock.now);
          keys[which]!.push(clock.now);
        }
      }
      assert.ok(busiest(account) <= accountRpm, `seed ${seed}: ${busiest(account)} of ${accountRpm}`);
      keys.forEach((times, which) => assert.ok(busiest(times) <= (keyRpms[which] ?? Infinity), `seed ${seed}, key ${which}`));
      assert.ok(account.length > 0 && account.length < 3_000, `seed ${seed}: the schedule met no limit, or nothing else`);
    });
  }
});

describe("over HTTP", () => {
  interface Seen {
    readonly status: number;
    readonly headers: Headers;
    readonly error: { message: string; type: string; code: string; param: unknown; request_id: string } | undefined;
  }

  /** A gateway on a clock that stands still until it is set, in front of a provider that always answers. */
  async function limited(t: TestContext, over: object) {
    const clock = { now: 1_000_000.25 };
    const provider = await startProvider(t, { m: speak("Hello.") });
    const gw = await startGateway(t, configFor(provider.url, ["m"], over), { monotonic: () => clock.now });
    const ask = async (key = KEY, body: unknown = { model: "m", messages: user("hi") }): Promise<Seen> => {
      const res = await gw.chat(body, { authorization: `Bearer ${key}` });
      const json = (await res.json()) as { error?: Seen["error"] };
      return { status: res.status, headers: res.headers, error: json.error };
    };
    return { gw, provider, clock, ask };
  }

  const rateHeaders = ({ headers }: Seen) => ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}-requests`));

  /** A 429 in every particular. The seconds that it names. */
  function assertLimited(seen: Seen): number {
    assert.equal(seen.status, 429);
    const retryAfter = seen.headers.get("retry-after") ?? "";
    assert.match(retryAfter, /^[1-9]\d*$/, "a whole number of seconds, at least 1");
    assert.ok(Number(retryAfter) <= 60, retryAfter);
    assert.deepEqual(seen.error, {
      message: `Requests-per-minute limit exceeded. Retry after ${retryAfter} seconds.`,
      type: "rate_limit_error",
      code: "rate_limit_exceeded",
      param: null,
      request_id: seen.headers.get("x-request-id") ?? "",
    });
    return Number(retryAfter);
  }

  it("of 200 parallel requests at a limit of 60 exactly 60 are admitted; waiting it out admits again", async (t) => {
    const { provider, clock, ask } = await limited(t, { limits: { rpm: 60 } });
    const seen = await Promise.all(Array.from({ length: 200 }, () => ask()));
    const admitted = seen.filter(({ status }) => status === 200);
    const refused = seen.filter(({ status }) => status !== 200);
    assert.deepEqual([admitted.length, refused.length], [60, 140]);
    assert.equal(provider.asked.length, 60, "a refused request does not reach the provider");
    for (const each of refused) assert.equal(assertLimited(each), 60);
    const left = admitted.map((each) => Number(each.headers.get("x-ratelimit-remaining-requests"))).sort((a, b) => b - a);
    assert.deepEqual(left, Array.from({ length: 60 }, (_, index) => 59 - index), "each admission counts one down");
    assert.deepEqual(rateHeaders(refused[0]!), ["60", "0", "60s"]);
    assert.equal(new Set(seen.map(({ headers }) => headers.get("x-request-id"))).size, 200);

    clock.now += 45_500;
    const wait = assertLimited(await ask());
    assert.equal(wait, 15, "14.5 s are left, told in whole seconds, rounded up");
    clock.now += (wait - 1) * 1_000;
    assert.equal(assertLimited(await ask()), 1);
    clock.now += 1_000;
    assert.deepEqual(rateHeaders(await ask()), ["60", "59", "60s"]);
  });

  it("every answer of an authenticated request carries the limit; so do refusals for other reasons, which count", async (t) => {
    const { clock, ask } = await limited(t, { limits: { rpm: 3 } });
    assert.deepEqual(rateHeaders(await ask()), ["3", "2", "60s"]);
    clock.now += 20_000;
    const bad = await ask(KEY, { model: "m", messages: [] });
    assert.deepEqual([bad.status, ...rateHeaders(bad)], [400, "3", "1", "40s"]);
    const unknown = await ask(KEY, { model: "x", messages: user("hi") });
    assert.deepEqual([unknown.status, ...rateHeaders(unknown)], [404, "3", "0", "40s"]);
    assertLimited(await ask());
    const stranger = await ask("sk-wrong");
    assert.deepEqual([stranger.status, ...rateHeaders(stranger)], [401, null, null, null]);
  });

  it("a streamed answer carries the limit as well", async (t) => {
    const { gw } = await limited(t, { limits: { rpm: 2 } });
    const res = await gw.chat({ model: "m", messages: user("hi"), stream: true });
    assert.equal(res.headers.get("content-type"), "text/event-stream; charset=utf-8");
    assert.equal(res.headers.get("x-ratelimit-remaining-requests"), "1");
    assert.match(await res.text(), /\[DONE\]/);
  });

  it("strangers do not use up anybody's limit", async (t) => {
    const { ask } = await limited(t, { limits: { rpm: 1 } });
    for (let i = 0; i < 5; i += 1) assert.equal((await ask("sk-wrong")).status, 401);
    assert.equal((await ask()).status, 200);
  });

  it("keys of one account share its limit; another account has its own", async (t) => {
    const keys = [{ account: "acme", key: "sk-1" }, { account: "acme", key: "sk-2" }, { account: "beta", key: "sk-3" }];
    const { ask } = await limited(t, { limits: { rpm: 2 }, keys });
    const statuses = [];
    for (const key of ["sk-1", "sk-2", "sk-1", "sk-2", "sk-3", "sk-3", "sk-3"]) statuses.push((await ask(key)).status);
    assert.deepEqual(statuses, [200, 200, 429, 429, 200, 200, 429]);
  });

  it("a key's own limit is a second, narrower one", async (t) => {
    const keys = [{ account: "acme", key: "sk-narrow", rpm: 1 }, { account: "acme", key: "sk-wide" }];
    const { ask } = await limited(t, { limits: { rpm: 3 }, keys });
    const first = await ask("sk-narrow");
    assert.deepEqual([first.status, ...rateHeaders(first)], [200, "1", "0", "60s"]);
    for (let i = 0; i < 4; i += 1) assertLimited(await ask("sk-narrow"));
    const wide = await ask("sk-wide");
    assert.deepEqual([wide.status, ...rateHeaders(wide)], [200, "3", "1", "60s"], "what the key refused has cost its account nothing");
    assert.equal((await ask("sk-wide")).status, 200);
    assertLimited(await ask("sk-wide"));
  });

  it("an account's own limit goes before the general one: 0 admits nothing, null everything", async (t) => {
    const keys = ["none", "all", "five", "general"].map((account) => ({ account, key: `sk-${account}` }));
    const { ask } = await limited(t, { limits: { rpm: 1 }, accounts: { none: { rpm: 0 }, all: { rpm: null }, five: { rpm: 5 } }, keys });
    const count = async (key: string) => {
      let admitted = 0;
      for (let i = 0; i < 7; i += 1) admitted += (await ask(key)).status === 200 ? 1 : 0;
      return admitted;
    };
    assert.deepEqual([await count("sk-none"), await count("sk-all"), await count("sk-five"), await count("sk-general")], [0, 7, 5, 1]);
    assert.equal(assertLimited(await ask("sk-none")), 60);
    assert.deepEqual(rateHeaders(await ask("sk-none")), ["0", "0", "60s"]);
    assert.deepEqual(rateHeaders(await ask("sk-all")), [null, null, null]);
  });

  it("/v1/models and /healthz cost nothing", async (t) => {
    const { gw, ask } = await limited(t, { limits: { rpm: 1 } });
    const get = async ({ url }: RunningGateway, path: string) =>
    (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${KEY}` } })).status;
    for (let i = 0; i < 3; i += 1) assert.deepEqual([await get(gw, "/v1/models"), await get(gw, "/healthz")], [200, 200]);
    assert.equal((await ask()).status, 200);
  });
});
