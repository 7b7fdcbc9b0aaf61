// The limits over HTTP: the requests that an account or a process may have in flight, and those of
// a minute. The limiter by itself is in limiter.test.ts.

import assert from "node:assert/strict";
import net from "node:net";
import { describe, it, type TestContext } from "node:test";
import { checkConfig } from "../../support/config.ts";
import {
  configFor,
  demo,
  KEY,
  startGateway,
  user,
  type ChatAnswer,
} from "../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../support/memory.ts";
import {
  chunk,
  event,
  silent,
  speak,
  startProvider,
  status,
  stream,
  type Asked,
  type Behaviour,
} from "../../support/provider.ts";
import { waitFor } from "../../support/wait.ts";

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
    const behaviours = {
      held,
      silent,
      fine: speak("Fine."),
      bad: status(500),
      cut: stream([chunk({ content: "Fi" })], "cut"),
    };
    const provider = await startProvider(t, behaviours);
    const keys = [
      { account: "acme", key: KEY },
      { account: "acme", key: "sk-acme-2" },
      { account: "beta", key: "sk-beta" },
    ];
    const gw = await startGateway(
      t,
      configFor(provider.url, Object.keys(behaviours), {
        keys,
        timeouts: { leave_ms: 0 },
        ...over,
      }),
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
      for (const response of responses) assert.equal(response.status, 200);
      return responses;
    };
    const heldAt = () =>
      provider.asked.filter(
        ({ body, closed, res }) => body["model"] === "held" && !closed() && !res.writableEnded,
      );
    return { gw, provider, send, statusOf, hold, heldAt };
  }

  async function assertRefusal(response: Response, status: number, error: object): Promise<void> {
    assert.deepEqual([response.status, response.headers.get("retry-after")], [status, "1"]);
    const request_id = response.headers.get("x-request-id");
    assert.deepEqual(await response.json(), { error: { ...error, param: null, request_id } });
  }
  const assertFull = (response: Response, size: number) =>
    assertRefusal(response, 429, {
      message: `Concurrency limit exceeded: this account may have ${size} requests in flight. Retry after 1 seconds.`,
      type: "rate_limit_error",
      code: "concurrency_limit_exceeded",
    });

  it("an account's: one more is refused at once, with any of its keys; another account is not touched; places come back", async (t) => {
    const { send, statusOf, hold, heldAt, provider } = await bench(t, {
      accounts: { acme: { max_in_flight: 3 } },
    });
    const streams = await hold(3);
    const asked = provider.asked.length;
    for (const key of [KEY, "sk-acme-2"]) await assertFull(await send("fine", { key }), 3);
    assert.equal(provider.asked.length, asked, "the provider is not asked");
    assert.equal(await statusOf("fine", "sk-beta"), 200);
    finish(heldAt()[0]!);
    await Promise.race(streams.map((response) => response.text()));
    assert.equal(await statusOf("fine"), 200);
    await hold(1, "sk-acme-2");
    await assertFull(await send("fine"), 3);
  });

  it("a place that was refused takes nothing from the window, and a request that the window refuses takes no place", async (t) => {
    const { send, hold, heldAt, statusOf } = await bench(t, {
      accounts: { acme: { max_in_flight: 1, rpm: 2 } },
    });
    const [stream] = await hold(1);
    for (let at = 0; at < 3; at += 1) await assertFull(await send("fine"), 1);
    heldAt().forEach(finish);
    await stream!.text();
    assert.equal(await statusOf("fine"), 200);
    for (let at = 0; at < 2; at += 1)
      assert.match(await (await send("fine")).text(), /Requests-per-minute/, "it had a place");
  });

  it("a place is free again after every end that a request can have", async (t) => {
    const { gw, send, statusOf, provider } = await bench(t, {
      accounts: { acme: { max_in_flight: 1 } },
    });
    const free = async (after: string) => assert.equal(await statusOf("fine"), 200, after);
    await free("a whole reply");
    assert.equal(await statusOf("bad"), 503);
    await free("a provider's failure");
    assert.equal(await statusOf("cut"), 200);
    await free("a stream that the provider cut");
    assert.equal((await send("fine", { body: { messages: 1 } })).status, 400);
    assert.equal((await gw.chat("{")).status, 400);
    assert.equal((await gw.chat("{}", { "content-type": "text/plain" })).status, 415);
    await free("a body that was refused");

    for (const model of ["held", "silent"]) {
      const leaver = new AbortController();
      const sent = send(model, { signal: leaver.signal });
      sent.catch(() => undefined);
      const { closed } = await provider.nth(provider.asked.length);
      if (model === "held") await sent;
      await assertFull(await send("fine"), 1);
      leaver.abort();
      await waitFor(closed, "the provider to be left");
      await waitFor(() => gw.access.at(-1)!["status"] === 499, "its line in the access log");
      await free(`a client that left a ${model} provider`);
    }

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
  });

  it("by a reload: another number holds at once, and requests on their way give back what they took", async (t) => {
    const { gw, provider, send, statusOf, hold, heldAt } = await bench(t, {
      accounts: { acme: { max_in_flight: 2 } },
    });
    const reload = (max_in_flight: number | null) => {
      const accounts = { acme: { max_in_flight } };
      gw.gateway.reload(checkConfig(configFor(provider.url, ["held", "fine"], { accounts }), {}));
    };
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
    for (const key of [KEY, "sk-nobody", ""]) {
      const response = await send("fine", { key });
      assert.equal(response.headers.get("www-authenticate"), null);
      assert.equal(response.headers.get("x-ratelimit-limit-requests"), null);
      await assertRefusal(response, 503, {
        message: "The gateway has too many requests in hand.",
        type: "service_unavailable_error",
        code: "server_overloaded",
      });
    }
    assert.equal(provider.asked.length, asked);
    assert.equal((await fetch(`${gw.url}/healthz`)).status, 200);
    const refused = () => gw.access.filter((line) => line["status"] === 503);
    await waitFor(() => refused().length === 3, "their lines in the access log");
    for (const line of refused()) assert.equal(line["account"], null, "nobody knows who they were");
    const over = () => gw.access.filter((line) => line["model"] === "held").length;
    finish(heldAt()[0]!);
    await waitFor(() => over() === 1, "one stream to be over");
    assert.equal(await statusOf("fine"), 200);
    await hold(1);
    assert.equal(await statusOf("fine"), 503);
    heldAt().forEach(finish);
    for (const response of streams) await response.text();
    await waitFor(() => over() === 5, "all streams to be over");
    assert.deepEqual([await statusOf("fine"), await statusOf("fine", "sk-nobody")], [200, 401]);
  });
});

