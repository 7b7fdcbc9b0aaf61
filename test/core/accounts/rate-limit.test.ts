// Authentication by the Authorization header, and requests per minute, over HTTP. limiter.test.ts
// tests the limiter itself.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { before, describe, it, type TestContext } from "node:test";
import {
  type ChatAnswer,
  configFor,
  demo,
  json,
  KEY,
  type RunningGateway,
  startGateway,
  user,
} from "../../support/gateway.ts";
import { speak, startProvider } from "../../support/provider.ts";
import { assertError, rawRequest } from "../../support/raw.ts";
import { suiteScope } from "../../support/scope.ts";
import { bytesOf } from "../http/wire.ts";

describe("keys", () => {
  const scope = suiteScope();
  const digest = createHash("sha256").update("sk-by-digest").digest("hex");
  let gateway: RunningGateway;
  before(async () => {
    gateway = await startGateway(scope, demo({ keys: [{ account: "a", sha256: digest }] }));
  });
  const request = JSON.stringify({ model: "demo-chat", messages: user("hi") });
  for (const [name, authorization, status, code] of [
    ["another scheme", "Basic c2stZGVtbw==", 401, "missing_api_key"],
    ["an empty key", "Bearer ", 401, "missing_api_key"],
    ["a key in other letters", "Bearer SK-BY-DIGEST", 401, "invalid_api_key"],
    ["bytes beyond ASCII", "Bearer sk-d\u00e9mo", 401, "invalid_api_key"],
    ["a digest of the configuration", `Bearer ${digest}`, 401, "invalid_api_key"],
    ["a key that the configuration knows by its digest", "bEaReR sk-by-digest", 200, undefined],
  ] as const) {
    it(`${name}: ${status} ${code ?? ""}`, async () => {
      const length = `Content-Length: ${request.length}`;
      const fields = [`Authorization: ${authorization}`, "Connection: close", length];
      const bytes = bytesOf("POST /v1/chat/completions", fields, request);
      const answer = await rawRequest(gateway.url, Buffer.from(bytes, "latin1"));
      if (code) {
        assertError(answer, status, code);
        assert.match(answer.headers["www-authenticate"]!, /^Bearer/);
      } else assert.equal(answer.status, status);
    });
  }
});

describe("requests per minute", () => {
  interface Seen {
    readonly status: number;
    readonly headers: ChatAnswer["headers"];
    readonly code: string | undefined;
  }

  /**
   * A gateway on a clock that stands still until the test sets it, before a provider that always
   * answers.
   */
  async function limited(t: TestContext, over: object) {
    const clock = { now: 1_000_000.25 };
    const provider = await startProvider(t, { m: speak("Hello.") });
    const gw = await startGateway(t, configFor(provider.url, ["m"], over), {
      monotonic: () => clock.now,
    });
    const ask = async (key = KEY, body: unknown = { model: "m", messages: user("hi") }) => {
      const res = await gw.chat(body, { authorization: `Bearer ${key}` });
      const { error } = await json(res);
      return { status: res.status, headers: res.headers, code: error?.code };
    };
    return { provider, clock, ask };
  }

  const rateHeaders = ({ headers }: Seen) =>
    ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}-requests`));
  const NONE = [null, null, null];

  /** The seconds that a 429 states. scripts/conformance/checks/http.ts checks its text. */
  function assertLimited({ status, headers, code }: Seen): number {
    assert.deepEqual([status, code], [429, "rate_limit_exceeded"]);
    return Number(headers.get("retry-after"));
  }

  it("a rejected request does not reach the provider; after the wait it is admitted", async (t) => {
    const { provider, clock, ask } = await limited(t, { limits: { rpm: 1 } });
    assert.deepEqual(rateHeaders(await ask()), ["1", "0", "60s"]);
    const refused = await ask();
    assert.equal(assertLimited(refused), 60);
    assert.deepEqual(rateHeaders(refused), ["1", "0", "60s"]);
    clock.now += 45_500;
    const wait = assertLimited(await ask());
    assert.equal(wait, 15, "14.5 s are left, told in whole seconds, rounded up");
    assert.equal(provider.asked.length, 1);
    clock.now += wait * 1_000;
    assert.equal((await ask()).status, 200);
  });

  it("every response to an authenticated request states the limit, and rejected ones count", async (t) => {
    const { clock, ask } = await limited(t, { limits: { rpm: 3 } });
    for (let i = 0; i < 5; i += 1) assert.equal((await ask("sk-wrong")).status, 401);
    assert.deepEqual(rateHeaders(await ask()), ["3", "2", "60s"], "these do not count");
    clock.now += 20_000;
    const bad = await ask(KEY, { model: "m", messages: [] });
    assert.deepEqual([bad.status, ...rateHeaders(bad)], [400, "3", "1", "40s"]);
    const unknown = await ask(KEY, { model: "x", messages: user("hi") });
    assert.deepEqual([unknown.status, ...rateHeaders(unknown)], [404, "3", "0", "40s"]);
    assertLimited(await ask());
    assert.deepEqual(rateHeaders(await ask("sk-wrong")), NONE);
  });

  it("an account has the general limit or its own (0 admits nothing, null everything), and so has a key", async (t) => {
    const { ask } = await limited(t, {
      limits: { rpm: 3 },
      accounts: { none: { rpm: 0 }, all: { rpm: null }, five: { rpm: 5 } },
      keys: [
        { account: "acme", key: "narrow", rpm: 1 },
        ...["one", "two"].map((key) => ({ account: "acme", key })),
        ...["beta", "none", "all", "five"].map((key) => ({ account: key, key })),
      ],
    });
    /** The limit and what remains. Null: no limit. */
    const asked: readonly (readonly [key: string, told: string | null])[] = [
      ["narrow", "1 0"],
      ["narrow", "429"],
      ["one", "3 1"],
      ["two", "3 0"],
      ["one", "429"],
      ["two", "429"],
      ["beta", "3 2"],
      ["none", "429"],
      ...Array(4).fill(["all", null]),
      ["five", "5 4"],
    ];
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

  it("/v1/models and /healthz do not count", async (t) => {
    const gw = await startGateway(t, demo({ limits: { rpm: 1 } }));
    const headers = { authorization: "Bearer sk-demo" };
    for (const path of ["/v1/models", "/healthz", "/v1/models", "/healthz"])
      assert.equal((await fetch(`${gw.url}${path}`, { headers })).status, 200);
    const request = { model: "demo-chat", messages: user("hi") };
    for (const status of [200, 429]) assert.equal((await gw.chat(request, headers)).status, status);
  });
});
