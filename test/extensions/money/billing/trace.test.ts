// All that is known of a request id, from usage records and from the spend log.

import assert from "node:assert/strict";
import { appendFileSync, rmSync } from "node:fs";
import { describe, it } from "node:test";
import { acquireSocketLock } from "../../../../src/extensions/scale/data-files/index.ts";
import { traceRequest } from "../../../../src/extensions/money/billing/trace.ts";
import {
  handMade,
  openLine,
  segmentPath,
  settleLine,
  textOf,
  type Line,
} from "../../../support/books.ts";
import { siteOf } from "../usage/shared.ts";

const NAME = "2026-01-31.0001.jsonl";
const WAITING = { aborted: false, reason: undefined };

function booksOf(lines: readonly Line[]) {
  const { dir, share, other } = siteOf(lines);
  return { dir, books: share(), other: other() };
}
describe("traceRequest", () => {
  it("has what is open, of a live process, until any process has copied its end", async (t) => {
    const { dir, books, other } = booksOf([openLine(1), settleLine(1)]);
    const second = "2026-01-31.0002.jsonl";
    handMade(dir, second, textOf([openLine(7), openLine(8)]), "let go");
    t.after((await acquireSocketLock(segmentPath(dir, "2026-01-31.0002.sock")))!);
    const trace = await traceRequest(books, "request 7", WAITING);
    assert.deepEqual([trace.records, trace.receipts, trace.spend], [[], [], [openLine(7)]]);
    assert.deepEqual((await traceRequest(books, "request", WAITING)).spend, [], "a part of the id");
    // Another process copies the end of both.
    appendFileSync(segmentPath(dir, second), textOf([settleLine(7), settleLine(8)]));
    await other.copyNow();
    assert.deepEqual((await traceRequest(books, "request 7", WAITING)).spend, [settleLine(7)]);
  });

  it("has the records of a segment that is deleted, without its lines", async () => {
    const { dir, books } = booksOf([openLine(1), settleLine(1)]);
    await books.copyNow();
    await books.files.store.setCursor({});
    rmSync(segmentPath(dir, NAME));
    const trace = await traceRequest(books, "request 1", WAITING);
    assert.deepEqual([trace.records.length, trace.receipts.length, trace.spend], [1, 1, []]);
    assert.ok(trace.records.every((record) => !record.details && !record.log));
  });

  it("stops when nobody waits any more", async () => {
    const { books } = booksOf([openLine(1), settleLine(1)]);
    const cancel = { aborted: true, reason: new Error("gone") };
    const tracing = traceRequest(books, "request 1", cancel);
    await assert.rejects(tracing, { message: "gone" });
  });
});
