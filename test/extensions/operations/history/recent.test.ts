// Single requests: what runs, what ended, what was refused, and how they are found.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createHistory } from "../../../../src/extensions/operations/history/history.ts";
import { startRecorder } from "../../../../src/extensions/operations/history/recorder.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { startGateway, demo, user } from "../../../support/gateway.ts";
import { until } from "../../../support/wait.ts";
import { attempt, teller } from "./requests.ts";

const PAGE = { skip: 0, limit: 100 };
const QUIET = { inFlight: 0, loopDelay: 0 };

function setUp() {
  const clock = createFakeClock(Date.parse("2026-11-22T09:00:00Z"));
  const recorder = startRecorder(clock);
  const history = createHistory(clock);
  const find = (filter = {}, page = PAGE) => {
    clock.advance(2_000);
    history.take([recorder.report()], QUIET);
    return history.find(filter, page);
  };
  return { clock, find, recorder, tell: teller(recorder, clock) };
}

describe("a request of late", () => {
  it("runs, without content, and then has ended with all that is known of it", () => {
    const { clock, find, recorder, tell } = setUp();
    const started = clock.now();
    const opening = tell.open({ requestId: "one" });
    const running = find();
    assert.equal(running.running, 1);
    assert.deepEqual(
      [running.requests[0]?.id, running.requests[0]?.ended, running.requests[0]?.asked_model],
      ["one", null, "auto/m"],
    );
    assert.doesNotMatch(JSON.stringify(recorder.report()), /secret words/);
    tell.settle(opening);
    tell.leave(opening);
    const { requests, running: left } = find();
    assert.equal(left, 0);
    assert.deepEqual(requests, [
      {
        id: "one",
        started,
        ended: started + 2_000,
        outcome: "ok",
        status: 200,
        path: "/v1/chat/completions",
        account: "acme",
        key: "key_1",
        asked_model: null,
        model: "m",
        provider: "lab",
        stream: true,
        code: null,
        param: null,
        asked: {
          messages: 1,
          tools: 0,
          thinking: false,
          format: null,
          max_tokens: 77,
          temperature: null,
        },
        duration_ms: 500,
        first_token_ms: 100,
        finish_reason: "stop",
        prompt_tokens: 10,
        cached_tokens: 4,
        cache_write_tokens: 2,
        completion_tokens: 20,
        reasoning_tokens: 5,
        usage_source: "provider",
        cost: "0.5",
        currency: "USD",
        attempts: [attempt()],
      },
    ]);
  });

  it("that is refused is there too, with its account and its code, and is no other's of that id", () => {
    const { find, tell } = setUp();
    const opening = tell.open({ requestId: "same" });
    tell.refuse({ request_id: "same" });
    const { requests } = find();
    assert.deepEqual(
      requests.map(({ id, status, code, attempts }) => [id, status, code, attempts.length]),
      [
        ["same", null, null, 0],
        ["same", 429, "rate_limit_exceeded", 0],
      ],
    );
    tell.settle(opening);
    tell.leave(opening);
    assert.deepEqual(
      find().requests.map(({ status }) => status),
      [200, 429],
    );
  });

  it("whose client left runs until the provider has been read to its end", () => {
    const { find, tell } = setUp();
    const opening = tell.open();
    tell.leave(opening, { status: 499, provider: undefined });
    assert.deepEqual(
      find().requests.map(({ ended }) => ended),
      [null],
    );
    tell.settle(opening, { status: "cancelled", httpStatus: 499 });
    assert.deepEqual(
      find().requests.map(({ outcome, cost }) => [outcome, cost]),
      [["cancelled", "0.5"]],
    );
  });

  it("is found by account, key, model, status, code, id and time", () => {
    const { find, tell } = setUp();
    tell.fine({ requestId: "abc" });
    tell.refuse({ account: "beta", key_id: "key_2", request_id: "def" });
    const { requestId } = tell.open({ requestId: "runs", keyId: "key_3" });
    const ids = (filter: object) => find(filter).requests.map(({ id }) => id);
    assert.deepEqual(ids({ account: "beta" }), ["def"]);
    assert.deepEqual(ids({ key: "key_1" }), ["abc"]);
    assert.deepEqual(ids({ model: "m" }), ["abc"]);
    assert.deepEqual(ids({ model: "auto/m" }), [requestId]);
    assert.deepEqual(ids({ status: "429" }), ["def"]);
    assert.deepEqual(ids({ status: "4xx" }), ["def"]);
    assert.deepEqual(ids({ status: "2xx" }), ["abc"]);
    assert.deepEqual(ids({ status: "running" }), ["runs"]);
    assert.deepEqual(ids({ code: "rate_limit_exceeded" }), ["def"]);
    assert.deepEqual(ids({ id: "b" }), ["abc"]);
    assert.deepEqual(ids({ slower: 400 }), ["runs", "abc"]);
    assert.deepEqual(ids({ account: "beta", status: "2xx" }), []);
  });

  it("with exactly the id that is looked for comes before those of which it is a part", () => {
    const { find, tell } = setUp();
    tell.fine({ requestId: "42" });
    for (let slice = 0; slice < 6; slice += 1) {
      find();
      for (let n = 0; n < 20; n += 1) tell.fine({ requestId: `job-42-${slice}-${n}` });
    }
    const { requests } = find({ id: "42" });
    assert.equal(requests[0]?.id, "42");
  });

  it("a flood of refusals pushes out neither those that went well nor those that failed", () => {
    const { find, tell } = setUp();
    tell.fine({ requestId: "fine" });
    tell.refuse({ request_id: "failed", status: 503, error_code: "model_unavailable" });
    for (let slice = 0; slice < 12; slice += 1) {
      for (let n = 0; n < 100; n += 1) tell.refuse({ request_id: `refused ${slice} ${n}` });
      find();
    }
    const { count, requests } = find({}, { skip: 0, limit: 1 });
    assert.equal(count, 602);
    assert.equal(requests[0]?.id, "refused 11 99");
    assert.equal(find({ id: "fine" }).count, 1);
    assert.equal(find({ id: "failed" }).count, 1);
  });
});

