// All that is known of a request id, from usage records and from the spend log.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { allExtensions, checkConfig } from "../../support/config.ts";
import { traceRequest } from "../../../src/extensions/billing/trace.ts";
import { copySettled, openBooks } from "../../../src/extensions/books/index.ts";
import { createReceipts } from "../../../src/extensions/receipts/index.ts";
import { handMade, openLine, settleLine, spendId, textOf } from "../../support/books.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";

const NAME = "2026-01-31.0001.jsonl";
const WAITING = { aborted: false };

async function booksOf(lines: readonly object[]) {
  const dir = folder();
  handMade(dir, NAME, textOf(lines), "let go");
  const config = checkConfig(demo({ data_dir: dir }), {});
  const clock = createFakeClock(Date.parse("2026-02-01"));
  const books = openBooks(config, { clock, diagnose: () => undefined, extensions: allExtensions });
  await copySettled(books);
  return { dir, sources: { books, receipts: createReceipts(books) } };
}
const ids = (records: readonly { usage_id?: string; spend_id?: string }[]) =>
  records.map((record) => record.usage_id ?? record.spend_id);

describe("traceRequest", () => {
  it("finds records and the last line of each request with the id, and no other", async () => {
    const same = { gateway_request_id: 'the "same"' };
    const { sources } = await booksOf([
      openLine(1, same),
      openLine(2),
      settleLine(1, same),
      settleLine(2),
      openLine(3, same),
    ]);
    const options = { requestId: 'the "same"', cancel: WAITING };
    const trace = await traceRequest(sources, options);
    assert.deepEqual(ids(trace.records), [spendId(1)]);
    assert.deepEqual(ids(trace.receipts), [spendId(1)]);
    assert.deepEqual(
      trace.spend.map(({ spend_id, type }) => [spend_id, type]),
      [
        [spendId(1), "settle"],
        [spendId(3), "open"],
      ],
    );
  });

  it("with a day looks at the segments of that day and the one before only", async () => {
    const { sources } = await booksOf([openLine(1), settleLine(1)]);
    const trace = (day: string) =>
      traceRequest(sources, { requestId: "request 1", day, cancel: WAITING });
    for (const [day, found] of [
      ["2026-01-31", 1],
      ["2026-02-01", 1],
      ["2026-02-02", 0],
      ["2026-01-30", 0],
    ] as const) {
      const { records, spend } = await trace(day);
      assert.deepEqual([records.length, spend.length], [0, found], day);
    }
  });

  it("finds what was not copied yet, whatever the day", async () => {
    const { dir, sources } = await booksOf([openLine(1), settleLine(1)]);
    handMade(dir, "2026-01-01.0001.jsonl", textOf([openLine(7), settleLine(7)]), "let go");
    const day = "2026-03-01";
    const trace = await traceRequest(sources, { requestId: "request 7", day, cancel: WAITING });
    assert.deepEqual(ids(trace.spend), [spendId(7)]);
    assert.deepEqual(ids(trace.receipts), [spendId(7)]);
  });

  it("stops when nobody waits any more", async () => {
    const { sources } = await booksOf([openLine(1), settleLine(1)]);
    const cancel = { aborted: true, reason: new Error("gone") };
    await assert.rejects(traceRequest(sources, { requestId: "request 1", cancel }), {
      message: "gone",
    });
  });
});
