// GET /v1/requests/{request_id}: what an account learns about its requests, from the last byte of a
// reply on, and after the day is closed.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { withLock } from "../../../../src/extensions/scale/data-files/index.ts";
import { findReceipts } from "../../../../src/extensions/money/receipts/receipts.ts";
import {
  openLine,
  priced,
  settleLine,
  settles,
  usageFile,
  type Line,
} from "../../../support/books.ts";
import { json, KEY, merge } from "../../../support/gateway.ts";
import { completion, status, type Behaviour } from "../../../support/provider.ts";
import { within } from "../../../support/wait.ts";
import { siteOf } from "../usage/shared.ts";

const PRICE = { input_cache_hit: 0.1, input_cache_miss: 1, input_cache_write: 1.25, output: 2 };
const STATED = {
  prompt_tokens: 100,
  completion_tokens: 80,
  prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 30 },
  completion_tokens_details: { reasoning_tokens: 5 },
};
const using: Behaviour = status(200, completion({ content: "Fine." }, "stop", { usage: STATED }));
const OTHER = "sk-other";

async function site(t: TestContext, over: object = {}) {
  const defaults = {
    models: { m: { price: PRICE } },
    aliases: { team: { models: ["bad", "m"] } },
    keys: [
      { account: "acme", key: KEY },
      { account: "beta", key: OTHER },
    ],
    // Nothing is copied without a command.
    usage: { sync_ms: 86_400_000 },
  };
  const behaviours = { m: using, bad: status(500) };
  const at = await priced(t, behaviours, merge(defaults, over) as object);
  const receipt = async (id: string, key = KEY) => {
    const headers = { authorization: `Bearer ${key}` };
    const url = `${at.gw.url}/v1/requests/${encodeURIComponent(id)}`;
    const response = await fetch(url, { headers });
    return { status: response.status, headers: response.headers, body: await json(response) };
  };
  return { ...at, receipt };
}

describe("GET /v1/requests/{request_id}", { concurrency: 4 }, () => {
  it("has what was settled: times, attempts, tokens, prices, cost; no provider, no host", async (t) => {
    const { dir, ask, receipt, provider } = await site(t);
    await ask({ model: "bad" }, { "x-request-id": "failing" });
    const [failed] = (await receipt("failing")).body.data;
    const { status: failure, error_code, model, cost, prices } = failed;
    assert.deepEqual([failure, error_code, cost], ["failed", "upstream_error", "0"]);
    assert.deepEqual([model, prices], [null, null]);
    await ask({ model: "team" }, { "x-request-id": 'my "first" thought/1?' });
    const { status: code, headers, body } = await receipt('my "first" thought/1?');
    assert.deepEqual([code, headers.get("cache-control")], [200, "no-store"]);
    const [, settle] = settles(dir) as [Line, Line];
    const [{ started_at, attempts }] = body.data;
    assert.equal(Date.parse(settle["time"]) - settle["duration_ms"], Date.parse(started_at));
    assert.deepEqual(attempts.map(({ model, outcome }: Line) => [model, outcome]).slice(-2), [
      ["bad", "upstream_error"],
      ["m", "ok"],
    ]);
    const expected = {
      ...{ request_id: 'my "first" thought/1?', spend_id: settle["spend_id"] },
      ...{ model_requested: "team", model: "m", status: "completed" },
      ...{ error_code: null, finish_reason: "stop", started_at, attempts },
      ...{ first_token_ms: settle["first_token_ms"], ended_at: settle["time"] },
      usage: {
        ...{ prompt_tokens: 100, completion_tokens: 80, total_tokens: 180, reasoning_tokens: 5 },
        ...{ prompt_cache_hit_tokens: 20, prompt_cache_miss_tokens: 80, cache_write_tokens: 30 },
      },
      usage_source: "provider",
      prices: Object.fromEntries(Object.entries(PRICE).map(([name, price]) => [name, `${price}`])),
      // 20 x 0.1 + 50 x 1 + 30 x 1.25 + 80 x 2, in millionths
      ...{ cost: "0.0002495", currency: "USD", seal: null },
    };
    assert.deepEqual(body, { object: "list", data: [expected] });
    const text = JSON.stringify(body);
    for (const word of ["lab", new URL(provider.url).host]) assert.ok(!text.includes(word), word);
  });

  it("has every request of the account with the id, and none of another account", async (t) => {
    const { dir, ask, receipt, gw } = await site(t);
    for (let n = 0; n < 3; n += 1) await ask({}, { "x-request-id": "same" });
    await ask({}, { "x-request-id": "same", authorization: `Bearer ${OTHER}` });
    await ask({}, { "x-request-id": "theirs", authorization: `Bearer ${OTHER}` });
    const idsOf = (lines: readonly Line[]) => lines.map(({ spend_id }) => spend_id).sort();
    const same = settles(dir).filter((line) => line["gateway_request_id"] === "same");
    for (const [account, key, count] of [
      ["acme", KEY, 3],
      ["beta", OTHER, 1],
    ] as const) {
      const own = same.filter((line) => line["account"] === account);
      assert.equal(own.length, count);
      assert.deepEqual(idsOf((await receipt("same", key)).body.data), idsOf(own));
    }
    for (const id of ["theirs", "nobody's"]) {
      const { status: code, body } = await receipt(id);
      assert.deepEqual([code, body.error.code], [404, "unknown_url"], id);
    }
    const keyless = await fetch(`${gw.url}/v1/requests/same`);
    assert.equal(keyless.status, 401);
    await keyless.body?.cancel();
  });

  it("is 503 with Retry-After while the books cannot be read", async (t) => {
    const { dir, ask, receipt } = await site(t);
    await ask({}, { "x-request-id": "mine" });
    assert.equal((await receipt("mine")).status, 200);
    rmSync(usageFile(dir));
    const { status: code, headers, body } = await receipt("mine");
    assert.deepEqual([code, body.error.code], [503, "server_overloaded"]);
    assert.equal(headers.get("retry-after"), "5");
  });
});

