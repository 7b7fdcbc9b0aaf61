// The limits: an exact sliding window of 60 seconds, and the requests that an account or a process
// may have in flight; first by themselves on a clock that the test turns, then over HTTP.

import assert from "node:assert/strict";
import net from "node:net";
import { describe, it, type TestContext } from "node:test";
import {
  createLimiter,
  decide,
  WINDOW_MS,
  type AdmissionDecision,
  type Limit,
} from "../../../src/core/accounts/limiter.ts";
import { checkConfig } from "../../support/config.ts";
import { heldNow } from "../../support/held.ts";
import { configFor, KEY, startGateway, user, type ChatAnswer } from "../../support/gateway.ts";
import {
  chunk,
  event,
  reset,
  silent,
  speak,
  startProvider,
  status,
  type Asked,
  type Behaviour,
} from "../../support/provider.ts";
import { LONG } from "../../support/long.ts";
import { createMemoryGateway, memoryProvider } from "../../support/memory.ts";
import { createRandom } from "../../support/random.ts";
import { waitFor } from "../../support/wait.ts";

/** A limiter on a clock that stands still until it is set. */
function clocked(start = 0) {
  const clock = { now: start };
  const limiter = createLimiter(() => clock.now);
  return {
    clock,
    admit: (...limits: readonly Limit[]) =>
      limiter.admit({ account: "acme", limits, maxInFlight: null }),
    /** Under one limit. */
    one: (rpm: number | null, name = "a") =>
      limiter.admit({ account: "acme", limits: [{ name, rpm }], maxInFlight: null }),
  };
}

/** A decision that names a limit. */
const told = (admitted: boolean, limit: number, remaining: number, resetMs = WINDOW_MS) => ({
  admitted,
  limit,
  remaining,
  resetMs,
});
const UNLIMITED = { admitted: true, limit: null, remaining: Infinity, resetMs: 0 };

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
    const recent = ({ name }: Limit) =>
      (admitted.get(name) ?? []).filter((time) => time + WINDOW_MS > now);
    const ok = limits.every((limit) => limit.rpm === null || recent(limit).length < limit.rpm);
    if (ok)
      for (const limit of limits)
        if (limit.rpm !== null) admitted.set(limit.name, [...recent(limit), now]);
    return ok;
  };
}

describe("the window", () => {
  it("admits the limit, refuses the next, and says when there is room", () => {
    const { clock, one } = clocked(1_000);
    const remaining = [2, 1, 0].map(() => one(3));
    assert.deepEqual(
      remaining.map((each) => [each.admitted, each.limit, each.remaining, each.resetMs]),
      [
        [true, 3, 2, 60_000],
        [true, 3, 1, 60_000],
        [true, 3, 0, 60_000],
      ],
    );
    clock.now = 11_000;
    assert.deepEqual(one(3), told(false, 3, 0, 50_000));
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
    for (clock.now = 60_000; clock.now < 119_999; clock.now += 777)
      assert.equal(one(60).admitted, false, `at ${clock.now}`);
    clock.now = 119_999;
    assert.ok(one(60).admitted);
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
      assert.deepEqual(one(0), told(false, 0, 0));
    }
  });

  it("null is unlimited and counts nothing", () => {
    const { one } = clocked();
    for (let i = 0; i < 5_000; i += 1) assert.deepEqual(one(null), UNLIMITED);
    assert.deepEqual(one(1), told(true, 1, 0));
  });
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
    assert.deepEqual(one(4), told(false, 4, 0, 6 + WINDOW_MS - 10));
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
    assert.deepEqual(one(3), told(true, 3, 1));
  });
});

describe("the ring of times", () => {
  const STEPS = LONG ? 4_000 : 1_500;
  const MANY = LONG ? 1_000_000 : 100_000;

  // It starts with 8 places: fill to each size, let some leave so that it wraps, and fill again
  // while it is wrapped.
  for (const rpm of [1, 7, 8, 9, 16, 17, 1_000]) {
    it(`grows and wraps without losing count at ${rpm}`, () => {
      const { clock, one } = clocked();
      const times: number[] = [];
      const plain = plainLimiter();
      for (let step = 0; step < STEPS; step += 1) {
        clock.now = step * 97;
        const decision = one(rpm);
        assert.equal(decision.admitted, plain(clock.now, [{ name: "a", rpm }]), `step ${step}`);
        if (decision.admitted) times.push(clock.now);
      }
      assert.equal(busiest(times), Math.min(rpm, Math.ceil(WINDOW_MS / 97)));
    });
  }

  it(`counts ${MANY} admissions of 100 s in moderate time`, () => {
    const { clock, one } = clocked();
    for (let i = 0; i < MANY; i += 1) {
      clock.now = i * (100_000 / MANY);
      assert.ok(one(MANY).admitted);
    }
    assert.equal(one(MANY).remaining, MANY - MANY * 0.6 - 1);
  });
});

