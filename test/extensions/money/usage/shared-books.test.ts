// Books shared by parts of one process, and the passes that they request.

import assert from "node:assert/strict";
import { appendFileSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { BooksFault, copySettled } from "../../../../src/extensions/money/usage/index.ts";
import { withLock } from "../../../../src/extensions/scale/data-files/index.ts";
import { openLine, segmentPath, settleLine, spendId, textOf } from "../../../support/books.ts";
import { waitFor } from "../../../support/wait.ts";
import { siteOf } from "./shared.ts";

function site() {
  const at = siteOf([openLine(1), settleLine(1)]);
  const settle = (n: number) =>
    appendFileSync(segmentPath(at.dir), textOf([openLine(n), settleLine(n)]));
  return { ...at, settle };
}

describe("shared books", () => {
  it("are the same for all parts, and closed with the last one", async () => {
    const { share } = site();
    const [one, other] = [share(), share()];
    assert.equal(one.files, other.files);
    await one.close();
    assert.equal(share().files, other.files);
  });

  it("let calls before a pass begins share it; a later call waits for the next one", async () => {
    const { share, settle } = site();
    const books = share();
    let passes = 0;
    const { inspect } = books.files.store;
    books.files.store.inspect = () => {
      passes += 1;
      if (passes === 1) {
        settle(2);
        queued.push(books.copyNow(), books.copyNow());
      }
      return inspect();
    };
    const queued: Promise<unknown>[] = [];
    const results = await Promise.all([books.copyNow(), books.copyNow()]);
    assert.equal(results[0], results[1]);
    await Promise.all(queued);
    assert.deepEqual([queued.length, passes], [2, 2]);
    const found = await books.files.store.find({ requestId: "request 2", limit: 1 });
    assert.equal(found[0]?.usage_id, spendId(2));
  });

  it("report a failed pass to those who share it, and not to later calls", async () => {
    const { dir, events, share, settle } = site();
    const books = share();
    await books.copyNow();
    const day = join(dir, "usage", "2026-01-31.jsonl");
    const { bytes } = (await books.files.store.cursor())["2026-01-31.0001.jsonl"]!;
    truncateSync(segmentPath(dir), bytes - 1);
    for (let times = 0; times < 2; times += 1) await assert.rejects(books.copyNow(), BooksFault);
    appendFileSync(segmentPath(dir), "\n");
    settle(2);
    assert.equal((await books.copyNow()).copied, 1, day);
    await books.copyNow();
    assert.deepEqual(events, ["usage_sync_failed", "usage_sync_recovered"]);
  });

  it("a pass whose records cannot be written leaves them to the next", async () => {
    const { share, settle } = site();
    const books = share();
    const { store } = books.files;
    const { add } = store;
    await books.copyNow();
    settle(2);
    store.add = () => Promise.reject(new Error("ENOSPC"));
    await assert.rejects(books.copyNow(), /ENOSPC/);
    store.add = add;
    assert.equal((await books.copyNow()).copied, 1);
  });

  it("wait for another process that works on the books, for a limited time", async () => {
    const { dir, clock, events, share, other } = site();
    const books = share();
    const lock = { dir: join(dir, "spend"), name: "books" } as const;
    await withLock(lock, async () => {
      const waiting = books.copyNow();
      await waitFor(() => clock.pending() > 0, "the pass to wait");
      clock.advance(200);
      await waitFor(() => clock.pending() > 0, "the pass to wait again");
      clock.advance(5_000);
      await assert.rejects(waiting, /another process is at work on the books/);
      const command = copySettled(other().files);
      await waitFor(() => clock.pending() > 0, "the command to wait");
      clock.advance(60_000);
      await assert.rejects(command, /another process is at work on the books/);
    });
    assert.equal((await books.copyNow()).copied, 1);
    assert.deepEqual(events, [], "the other process copies");
  });
});