describe("the paths of the admin listener", () => {
  it("GET /requests and GET /history have what a client has just done", async (t) => {
    // What a process counts has the times of the machine's clock.
    const gw = await startGateway(t, demo(), { now: Date.now });
    const admin = gw.gateway.adminAddress()!;
    const body = { model: "demo-chat", messages: user("hi") };
    await gw.chat(body, { authorization: "Bearer sk-demo", "x-request-id": "asked once" });
    await gw.chat(body, { authorization: "Bearer sk-wrong", "x-request-id": "unknown" });
    const get = async (path: string) => (await (await fetch(`${admin}${path}`)).json()) as any;
    const found = await until(async () => {
      const answer = await get("/requests");
      return answer.count === 2 && answer;
    }, "both requests");
    assert.deepEqual(
      found.requests.map(({ id, status, code }: any) => [id, status, code]),
      [
        ["unknown", 401, "invalid_api_key"],
        ["asked once", 200, null],
      ],
    );
    assert.equal(
      (await get("/requests?id=once&limit=1")).requests[0].attempts[0].model,
      "demo-chat",
    );
    const { total, accounts } = await get("/history?range=1h");
    assert.deepEqual([total.ok, total["401"]], [1, 1]);
    assert.deepEqual(
      accounts.map(({ account }: any) => account).toSorted(),
      ["demo", null].toSorted(),
    );
  });

  it("what is asked for wrongly is told, with the name of what is wrong", async (t) => {
    const gw = await startGateway(t, demo());
    const cases: [path: string, param: string, message: RegExp][] = [
      ["/history?range=2h", "range", /15m, 1h, 6h or 24h/],
      ["/history?what=1", "what", /not a known field/],
      ["/requests?status=abc", "status", /429, 4xx or running/],
      ["/requests?limit=101", "limit", /1 to 100/],
      ["/requests?slower=soon", "slower", /milliseconds/],
      ["/requests?skip=-1", "skip", /a number/],
    ];
    for (const [path, param, message] of cases) {
      const response = await fetch(`${gw.gateway.adminAddress()}${path}`);
      const { error } = (await response.json()) as any;
      assert.deepEqual([response.status, error.param], [400, param], path);
      assert.match(error.message, message, path);
    }
  });
});