describe("two limits", () => {
  const limits = (account: number | null, key: number | null): [Limit, Limit] => [
    { name: "account", rpm: account },
    { name: "key", rpm: key },
  ];

  it("admit under both or count under neither", () => {
    const { admit, one } = clocked();
    assert.ok(admit(...limits(10, 1)).admitted);
    for (let i = 0; i < 5; i += 1) assert.equal(admit(...limits(10, 1)).admitted, false);
    assert.equal(
      one(10, "account").remaining,
      8,
      "the account has paid for one, and now for a second, not for five more",
    );
    const other = clocked();
    assert.ok(other.admit(...limits(1, 10)).admitted);
    for (let i = 0; i < 5; i += 1) assert.equal(other.admit(...limits(1, 10)).admitted, false);
    assert.equal(other.one(10, "key").remaining, 8, "nor the key for what its account refused");
  });

  it("the answer tells of the one that is nearer to its end", () => {
    const { admit } = clocked();
    assert.deepEqual(admit(...limits(10, 3)), told(true, 3, 2));
    assert.deepEqual(clocked().admit(...limits(3, 10)), told(true, 3, 2));
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
    assert.deepEqual(refused, told(false, 1, 0, 50_000));
    clock.now = 60_000;
    assert.equal(
      admit(...limits(2, 1)).admitted,
      false,
      "the account has room again, the key has not",
    );
    clock.now = 80_000;
    assert.ok(admit(...limits(2, 1)).admitted);
  });
});

/** Mostly bursts at one instant, sometimes pauses, now and then exactly a window's length. */
function pauseOf(next: () => number): number {
  const kind = next();
  if (kind < 0.5) return 0;
  if (kind < 0.9) return next() * 3_000;
  if (kind < 0.98) return next() * 40_000;
  return WINDOW_MS;
}

/** A random schedule under two limits: what is admitted is what the plain limiter admits. */
function assertSchedule(seed: number): void {
  const next = createRandom(seed).random;
  const accountRpm = 1 + Math.floor(next() * 40);
  const keyRpms = [1 + Math.floor(next() * 40), null, Math.floor(next() * 10)];
  const { clock, admit } = clocked(next() * 1e6);
  const plain = plainLimiter();
  const account: number[] = [];
  const keys: number[][] = [[], [], []];
  for (let step = 0; step < 3_000; step += 1) {
    clock.now += pauseOf(next);
    const which = Math.floor(next() * 3);
    const limits = [
      { name: "account", rpm: accountRpm },
      { name: `key ${which}`, rpm: keyRpms[which]! },
    ];
    const { admitted, remaining, resetMs }: AdmissionDecision = admit(...limits);
    assert.equal(admitted, plain(clock.now, limits), `seed ${seed}, step ${step}`);
    assert.ok(
      remaining >= 0 && resetMs > 0 && resetMs <= WINDOW_MS,
      `seed ${seed}, step ${step}: ${remaining}, ${resetMs}`,
    );
    if (admitted) {
      account.push(clock.now);
      keys[which]!.push(clock.now);
    }
  }
  assert.ok(busiest(account) <= accountRpm, `seed ${seed}: ${busiest(account)} of ${accountRpm}`);
  keys.forEach((times, which) => {
    assert.ok(busiest(times) <= (keyRpms[which] ?? Infinity), `seed ${seed}, key ${which}`);
  });
  assert.ok(
    account.length > 0 && account.length < 3_000,
    `seed ${seed}: the schedule met no limit, or nothing else`,
  );
}

describe("random schedules", () => {
  const seeds = [1, 2, 3, 4, 5, 6, 7, 8];
  const fresh = (Date.now() ^ process.pid) | 0;
  for (const seed of [...seeds, fresh]) {
    it(`never more than the limit in any 60 s, never fewer than there is room for (seed ${seed}${seed === fresh ? ", a new one each run" : ""})`, () =>
      assertSchedule(seed));
  }
});

