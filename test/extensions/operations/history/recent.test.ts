// Single requests: running, ended or rejected, and how they are found.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { adminOf, ask } from "../../../support/admin.ts";
import { startGateway, demo, user } from "../../../support/gateway.ts";
import { attempt, bench } from "./requests.ts";

function setUp() {
  const { find: found, pass, ...rest } = bench();
  const find = (filter = {}, limit = 100) => {
    pass();
    return found(filter, { skip: 0, limit });
  };
  return { find, ...rest };
}

describe("a recent request", () => {
  it("is listed while it runs, without content, and then with everything known about its end", () => {
    const { clock, find, process, tell } = setUp();
    const started = clock.now();
    const opening = tell.open({ requestId: "one" });
    const { requests: running, running: count } = find();
    const [{ id, ended, asked_model } = {}] = running;
    const now = [count, running.length, id, ended, asked_model];
    assert.deepEqual(now, [1, 1, "one", null, "auto/m"]);
    assert.doesNotMatch(JSON.stringify(process.report()), /secret words/);
    tell.settle(opening);
    tell.leave(opening);
    const { requests, running: left } = find();
    assert.equal(left, 0);
    const tokens = { prompt_tokens: 10, completion_tokens: 20, reasoning_tokens: 5 };
    const usage = { ...tokens, cached_tokens: 4, cache_write_tokens: 2, usage_source: "provider" };
    assert.deepEqual(requests, [
      {
        ...{ id: "one", started, ended: started + 2_500, outcome: "ok", status: 200 },
        ...{ path: "/v1/chat/completions", account: "acme", key: "key_1", asked_model: null },
        ...{ model: "m", provider: "lab", stream: true, code: null, param: null },
        asked: {
          ...{ messages: 1, tools: 0, thinking: false, format: null },
          ...{ max_tokens: 77, temperature: null },
        },
        ...{ duration_ms: 500, first_token_ms: 100, finish_reason: "stop", ...usage },
        ...{ cost: "0.5", currency: "USD" },
        attempts: [attempt()],
      },
    ]);
  });

  it("that is rejected is listed too, with its account and code, separate from others with its id", () => {
    const { find, tell } = setUp();
    const opening = tell.open({ requestId: "same" });
    tell.refuse({ request_id: "same" });
    const codes = () => find().requests.map(({ id, status, code }) => [id, status, code]);
    const refused = ["same", 429, "rate_limit_exceeded"];
    assert.deepEqual(codes(), [["same", null, null], refused]);
    tell.settle(opening);
    tell.leave(opening);
    assert.deepEqual(codes(), [["same", 200, null], refused]);
  });

  it("whose client left is listed as running until its provider has been read to the end", () => {
    const { find, tell } = setUp();
    const opening = tell.open();
    tell.leave(opening, { status: 499, provider: undefined });
    assert.equal(find().requests[0]?.ended, null);
    tell.settle(opening, { status: "cancelled", httpStatus: 499 });
    const [{ outcome, cost } = {}, ...others] = find().requests;
    assert.deepEqual([outcome, cost, others], ["cancelled", "0.5", []]);
  });

  it("is found by account, key, model, status, code, id and time", () => {
    const { find, tell } = setUp();
    tell.fine({ requestId: "abc" });
    tell.refuse({ account: "beta", key_id: "key_2", request_id: "def" });
    tell.open({ requestId: "runs", keyId: "key_3" });
    for (const [filter, expected] of [
      [{ account: "beta" }, ["def"]],
      [{ key: "key_1" }, ["abc"]],
      [{ model: "m" }, ["abc"]],
      [{ model: "auto/m" }, ["runs"]],
      [{ status: "429" }, ["def"]],
      [{ status: "4xx" }, ["def"]],
      [{ status: "2xx" }, ["abc"]],
      [{ status: "running" }, ["runs"]],
      [{ code: "rate_limit_exceeded" }, ["def"]],
      [{ id: "b" }, ["abc"]],
      [{ slower: 400 }, ["runs", "abc"]],
      [{ account: "beta", status: "2xx" }, []],
    ] as const) {
      const ids = find(filter).requests.map(({ id }) => id);
      assert.deepEqual(ids, expected, JSON.stringify(filter));
    }
  });

  it("with exactly the searched id comes before those whose ids contain it", () => {
    const { find, tell } = setUp();
    for (const requestId of ["42", "job-42-1", "job-42-2"]) tell.fine({ requestId });
    assert.equal(find({ id: "42" }).requests[0]?.id, "42");
  });

  it("of every outcome survives a flood of rejections", () => {
    const { find, tell } = setUp();
    tell.fine({ requestId: "fine" });
    tell.refuse({ request_id: "failed", status: 503, error_code: "model_unavailable" });
    for (let look = 0; look < 7; look += 1) {
      for (let n = 0; n < 150; n += 1) tell.refuse({ request_id: `refused ${look} ${n}` });
      find();
    }
    const { count, requests } = find({}, 1);
    assert.deepEqual([count, requests[0]?.id], [602, "refused 6 149"]);
    for (const id of ["fine", "failed"]) assert.equal(find({ id }).count, 1);
  });
});