describe("in the gateway", () => {
  interface Seen {
    readonly status: number;
    readonly headers: ChatAnswer["headers"];
    readonly error: object | undefined;
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
    return { provider, clock, ask };
  }

  const rateHeaders = ({ headers }: Seen) =>
    ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}-requests`));
  const NONE = [null, null, null];

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
    const left = admitted.map((each) => Number(rateHeaders(each)[1])).sort((a, b) => b - a);
    const countdown = Array.from({ length: 60 }, (_, index) => 59 - index);
    assert.deepEqual(left, countdown, "each admission counts one down");
    assert.deepEqual(rateHeaders(refused[0]!), ["60", "0", "60s"]);

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
    assert.deepEqual(rateHeaders(await ask("sk-wrong")), NONE);
  });

  /** Of which account a key is; its own limit, where it has one. */
  const keysOf = (owners: Readonly<Record<string, [account: string, rpm?: number]>>) =>
    Object.entries(owners).map(([key, [account, rpm]]) => ({ key, account, ...(rpm && { rpm }) }));
  /** What is asked with which key: "429", or the limit and what is left; null: no limit. */
  type Asking = readonly (readonly [key: string, told: string | null])[];
  const RULES: readonly (readonly [name: string, over: object, asked: Asking])[] = [
    [
      "keys of one account share its limit; another account has its own",
      { limits: { rpm: 2 }, keys: keysOf({ one: ["acme"], two: ["acme"], other: ["beta"] }) },
      [
        ["one", "2 1"],
        ["two", "2 0"],
        ["one", "429"],
        ["two", "429"],
        ["other", "2 1"],
      ],
    ],
    [
      "a key's own limit is a second, narrower one",
      { limits: { rpm: 3 }, keys: keysOf({ narrow: ["acme", 1], wide: ["acme"] }) },
      [
        ["narrow", "1 0"],
        ["narrow", "429"],
        ["wide", "3 1"],
      ],
    ],
    [
      "an account's own limit goes before the general one: 0 admits nothing, null everything",
      {
        limits: { rpm: 1 },
        accounts: { none: { rpm: 0 }, all: { rpm: null }, five: { rpm: 5 } },
        keys: keysOf({ none: ["none"], all: ["all"], five: ["five"], general: ["general"] }),
      },
      [
        ["none", "429"],
        ["all", null],
        ["all", null],
        ["five", "5 4"],
        ["general", "1 0"],
        ["general", "429"],
      ],
    ],
  ];
  for (const [name, over, asked] of RULES)
    it(name, async (t) => {
      const { ask } = limited(t, over);
      for (const [index, [key, expected]] of asked.entries()) {
        const seen = await ask(key);
        if (expected === "429") assertLimited(seen);
        else {
          assert.equal(seen.status, 200, `request ${index}`);
          const told = expected === null ? NONE : [...expected.split(" "), "60s"];
          assert.deepEqual(rateHeaders(seen), told, `request ${index}`);
        }
      }
    });

  it("/v1/models and /healthz cost nothing", async (t) => {
    const gw = await startGateway(t, demo({ limits: { rpm: 1 } }));
    const headers = { authorization: "Bearer sk-demo" };
    for (const path of ["/v1/models", "/healthz", "/v1/models", "/healthz"])
      assert.equal((await fetch(`${gw.url}${path}`, { headers })).status, 200);
    const request = { model: "demo-chat", messages: user("hi") };
    for (const status of [200, 429]) assert.equal((await gw.chat(request, headers)).status, status);
  });
});