const MB = 1024 * 1024;
/**
 * A name of 4 KiB, made of bytes: of texts that were put together V8 would keep one end for all of
 * them.
 */
const long = (name: string): string =>
  Buffer.from(`${name} `.padEnd(4_096, "x")).toString("latin1");

describe("idle windows", () => {
  /** 10,000 accounts, once each: 40 MB of names. */
  const come = (one: (rpm: number, name: string) => AdmissionDecision, mark: string) => {
    for (let at = 0; at < 10_000; at += 1) assert.ok(one(1, long(`${mark} ${at}`)).admitted);
  };

  it("are forgotten: of 10,000 accounts that came once nothing is held a window's time later", () => {
    const { clock, one } = clocked();
    const before = heldNow();
    come(one, "a");
    assert.ok(heldNow() - before > 30 * MB, "they are held while they count, and it can be seen");
    clock.now = WINDOW_MS - 0.001;
    one(1, "somebody");
    assert.ok(heldNow() - before > 30 * MB, "to the last moment");
    clock.now = WINDOW_MS;
    one(2, "somebody");
    assert.ok(heldNow() - before < 5 * MB, "the next request, of whomever, lets go of them");
    assert.equal(one(2, "somebody").admitted, false, "and of nobody else");
  });

  it("the busy one keeps no more than twice what counts", () => {
    const { clock, one } = clocked();
    const before = heldNow();
    for (let at = 0; at < (LONG ? 1_000_000 : 600_000); at += 1) {
      clock.now += 1;
      one(1_000_000); // 60,000 of them count
    }
    assert.equal(one(1_000_000).remaining, 1_000_000 - 60_001);
    assert.ok(heldNow() - before < 4 * MB, "all times would be 5 MB or more");
  });

  it("asking what is used gives what counts, and makes no window", () => {
    const clock = { now: 0 };
    const limiter = createLimiter(() => clock.now);
    const ask = (name: string) =>
      limiter.admit({ account: "a", limits: [{ name, rpm: 2 }], maxInFlight: null });
    ask("a");
    clock.now = 10;
    ask("a");
    ask("a");
    const used = (now: number) => {
      clock.now = now;
      return limiter.used("a");
    };
    assert.deepEqual(
      [
        limiter.used("a"),
        limiter.used("b"),
        used(WINDOW_MS - 1),
        used(WINDOW_MS),
        used(WINDOW_MS + 9),
        used(WINDOW_MS + 10),
      ],
      [2, 0, 2, 1, 1, 0],
    );
    assert.deepEqual(
      [ask("a"), ask("b")],
      [ask("c"), ask("d")],
      "one that was looked at when it was empty is as good as new",
    );
    const before = heldNow();
    for (let at = 0; at < 10_000; at += 1) limiter.used(long(`${at}`));
    assert.ok(heldNow() - before < 5 * MB);
  });
});

describe("places in flight", () => {
  const full = {
    admitted: false,
    limit: null,
    remaining: Infinity,
    resetMs: 0,
    rejectedBy: "in_flight",
  };
  /** A limiter, and what an account of `size` places gets; `rpm` is its window. */
  function placed() {
    const clock = { now: 0 };
    const limiter = createLimiter(() => clock.now);
    const asked = (account: string, maxInFlight: number | null, rpm: number | null) => ({
      account,
      maxInFlight,
      limits: [{ name: `account ${account}`, rpm }],
    });
    return {
      clock,
      limiter,
      take: (account: string, size: number | null, rpm: number | null = null) =>
        limiter.admit(asked(account, size, rpm)),
      give: (account: string, size: number | null) => limiter.release(asked(account, size, null)),
    };
  }
  /** How many more it gets; they are given back. */
  const free = (
    { take, give }: ReturnType<typeof placed>,
    account: string,
    size: number,
  ): number => {
    let count = 0;
    while (count < 100 && take(account, size).admitted) count += 1;
    for (let at = 0; at < count; at += 1) give(account, size);
    return count;
  };

  it("are as many as the account may have, and refused with the reason; one given back is one to have", () => {
    const { take, give } = placed();
    assert.deepEqual(
      [take("a", 3).admitted, take("a", 3).admitted, take("a", 3).admitted],
      [true, true, true],
    );
    assert.deepEqual([take("a", 3), take("a", 3)], [full, full]);
    for (let at = 0; at < 10; at += 1) {
      give("a", 3);
      assert.deepEqual([take("a", 3).admitted, take("a", 3)], [true, full]);
    }
  });

  it("0 is none, null is any number and counts nothing", () => {
    const { take, give } = placed();
    assert.deepEqual(take("a", 0), full);
    for (let at = 0; at < 100; at += 1) assert.ok(take("a", null).admitted);
    assert.ok(take("a", 1).admitted);
    for (let at = 0; at < 100; at += 1) give("a", null);
    assert.deepEqual(take("a", 1), full, "what was taken without a place gives none back");
  });

  it("given back more often than taken they do not become more", () => {
    const it = placed();
    it.give("a", 2);
    it.take("a", 2);
    for (let at = 0; at < 5; at += 1) it.give("a", 2);
    assert.equal(free(it, "a", 2), 2);
    assert.equal(free(it, "b", 2), 2);
  });
});

