// GET /v1/requests/{request_id}: what an account is told of its requests, from the last byte of a
// reply on, and after the requests are in the usage records.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { copySettled, openBooks, type Sealing } from "../../../src/extensions/books/index.ts";
import { createReceipts } from "../../../src/extensions/receipts/index.ts";
import type { UsageRecord } from "../../../src/extensions/usage-records/index.ts";
import {
  configFile,
  handMade,
  openLine,
  priced,
  settleLine,
  settles,
  spendId,
  textOf,
  usageCount,
  type Line,
} from "../../support/books.ts";
import { allExtensions, checkConfig } from "../../support/config.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { folder } from "../../support/folder.ts";
import { demo, json, KEY, merge, user, type RunningGateway } from "../../support/gateway.ts";
import {
  chunk,
  completion,
  status,
  stream,
  usageChunk,
  type Behaviour,
} from "../../support/provider.ts";
import { runHere } from "../../support/run-here.ts";
import { waitFor, within } from "../../support/wait.ts";

const PRICE = { input_cache_hit: 0.1, input_cache_miss: 1, input_cache_write: 1.25, output: 2 };
const STATED = {
  prompt_tokens: 100,
  completion_tokens: 80,
  prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 30 },
  completion_tokens_details: { reasoning_tokens: 5 },
};
const using: Behaviour = (asked) =>
  asked.body["stream"]
    ? stream([chunk({ content: "Fine." }), chunk({}, "stop"), usageChunk(STATED)])(asked)
    : status(200, completion({ content: "Fine." }, "stop", { usage: STATED }))(asked);

/** Nothing is copied by itself. */
const NO_SYNC = { usage: { sync_ms: 86_400_000 } };
const OTHER = "sk-other";

async function site(t: TestContext, over: object = {}) {
  const at = await priced(
    t,
    { m: using, bad: status(500) },
    merge(
      {
        models: { m: { price: PRICE } },
        aliases: { team: { models: ["bad", "m"] } },
        keys: [
          { account: "acme", key: KEY },
          { account: "beta", key: OTHER },
        ],
        ...NO_SYNC,
      },
      over,
    ) as object,
  );
  return { ...at, receipt: (id: string, key?: string) => receiptsOf(at.gw, id, key) };
}

