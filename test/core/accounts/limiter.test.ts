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

/** Without the time of the admission, which only a refund needs. */
const figures = ({ countedAt, ...decision }: AdmissionDecision) => decision;

/** A limiter on a clock that stands still until it is set. */
function clocked(start = 0) {
  const clock = { now: start };
  const limiter = createLimiter(() => clock.now);
  return {
    clock,
    limiter,
    admit: (...limits: readonly Limit[]) =>
      figures(limiter.admit({ account: "acme", limits, maxInFlight: null })),
    /** Under one limit. */
    one: (rpm: number | null, name = "a") =>
      figures(limiter.admit({ account: "acme", limits: [{ name, rpm }], maxInFlight: null })),
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

/** A request at this moment under these limits, and the decision, or whether it is admitted. */
type Step = readonly [
  now: number,
  limits: readonly [account: number | null, key?: number | null],
  expected: boolean | AdmissionDecision,
];
const times = (count: number, step: Step): Step[] => Array.from({ length: count }, () => step);

const SCHEDULES: Readonly<Record<string, readonly Step[]>> = {
  "admits the limit, refuses the next, and says when there is room": [
    [1_000, [3], told(true, 3, 2)],
    [1_000, [3], told(true, 3, 1)],
    [1_000, [3], told(true, 3, 0)],
    [11_000, [3], told(false, 3, 0, 50_000)],
  ],
  "is exact: one before the end refused, at the end admitted; a refused request costs nothing": [
    [0, [1], true],
    ...times(5, [WINDOW_MS - 0.5, [1], told(false, 1, 0, 0.5)]),
    [WINDOW_MS, [1], true],
  ],
  "has no burst at an edge: late requests of one minute count in the next": [
    ...times(60, [59_999, [60], true]),
    [60_000, [60], false],
    [119_998, [60], false],
    [119_999, [60], true],
  ],
  "rpm 0 admits nothing, ever, and still names a time": [
    [5, [0], told(false, 0, 0)],
    [200_000, [0], told(false, 0, 0)],
  ],
  "null is unlimited and counts nothing": [
    ...times(100, [0, [null, null], UNLIMITED]),
    [0, [1], told(true, 1, 0)],
  ],
  "a lowered limit holds at once, and resetMs counts what has to leave first": [
    ...Array.from({ length: 10 }, (_, at): Step => [at, [10], true]),
    [10, [4], told(false, 4, 0, 6 + WINDOW_MS - 10)],
    [WINDOW_MS + 5.9, [4], false],
    [WINDOW_MS + 6, [4], true],
    [WINDOW_MS + 6, [4], false],
  ],
  "a raised limit has room at once": [
    [0, [1], true],
    [0, [1], false],
    [0, [3], told(true, 3, 1)],
  ],
  "what the key refuses costs its account nothing": [
    [0, [10, 1], true],
    ...times(5, [0, [10, 1], false]),
    [0, [10], told(true, 10, 8)],
  ],
  "what the account refuses costs its key nothing": [
    [0, [1, 10], true],
    ...times(5, [0, [1, 10], false]),
    [0, [null, 10], told(true, 10, 8)],
  ],
  "the answer tells of the limit that is nearer to its end": [
    [0, [10, 3], told(true, 3, 2)],
    [0, [3, 10], told(true, 3, 1)],
    [0, [5, null], told(true, 5, 2)],
  ],
  "when both are full the later of the two times is told, so that waiting is enough": [
    [0, [2], true],
    [20_000, [2, 1], true],
    [30_000, [2, 1], told(false, 1, 0, 50_000)],
    [60_000, [2, 1], false], // the account has room again, the key has not
    [80_000, [2, 1], true],
  ],
};

describe("the window", () => {
  for (const [name, steps] of Object.entries(SCHEDULES))
    it(name, () => {
      const { clock, admit } = clocked();
      for (const [index, [now, [account, key = null], expected]] of steps.entries()) {
        clock.now = now;
        const decision = figures(
          admit({ name: "account", rpm: account }, { name: "key", rpm: key }),
        );
        const { admitted } = decision;
        assert.deepEqual(expected === admitted ? admitted : decision, expected, `step ${index}`);
      }
    });

  it("counts a refunded request no longer, and the others as before", () => {
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
    assert.equal(limiter.used("a"), 1, "twice is as good as once");
    assert.ok(at(30).admitted);
    assert.equal(at(WINDOW_MS + 9).admitted, false, "the second is the oldest now");
    assert.ok(at(WINDOW_MS + 10).admitted);
    limiter.refund(request, second);
    assert.equal(limiter.used("a"), 2, "nor does one count twice that is old");
    limiter.refund(request, at(WINDOW_MS + 11));
    assert.equal(limiter.used("a"), 2, "one that was refused gives nothing back");
  });

  it("names have windows of their own, also odd ones", () => {
    const { one } = clocked();
    for (const name of ["a", "b", "__proto__", "constructor", ""]) {
      assert.ok(one(1, name).admitted, name);
      assert.equal(one(1, name).admitted, false, name);
    }
  });

  const MANY = LONG ? 1_000_000 : 100_000;
  it(`counts ${MANY} admissions of 100 s in moderate time`, () => {
    const { clock, one } = clocked();
    for (let i = 0; i < MANY; i += 1) {
      clock.now = i * (100_000 / MANY);
      assert.ok(one(MANY).admitted);
    }
    assert.equal(one(MANY).remaining, MANY - MANY * 0.6 - 1);
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

  it("are forgotten though others never rest, in whatever order they came", () => {
    const { clock, one } = clocked();
    one(1_000_000, "busy");
    const before = heldNow();
    for (let minute = 0; minute < (LONG ? 5 : 2); minute += 1) {
      come((rpm, name) => {
        one(1_000_000, "busy");
        return one(rpm, name);
      }, `minute ${minute}`);
      for (const _ of [1, 2]) {
        clock.now += WINDOW_MS / 2;
        one(1_000_000, "busy");
      }
      assert.ok(heldNow() - before < 5 * MB, `after minute ${minute}`);
    }
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
    const { clock, limiter, one } = clocked();
    for (clock.now = 0; clock.now < 30; clock.now += 10) one(2);
    const used: number[] = [];
    for (const now of [30, WINDOW_MS - 1, WINDOW_MS, WINDOW_MS + 9, WINDOW_MS + 10]) {
      clock.now = now;
      used.push(limiter.used("a"));
    }
    assert.deepEqual([limiter.used("b"), ...used], [0, 2, 2, 1, 1, 0]);
    assert.deepEqual(one(2), one(2, "c"), "an empty one that was looked at is as good as new");
    const before = heldNow();
    for (let at = 0; at < 10_000; at += 1) limiter.used(long(`${at}`));
    assert.ok(heldNow() - before < 5 * MB);
  });
});

describe("places in flight", () => {
  const full = { ...UNLIMITED, admitted: false, rejectedBy: "in_flight" };
  const request = (maxInFlight: number | null) => ({ account: "a", maxInFlight, limits: [] });
  const limiter = () => createLimiter(() => 0);

  it("are as many as the account may have, and refused with the reason; one given back is one to have", () => {
    const { admit, release } = limiter();
    for (let at = 0; at < 3; at += 1) assert.ok(admit(request(3)).admitted);
    for (let at = 0; at < 10; at += 1) {
      assert.deepEqual(admit(request(3)), full);
      release(request(3));
      assert.ok(admit(request(3)).admitted);
    }
  });

  it("0 is none, null is any number and counts nothing", () => {
    const { admit, release } = limiter();
    assert.deepEqual(admit(request(0)), full);
    for (let at = 0; at < 100; at += 1) assert.ok(admit(request(null)).admitted);
    assert.ok(admit(request(1)).admitted);
    for (let at = 0; at < 100; at += 1) release(request(null));
    assert.deepEqual(admit(request(1)), full, "what was taken without a place gives none back");
  });

  it("given back more often than taken they do not become more", () => {
    const { admit, release } = limiter();
    for (let at = 0; at < 5; at += 1) release(request(2));
    for (const admitted of [true, true, false]) assert.equal(admit(request(2)).admitted, admitted);
  });
});

it("decide tells of the window with the least left, of equal ones of that which takes longest; never less than nothing", () => {
  const window = (rpm: number, count: number, resetMs: number) => ({ rpm, count, resetMs });
  const [five, seven] = [window(5, 5, 10), window(7, 7, 20)];
  assert.deepEqual(decide(true, []), UNLIMITED);
  assert.deepEqual(decide(false, []), { ...UNLIMITED, admitted: false });
  const three = [window(10, 3, 5), window(4, 3, 1), window(9, 3, 7)];
  assert.deepEqual(decide(true, three), told(true, 4, 1, 1));
  assert.deepEqual(decide(false, [five, seven]), told(false, 7, 0, 20));
  assert.deepEqual(decide(false, [seven, five]), told(false, 7, 0, 20));
  assert.deepEqual(decide(false, [window(2, 9, 30)]), told(false, 2, 0, 30));
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
    for (let i = 0; i < 5; i += 1) assert.equal((await ask("sk-wrong")).status, 401);
    assert.deepEqual(rateHeaders(await ask()), ["3", "2", "60s"], "strangers use up nothing");
    clock.now += 20_000;
    const bad = await ask(KEY, { model: "m", messages: [] });
    assert.deepEqual([bad.status, ...rateHeaders(bad)], [400, "3", "1", "40s"]);
    const unknown = await ask(KEY, { model: "x", messages: user("hi") });
    assert.deepEqual([unknown.status, ...rateHeaders(unknown)], [404, "3", "0", "40s"]);
    assertLimited(await ask());
    const stranger = await ask("sk-wrong");
    assert.deepEqual([stranger.status, ...rateHeaders(stranger)], [401, null, null, null]);
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
    assert.deepEqual(rateHeaders(await ask("sk-narrow")), ["1", "0", "60s"]);
    assertLimited(await ask("sk-narrow"));
    assert.deepEqual(rateHeaders(await ask("sk-wide")), ["3", "1", "60s"]);
  });

  it("an account's own limit goes before the general one: 0 admits nothing, null everything", async (t) => {
    const keys = ["none", "all", "five", "general"].map((account) => ({
      account,
      key: `sk-${account}`,
    }));
    const accounts = { none: { rpm: 0 }, all: { rpm: null }, five: { rpm: 5 } };
    const { ask } = limited(t, { limits: { rpm: 1 }, accounts, keys });
    for (const [account, most] of [
      ["none", 0],
      ["all", 7],
      ["five", 5],
      ["general", 1],
    ] as const) {
      const seen = [];
      for (let i = 0; i < 7; i += 1) seen.push(await ask(`sk-${account}`));
      assert.equal(seen.filter(({ status }) => status === 200).length, most, account);
    }
    assert.equal(assertLimited(await ask("sk-none")), 60);
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