describe("decide", () => {
  it("tells of the window with the least left, of equal ones of that which takes longest; never less than nothing", () => {
    const window = (rpm: number, count: number, resetMs: number) => ({ rpm, count, resetMs });
    assert.deepEqual(decide(true, []), UNLIMITED);
    assert.deepEqual(decide(false, []), { ...UNLIMITED, admitted: false });
    assert.deepEqual(
      decide(true, [window(10, 3, 5), window(4, 3, 1), window(9, 3, 7)]),
      told(true, 4, 1, 1),
    );
    for (const windows of [
      [window(5, 5, 10), window(7, 7, 20)],
      [window(7, 7, 20), window(5, 5, 10)],
    ])
      assert.deepEqual(decide(false, windows), told(false, 7, 0, 20));
    assert.deepEqual(decide(false, [window(2, 9, 30)]), told(false, 2, 0, 30));
  });
});

describe("requests in flight over HTTP", () => {
  /** A stream that has begun; the test ends it. */
  const held: Behaviour = ({ res }) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(event(chunk({ content: "Fi" })));
  };
  const finish = ({ res }: Asked) => {
    res.end(event(chunk({ content: "ne." }, "stop")));
  };

  async function bench(t: TestContext, over: object) {
    const provider = await startProvider(t, {
      held,
      silent,
      fine: speak("Fine."),
      bad: status(500),
      reset,
      cut: ({ res, socket }) => {
        res.writeHead(200, { "content-type": "text/event-stream" });
        res.write(event(chunk({ content: "Fi" })), () => socket.resetAndDestroy());
      },
    });
    const keys = [
      { account: "acme", key: KEY },
      { account: "acme", key: "sk-acme-2" },
      { account: "beta", key: "sk-beta" },
    ];
    const gw = await startGateway(
      t,
      configFor(provider.url, ["held", "silent", "fine", "bad", "reset", "cut"], { keys, ...over }),
    );
    const send = (
      model: string,
      { key = KEY, signal, body = {} }: { key?: string; signal?: AbortSignal; body?: object } = {},
    ) =>
      fetch(`${gw.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(signal && { signal }),
        body: JSON.stringify({
          model,
          messages: user("hi"),
          stream: model === "held" || model === "cut",
          ...body,
        }),
      });
    /** Its status, when it is over. */
    const statusOf = async (model: string, key = KEY) => {
      const response = await send(model, { key });
      await response.text();
      return response.status;
    };
    const hold = async (count: number, key = KEY) => {
      const responses = await Promise.all(
        Array.from({ length: count }, () => send("held", { key })),
      );
      assert.deepEqual(
        responses.map((response) => response.status),
        Array<number>(count).fill(200),
      );
      return responses;
    };
    const heldAt = () =>
      provider.asked.filter(
        ({ body, closed, res }) => body["model"] === "held" && !closed() && !res.writableEnded,
      );
    return { gw, provider, send, statusOf, hold, heldAt };
  }

  async function assertFull(response: Response, size: number): Promise<void> {
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "1");
    assert.deepEqual(await response.json(), {
      error: {
        message: `Concurrency limit exceeded: this account may have ${size} requests in flight. Retry after 1 seconds.`,
        type: "rate_limit_error",
        code: "concurrency_limit_exceeded",
        param: null,
        request_id: response.headers.get("x-request-id"),
      },
    });
  }

  it("an account's: one more is refused at once, with any of its keys; another account is not touched; places come back", async (t) => {
    const { send, statusOf, hold, heldAt, provider } = await bench(t, {
      accounts: { acme: { max_in_flight: 3 } },
    });
    const streams = await hold(3);
    const asked = provider.asked.length;
    for (const key of [KEY, "sk-acme-2"]) await assertFull(await send("fine", { key }), 3);
    assert.equal(provider.asked.length, asked, "the provider is not asked");
    assert.equal(await statusOf("fine", "sk-beta"), 200);
    heldAt().slice(0, 1).forEach(finish);
    await Promise.race(streams.map((response) => response.text()));
    await waitFor(() => heldAt().length === 2, "one stream to be over");
    assert.deepEqual([await statusOf("fine"), await statusOf("fine")], [200, 200]);
    await hold(1, "sk-acme-2");
    await assertFull(await send("fine"), 3);
  });

  it("a place that was refused takes nothing from the window, and a request that the window refuses takes no place", async (t) => {
    const { send, hold, heldAt, statusOf } = await bench(t, {
      accounts: { acme: { max_in_flight: 1, rpm: 3 } },
    });
    const [stream] = await hold(1);
    for (let at = 0; at < 5; at += 1) await assertFull(await send("fine"), 1);
    heldAt().forEach(finish);
    await stream!.text();
    const second = await send("fine");
    assert.deepEqual(
      [second.status, second.headers.get("x-ratelimit-remaining-requests")],
      [200, "1"],
    );
    await second.text();
    assert.equal(await statusOf("fine"), 200);
    for (let at = 0; at < 3; at += 1) {
      const refused = await send("fine");
      assert.equal(refused.status, 429);
      assert.match(await refused.text(), /Requests-per-minute/, "which says that it had a place");
    }
  });

  it("a place is free again after every end that a request can have", async (t) => {
    const { gw, send, statusOf, hold, provider } = await bench(t, {
      accounts: { acme: { max_in_flight: 1 } },
    });
    const free = async (after: string) => assert.equal(await statusOf("fine"), 200, after);
    await free("a whole reply");
    assert.deepEqual([await statusOf("bad"), await statusOf("reset")], [503, 503]);
    await free("a provider's failure");
    assert.equal(await statusOf("cut"), 200);
    await free("a stream that the provider cut");
    for (const body of [{ messages: 1 }, { model: "none" }])
      assert.ok([400, 404].includes((await send("fine", { body })).status));
    for (const body of ["{", "", "[]"]) assert.equal((await gw.chat(body)).status, 400);
    assert.equal((await gw.chat("{}", { "content-type": "text/plain" })).status, 415);
    await free("a body that was refused");

    const leaver = new AbortController();
    const asked = provider.asked.length;
    const response = await send("held", { signal: leaver.signal });
    assert.equal(response.status, 200);
    await assertFull(await send("fine"), 1);
    leaver.abort();
    await waitFor(() => provider.asked[asked]!.closed(), "the provider to be left");
    await waitFor(() => gw.access.at(-1)!["status"] === 499, "its line in the access log");
    await free("a client that left in mid-stream");

    const early = new AbortController();
    const silence = send("silent", { signal: early.signal });
    silence.catch(() => undefined);
    const { closed } = await provider.nth(provider.asked.length);
    await assertFull(await send("fine"), 1);
    early.abort();
    await waitFor(closed, "the silent provider to be left");
    await waitFor(() => gw.access.at(-1)!["status"] === 499, "its line in the access log");
    await free("a client that left before the first token");

    // A body that never comes whole holds a place, until its client leaves.
    const half = net.connect(Number(new URL(gw.url).port), "127.0.0.1");
    half.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nX-Request-Id: half\r\nContent-Length: 9\r\n\r\n{`,
    );
    await waitFor(() => gw.gateway.report().inFlight === 1, "it to arrive");
    await assertFull(await send("fine"), 1);
    half.resetAndDestroy();
    await gw.accessOf("half");
    await free("a client that left while it was sending");
    await hold(1);
    await assertFull(await send("fine"), 1);
  });

  it("of 50 at once exactly as many are admitted as there are places", async (t) => {
    const { send, heldAt } = await bench(t, { accounts: { acme: { max_in_flight: 7 } } });
    const responses = await Promise.all(Array.from({ length: 50 }, () => send("held")));
    const refused = responses.filter((response) => response.status !== 200);
    assert.deepEqual([responses.length - refused.length, heldAt().length], [7, 7]);
    for (const response of refused) await assertFull(response, 7);
  });

  it("by a reload: another number holds at once, and requests on their way give back what they took", async (t) => {
    const { gw, provider, send, statusOf, hold, heldAt } = await bench(t, {
      accounts: { acme: { max_in_flight: 2 } },
    });
    const reload = (max_in_flight: number | null) =>
      gw.gateway.reload(
        checkConfig(
          configFor(provider.url, ["held", "fine"], { accounts: { acme: { max_in_flight } } }),
          {},
        ),
      );
    const early = await hold(2);
    reload(null);
    const unbounded = await hold(3);
    reload(3);
    const third = await hold(1);
    await assertFull(await send("fine"), 3);
    heldAt().forEach(finish);
    for (const response of [...early, ...unbounded, ...third]) await response.text();
    assert.equal(await statusOf("fine"), 200);
    await hold(3);
    await assertFull(await send("fine"), 3);
  });

  it("the process's: one more is 503 at once, whoever asks, before the key is looked at; health is told; it recovers", async (t) => {
    const { gw, provider, send, statusOf, hold, heldAt } = await bench(t, {
      server: { port: 0, max_in_flight: 4 },
    });
    const streams = [...(await hold(2)), ...(await hold(2, "sk-beta"))];
    const asked = provider.asked.length;
    for (const key of [KEY, "sk-beta", "sk-nobody", ""]) {
      const response = await send("fine", { key });
      assert.deepEqual(
        [
          response.status,
          response.headers.get("retry-after"),
          response.headers.get("www-authenticate"),
          response.headers.get("x-ratelimit-limit-requests"),
        ],
        [503, "1", null, null],
      );
      assert.deepEqual(await response.json(), {
        error: {
          message: "The gateway has too many requests in hand.",
          type: "service_unavailable_error",
          code: "server_overloaded",
          param: null,
          request_id: response.headers.get("x-request-id"),
        },
      });
    }
    assert.equal(provider.asked.length, asked);
    assert.equal((await fetch(`${gw.url}/healthz`)).status, 200);
    await waitFor(
      () => gw.access.filter((line) => line["status"] === 503).length === 4,
      "their lines in the access log",
    );
    assert.ok(
      gw.access.every((line) => line["status"] !== 503 || line["account"] === null),
      "nobody knows who they were",
    );
    heldAt().slice(0, 1).forEach(finish);
    await waitFor(
      () => gw.access.some((line) => line["model"] === "held"),
      "one stream to be over",
    );
    assert.equal(await statusOf("fine"), 200);
    await hold(1);
    assert.equal(await statusOf("fine"), 503);
    heldAt().forEach(finish);
    for (const response of streams) await response.text();
    await waitFor(
      () => gw.access.filter((line) => line["model"] === "held").length === 5,
      "all streams to be over",
    );
    assert.deepEqual([await statusOf("fine"), await statusOf("fine", "sk-nobody")], [200, 401]);
  });
});