async function receiptsOf(gw: RunningGateway, id: string, key = KEY) {
  const response = await fetch(`${gw.url}/v1/requests/${encodeURIComponent(id)}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return { status: response.status, headers: response.headers, body: await json(response) };
}

describe("GET /v1/requests/{request_id}", { concurrency: 4 }, () => {
  it("has what was settled: times, attempts, tokens, prices, cost; no provider, no host", async (t) => {
    const { dir, ask, receipt, provider } = await site(t);
    await ask({ model: "team" }, { "x-request-id": 'my "first" thought/1?' });
    const { status: code, headers, body } = await receipt('my "first" thought/1?');
    assert.deepEqual([code, headers.get("cache-control")], [200, "no-store"]);
    const [settle] = settles(dir) as [Line];
    const [{ started_at }] = body.data;
    assert.equal(Date.parse(settle["time"]) - settle["duration_ms"], Date.parse(started_at));
    assert.deepEqual(body, {
      object: "list",
      data: [
        {
          request_id: 'my "first" thought/1?',
          spend_id: settle["spend_id"],
          model_requested: "team",
          model: "m",
          status: "completed",
          error_code: null,
          finish_reason: "stop",
          started_at,
          first_token_ms: settle["first_token_ms"],
          ended_at: settle["time"],
          attempts: settle["attempts"].map(({ model, outcome, duration_ms }: Line) => ({
            model,
            outcome: outcome === "completed" ? "ok" : outcome,
            duration_ms,
          })),
          usage: {
            prompt_tokens: 100,
            completion_tokens: 80,
            total_tokens: 180,
            prompt_cache_hit_tokens: 20,
            prompt_cache_miss_tokens: 80,
            cache_write_tokens: 30,
            reasoning_tokens: 5,
          },
          usage_source: "provider",
          prices: {
            input_cache_hit: "0.1",
            input_cache_miss: "1",
            input_cache_write: "1.25",
            output: "2",
          },
          // 20 x 0.1 + 50 x 1 + 30 x 1.25 + 80 x 2, in millionths
          cost: "0.0002495",
          currency: "USD",
          seal: null,
        },
      ],
    });
    assert.deepEqual(
      [...new Set(body.data[0]!.attempts.map(({ outcome }: Line) => outcome))],
      ["upstream_error", "ok"],
    );
    const text = JSON.stringify(body);
    for (const word of ["lab", new URL(provider.url).host]) assert.ok(!text.includes(word), word);
  });

  it("is there before the last byte of the reply, streamed too, and stays when it is copied", async (t) => {
    const { dir, gw, receipt } = await site(t, { usage: { sync_ms: 50 } });
    for (let round = 0; round < 20; round += 1) {
      const id = `round ${round}`;
      const response = await gw.chat(
        { model: "m", stream: round % 2 === 0, messages: user("hi") },
        { "x-request-id": id },
      );
      await response.text();
      const { status: code, body } = await receipt(id);
      assert.deepEqual([code, body.data?.length], [200, 1], id);
    }
    await waitFor(() => usageCount(dir) === 20, "the records");
    for (let round = 0; round < 20; round += 1)
      assert.equal((await receipt(`round ${round}`)).body.data.length, 1);
  });

  it("has a failure with its code, without a cost", async (t) => {
    const { ask, receipt } = await site(t);
    await ask({ model: "bad" }, { "x-request-id": "failing" });
    const [failed] = (await receipt("failing")).body.data;
    assert.deepEqual(
      [failed.status, failed.error_code, failed.model, failed.cost, failed.prices],
      ["failed", "upstream_error", null, "0", null],
    );
    assert.deepEqual([failed.usage_source, failed.finish_reason], ["none", null]);
  });

  it("has every request of the account with the id, and nothing of another account's", async (t) => {
    const { dir, ask, receipt, gw } = await site(t);
    for (let n = 0; n < 3; n += 1) await ask({}, { "x-request-id": "same" });
    await ask({}, { "x-request-id": "same", authorization: `Bearer ${OTHER}` });
    await ask({}, { "x-request-id": "theirs", authorization: `Bearer ${OTHER}` });
    const of = async (id: string, key?: string) =>
      ((await receipt(id, key)).body.data ?? []).map(({ spend_id }: Line) => spend_id);
    const settled = (account: string) =>
      settles(dir)
        .filter((line) => line["account"] === account && line["gateway_request_id"] === "same")
        .map(({ spend_id }) => spend_id);
    assert.deepEqual(
      [await of("same"), await of("same", OTHER)],
      [settled("acme"), settled("beta")],
    );
    const [theirs, unknown] = [await receipt("theirs"), await receipt("nobody's")];
    const comparable = ({ status: code, body }: typeof theirs) => {
      const { request_id: _, ...error } = body.error;
      return [code, error];
    };
    assert.deepEqual(comparable(theirs), comparable(unknown), "other accounts' ids are unknown");
    assert.deepEqual([theirs.status, theirs.body.error.code], [404, "unknown_url"]);
    const keyless = await fetch(`${gw.url}/v1/requests/same`);
    assert.equal(keyless.status, 401);
    await keyless.body?.cancel();
  });

  it("keeps the prices that were in force, also after they change", async (t) => {
    const { dir, ask, receipt, gw, config } = await site(t, { usage: { sync_ms: 20 } });
    await ask({}, { "x-request-id": "before" });
    const dearer = merge(config, { models: { m: { price: { output: 7 } } } }) as object;
    gw.gateway.reload(checkConfig(dearer));
    await ask({}, { "x-request-id": "after" });
    await waitFor(() => usageCount(dir) === 2, "the records");
    for (const [id, output] of [
      ["before", "2"],
      ["after", "7"],
    ] as const)
      assert.equal((await receipt(id)).body.data[0].prices.output, output, id);
  });

  it("is what `billing trace` and the console's trace say", async (t) => {
    const { config, ask, receipt, gw } = await site(t, { admin: { port: 0 } });
    await ask({}, { "x-request-id": "traced" });
    const { data } = (await receipt("traced")).body;
    const trace = await json(await fetch(`${gw.gateway.adminAddress()}/trace?request_id=traced`));
    assert.deepEqual(trace.receipts, data);
    await within(gw.gateway.close(0), "the gateway to close");
    const file = configFile({ ...config, keys: [] });
    const printed = await runHere(["billing", "trace", "traced", "--json", "--config", file]);
    assert.deepEqual(JSON.parse(printed.stdout).receipts, data, printed.stderr);
  });
});

describe("the search for receipts", () => {
  const NAME = "2026-01-31.0001.jsonl";
  function booksOf(lines: readonly (Line | string)[]) {
    const dir = folder();
    handMade(dir, NAME, textOf(lines), "let go");
    const config = checkConfig(demo({ data_dir: dir }), {});
    const clock = createFakeClock(Date.parse("2026-02-01"));
    const books = openBooks(config, {
      clock,
      diagnose: () => undefined,
      extensions: allExtensions,
    });
    return { dir, books, clock };
  }
  const same = { gateway_request_id: "same" };
  const query = { requestId: "same", account: "acme", limit: 100 };

  it("finds what another process has settled, copied or not, once", async () => {
    const { dir, books, clock } = booksOf([openLine(1, same), settleLine(1, same)]);
    const receipts = createReceipts(books);
    const ids = async () => (await receipts.find(query)).map(({ spend_id }) => spend_id);
    assert.deepEqual(await ids(), [spendId(1)]);
    const later = textOf([openLine(2, same), settleLine(2, same), openLine(3, same)]);
    handMade(dir, "2026-01-31.0002.jsonl", later, "died");
    assert.deepEqual(await ids(), [spendId(1), spendId(2)], "an open one is no receipt");
    await copySettled(books);
    const all = [spendId(1), spendId(2), spendId(3)];
    assert.deepEqual((await ids()).sort(), all, "which is settled by now, as interrupted");
    clock.advance(60_000);
    assert.deepEqual((await ids()).sort(), all, "also when only the usage records have them");
  });

  it("a request that was taken for dead and has settled itself is what it settled", async () => {
    const interrupted = settleLine(1, { ...same, status: "interrupted", cost: "0" });
    const { books } = booksOf([openLine(1, same), interrupted, settleLine(1, same)]);
    const receipts = createReceipts(books);
    for (const copy of [false, true]) {
      if (copy) await copySettled(books);
      assert.deepEqual(
        (await receipts.find(query)).map(({ status: how }) => how),
        ["completed"],
      );
    }
  });

  it("records of earlier versions have what was recorded, and null for the rest", async () => {
    const { prices: _, ...earlier } = settleLine(1, same);
    const { books } = booksOf([openLine(1, same), earlier]);
    await copySettled(books);
    const [receipt] = await createReceipts(books).find(query);
    assert.deepEqual([receipt!.prices, receipt!.attempts.length], [null, 1]);
  });

  it("passes on what an attempt of several models has of its own", async () => {
    const usage = { prompt_tokens: 3, cache_write_tokens: 1 };
    const prices = { input_cache_miss: 1.1, input_cache_write: 2, output: 3 };
    const attempts = [
      {
        model: "a",
        provider: "lab",
        outcome: "upstream_error",
        duration_ms: 3,
        share: { ...usage, prices, cost: "0.1" },
      },
      { model: "b", provider: "lab", outcome: "completed", duration_ms: 4 },
    ];
    const { books } = booksOf([openLine(1, same), settleLine(1, { ...same, attempts })]);
    const shown = {
      input_cache_hit: null,
      input_cache_miss: "1.1",
      input_cache_write: "2",
      output: "3",
    };
    const expected = [
      { model: "a", outcome: "upstream_error", duration_ms: 3, usage, prices: shown, cost: "0.1" },
      { model: "b", outcome: "ok", duration_ms: 4 },
    ];
    const receipts = createReceipts(books);
    for (const copy of [false, true]) {
      if (copy) await copySettled(books);
      assert.deepEqual((await receipts.find(query))[0]!.attempts, expected);
    }
  });

  it("has what extensions did, where they did anything", async () => {
    const notes = ["left out: web_search"];
    const { books } = booksOf([openLine(1, same), settleLine(1, { ...same, notes })]);
    const receipts = createReceipts(books);
    for (const copy of [false, true]) {
      if (copy) await copySettled(books);
      assert.deepEqual((await receipts.find(query))[0]!.notes, notes);
    }
  });

  it("has the proof that an extension offers", async () => {
    const { books } = booksOf([openLine(1, same), settleLine(1, same)]);
    const asked: unknown[] = [];
    const proofOfRecord = (record: UsageRecord) => {
      asked.push(record.usage_id);
      return { chain: "of hashes" };
    };
    const receipts = createReceipts({ ...books, sealing: { proofOfRecord } as Sealing });
    assert.deepEqual((await receipts.find(query))[0]!.seal, { chain: "of hashes" });
    assert.deepEqual(asked, [spendId(1)]);
  });

  it("has the latest, if an id was used for more requests than fit in an answer", async () => {
    const numbers = Array.from({ length: 300 }, (_, n) => n);
    const at = (n: number) => ({
      ...same,
      time: new Date(Date.parse("2026-01-31T12:00:00Z") + n * 1_000).toISOString(),
    });
    const { books } = booksOf(numbers.flatMap((n) => [openLine(n, at(n)), settleLine(n, at(n))]));
    const receipts = createReceipts(books);
    for (const copy of [false, true]) {
      if (copy) await copySettled(books);
      assert.deepEqual(
        (await receipts.find({ ...query, limit: 3 })).map(({ spend_id }) => spend_id),
        [297, 298, 299].map(spendId),
      );
    }
  });
});