it("lookups are limited to a hundred at once and 600 a minute per account", async (t) => {
  const { dir, receipt } = await site(t);
  const together = (count: number) => Array.from({ length: count }, () => receipt("nobody's"));
  const codesOf = async (lookups: ReturnType<typeof together>) =>
    (await Promise.all(lookups)).map(({ status: code }) => code).sort();
  const lookups = await withLock({ dir: join(dir, "spend"), name: "books" }, async () => {
    // None can copy what was settled, so only the rejected one ends.
    const begun = together(101);
    const first = await within(Promise.race(begun), "the one that is refused");
    assert.deepEqual([first.status, first.body.error.code], [503, "server_overloaded"]);
    assert.equal(first.headers.get("retry-after"), "1");
    return { begun };
  });
  const found = Array<number>(100).fill(404);
  assert.deepEqual(await codesOf(lookups.begun), [...found, 503]);
  for (let round = 1; round < 6; round += 1) assert.deepEqual(await codesOf(together(100)), found);
  const { status: code, headers, body } = await receipt("nobody's");
  assert.deepEqual([code, body.error.code], [429, "rate_limit_exceeded"]);
  const seconds = Number(headers.get("retry-after"));
  assert.ok(seconds >= 1 && seconds <= 60, `${seconds}`);
  assert.equal((await receipt("nobody's", OTHER)).status, 404);
});

it("receipts include what each attempt has of its own, notes, and the line of a closed day", async () => {
  const same = { gateway_request_id: "same" };
  const usage = { prompt_tokens: 3, cache_write_tokens: 1 };
  const prices = { input_cache_miss: 1.1, input_cache_write: 2, output: 3 };
  const about = { provider: "lab", duration_ms: 3 };
  const attempts = [
    { model: "a", ...about, outcome: "failed", share: { ...usage, prices, cost: "0.1" } },
    { model: "b", ...about, outcome: "completed" },
  ];
  const notes = ["left out: web_search"];
  const { clock, share } = siteOf([openLine(1, same), settleLine(1, { ...same, attempts, notes })]);
  const find = () => findReceipts(share(), { requestId: "same", account: "acme", limit: 100 });
  const [receipt] = JSON.parse(JSON.stringify(await find()));
  const read = { input_cache_hit: null, input_cache_miss: "1.1" };
  const shown = { ...read, input_cache_write: "2", output: "3" };
  assert.deepEqual([receipt.notes, receipt.seal], [notes, null]);
  assert.deepEqual(receipt.attempts, [
    { model: "a", outcome: "failed", duration_ms: 3, usage, prices: shown, cost: "0.1" },
    { model: "b", outcome: "ok", duration_ms: 3 },
  ]);
  clock.advance(2 * 3_600_000);
  assert.deepEqual((await find())[0]!.seal, { day: "2026-01-31", number: 1 });
});