describe("in the gateway", () => {
  interface Seen {
    readonly status: number;
    readonly headers: ChatAnswer["headers"];
    readonly error:
      | { message: string; type: string; code: string; param: unknown; request_id: string }
      | undefined;
  }

  /**
   * A gateway on a clock that stands still until it is set, in front of a provider that always
   * answers.
   */
  function limited(t: TestContext, over: object) {
    const clock = { now: 1_000_000.25 };
    const provider = memoryProvider(t, { m: speak("Hello.") });
    const gw = createMemoryGateway(configFor(provider.url, ["m"], over), {
      monotonic: () => clock.now,
    });
    const ask = async (
      key = KEY,
      body: unknown = { model: "m", messages: user("hi") },
    ): Promise<Seen> => {
      const res = await gw.chat(body, { authorization: `Bearer ${key}` });
      const json = (await res.json()) as { error?: Seen["error"] };
      return { status: res.status, headers: res.headers, error: json.error };
    };
    return { gw, provider, clock, ask };
  }

  const rateHeaders = ({ headers }: Seen) =>
    ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}-requests`));

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
    const { provider, clock, ask } = limited(t, { limits: { rpm: 60 } });
    const seen = await Promise.all(Array.from({ length: 200 }, () => ask()));
    const admitted = seen.filter(({ status }) => status === 200);
    const refused = seen.filter(({ status }) => status !== 200);
    assert.deepEqual([admitted.length, refused.length], [60, 140]);
    assert.equal(provider.asked.length, 60, "a refused request does not reach the provider");
    for (const each of refused) assert.equal(assertLimited(each), 60);
    const left = admitted
      .map((each) => Number(each.headers.get("x-ratelimit-remaining-requests")))
      .sort((a, b) => b - a);
    assert.deepEqual(
      left,
      Array.from({ length: 60 }, (_, index) => 59 - index),
      "each admission counts one down",
    );
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
    const { clock, ask } = limited(t, { limits: { rpm: 3 } });
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

  it("strangers do not use up anybody's limit", async (t) => {
    const { ask } = limited(t, { limits: { rpm: 1 } });
    for (let i = 0; i < 5; i += 1) assert.equal((await ask("sk-wrong")).status, 401);
    assert.equal((await ask()).status, 200);
  });

  it("keys of one account share its limit; another account has its own", async (t) => {
    const keys = [
      { account: "acme", key: "sk-1" },
      { account: "acme", key: "sk-2" },
      { account: "beta", key: "sk-3" },
    ];
    const { ask } = limited(t, { limits: { rpm: 2 }, keys });
    const statuses = [];
    for (const key of ["sk-1", "sk-2", "sk-1", "sk-2", "sk-3", "sk-3", "sk-3"])
      statuses.push((await ask(key)).status);
    assert.deepEqual(statuses, [200, 200, 429, 429, 200, 200, 429]);
  });

  it("a key's own limit is a second, narrower one", async (t) => {
    const keys = [
      { account: "acme", key: "sk-narrow", rpm: 1 },
      { account: "acme", key: "sk-wide" },
    ];
    const { ask } = limited(t, { limits: { rpm: 3 }, keys });
    const first = await ask("sk-narrow");
    assert.deepEqual([first.status, ...rateHeaders(first)], [200, "1", "0", "60s"]);
    for (let i = 0; i < 4; i += 1) assertLimited(await ask("sk-narrow"));
    const wide = await ask("sk-wide");
    assert.deepEqual(
      [wide.status, ...rateHeaders(wide)],
      [200, "3", "1", "60s"],
      "what the key refused has cost its account nothing",
    );
    assert.equal((await ask("sk-wide")).status, 200);
    assertLimited(await ask("sk-wide"));
  });

  it("an account's own limit goes before the general one: 0 admits nothing, null everything", async (t) => {
    const keys = ["none", "all", "five", "general"].map((account) => ({
      account,
      key: `sk-${account}`,
    }));
    const { ask } = limited(t, {
      limits: { rpm: 1 },
      accounts: { none: { rpm: 0 }, all: { rpm: null }, five: { rpm: 5 } },
      keys,
    });
    const count = async (key: string) => {
      let admitted = 0;
      for (let i = 0; i < 7; i += 1) admitted += (await ask(key)).status === 200 ? 1 : 0;
      return admitted;
    };
    assert.deepEqual(
      [
        await count("sk-none"),
        await count("sk-all"),
        await count("sk-five"),
        await count("sk-general"),
      ],
      [0, 7, 5, 1],
    );
    assert.equal(assertLimited(await ask("sk-none")), 60);
    assert.deepEqual(rateHeaders(await ask("sk-none")), ["0", "0", "60s"]);
    assert.deepEqual(rateHeaders(await ask("sk-all")), [null, null, null]);
  });

  it("/v1/models and /healthz cost nothing", async (t) => {
    const provider = await startProvider(t, { m: speak("Hello.") });
    const gw = await startGateway(t, configFor(provider.url, ["m"], { limits: { rpm: 1 } }));
    const get = async (path: string) =>
      (await fetch(`${gw.url}${path}`, { headers: { authorization: `Bearer ${KEY}` } })).status;
    for (let i = 0; i < 3; i += 1)
      assert.deepEqual([await get("/v1/models"), await get("/healthz")], [200, 200]);
    assert.equal((await gw.chat({ model: "m", messages: user("hi") })).status, 200);
    assert.equal((await gw.chat({ model: "m", messages: user("hi") })).status, 429);
  });
});