describe("the paths of the admin listener", () => {
  it("GET /requests and GET /history show what a client has just done", async (t) => {
    const keys = [
      { account: "demo", key: "sk-demo" },
      { account: "demo", key: "sk-slow", rpm: 1 },
      { account: "closed", key: "sk-never" },
    ];
    const limited = { keys, accounts: { closed: { rpm: 0 } } };
    const gw = await startGateway(t, demo(limited), { now: Date.now });
    const get = async (path: string) => (await ask(adminOf(gw), path)).body;
    const chat = { model: "demo-chat", messages: user("hi") };
    for (const [id, key] of Object.entries({ "asked once": "sk-demo", unknown: "sk-wrong" }))
      await (await gw.chat(chat, { authorization: `Bearer ${key}`, "x-request-id": id })).text();
    await get("/status"); // reads the state of all processes
    const told = (await get("/requests")).requests.map(
      ({ id, status, code }: any) => `${id}: ${status} ${code}`,
    );
    assert.deepEqual(told, ["unknown: 401 invalid_api_key", "asked once: 200 null"]);
    const { requests } = await get("/requests?id=once&limit=1");
    assert.equal(requests[0].attempts[0].model, "demo-chat");
    const history = await get("/history?range=1h");
    const { range, from, to, step, bins, total, accounts } = history;
    assert.equal(range, "1h");
    assert.ok(Math.abs(Date.now() - to) < 60_000, `it ends now, not at ${to}`);
    assert.ok(from < to && from + bins.length * step > to, `it begins at ${from}`);
    assert.deepEqual([total.ok, total["401"]], [1, 1]);
    assert.deepEqual(new Set(accounts.map(({ account }: any) => account)), new Set(["demo", null]));
    for (const [key, status] of [
      ["slow", 200],
      ["slow", 429],
      ["never", 429],
    ] as const)
      assert.equal((await gw.chat(chat, { authorization: `Bearer sk-${key}` })).status, status);
    await get("/status");
    const refusals = (await get("/history")).refusals.map(({ code, rpm }: any) => `${code} ${rpm}`);
    const byLimits = [0, 1].map((rpm) => `rate_limit_exceeded ${rpm}`);
    assert.deepEqual(refusals.sort(), ["invalid_api_key null", ...byLimits]);
  });

  it("what is asked for wrongly is told, with the name of what is wrong", async (t) => {
    const admin = adminOf(await startGateway(t, demo()));
    for (const [path, param, message] of [
      ["/history?range=2h", "range", /15m, 1h, 6h or 24h/],
      ["/history?what=1", "what", /not a known field/],
      ["/requests?status=abc", "status", /429, 4xx or running/],
      ["/requests?limit=101", "limit", /1 to 100/],
      ["/requests?slower=soon", "slower", /milliseconds/],
      ["/requests?skip=-1", "skip", /a number/],
    ] as const) {
      const { status, body } = await ask(admin, path);
      assert.deepEqual([status, body.error.param], [400, param], path);
      assert.match(body.error.message, message, path);
    }
  });
});
