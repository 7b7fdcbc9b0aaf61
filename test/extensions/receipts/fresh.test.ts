// What is read of a request id that was used for many requests.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openBooks } from "../../../src/extensions/books/index.ts";
import { createFreshRequests } from "../../../src/extensions/receipts/fresh.ts";
import { handMade, settleLine, spendId, textOf } from "../../support/books.ts";
import { allExtensions, checkConfig } from "../../support/config.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";

const REQUESTS = 3_000;

/** Requests with one id: the first two of `beta`, the others of `acme`. */
function freshRequests() {
  const dir = folder();
  const lines = Array.from({ length: REQUESTS }, (_, n) =>
    settleLine(n, { gateway_request_id: "same", account: n < 2 ? "beta" : "acme" }),
  );
  handMade(dir, "2026-01-31.0001.jsonl", textOf(lines), "let go");
  const books = openBooks(checkConfig(demo({ data_dir: dir }), {}), {
    clock: createFakeClock(),
    diagnose: () => undefined,
    extensions: allExtensions,
  });
  const fresh = createFreshRequests(books);
  return async (account: string | undefined, limit: number, requestId = "same") => {
    const found = await fresh.find({ requestId, limit, ...(account !== undefined && { account }) });
    return found.map(({ spend_id }) => spend_id);
  };
}

describe("an id of many requests", () => {
  const latest = [REQUESTS - 3, REQUESTS - 2, REQUESTS - 1].map(spendId);

  it("only the lines of the latest requests are read, as many as are wanted", async () => {
    const find = freshRequests();
    assert.deepEqual(await find("acme", 3), latest);
    assert.equal((await find("acme", REQUESTS)).length, REQUESTS - 2);
  });

  it("an account finds its own, however many others have used the id since", async () => {
    const find = freshRequests();
    assert.deepEqual(await find("beta", 3), [0, 1].map(spendId));
    assert.deepEqual(await find("gamma", 3), []);
  });

  it("the operator finds the latest of all accounts, of exactly this id", async () => {
    const find = freshRequests();
    assert.deepEqual(await find(undefined, 3), latest);
    assert.equal((await find(undefined, REQUESTS)).length, REQUESTS);
    assert.deepEqual(await find(undefined, 3, "me"), []);
  });

  it("a request of several lines has all of them, and counts once", async () => {
    const dir = folder();
    const line = (n: number, status: string) =>
      settleLine(n, { gateway_request_id: "same", status });
    const lines = [line(1, "completed"), line(2, "completed"), line(2, "interrupted")];
    handMade(dir, "2026-01-31.0001.jsonl", textOf(lines), "let go");
    const books = openBooks(checkConfig(demo({ data_dir: dir }), {}), {
      clock: createFakeClock(),
      diagnose: () => undefined,
      extensions: allExtensions,
    });
    const found = await createFreshRequests(books).find({ requestId: "same", limit: 2 });
    assert.deepEqual(
      found.map(({ spend_id, status }) => [spend_id, status]),
      [
        [spendId(1), "completed"],
        [spendId(2), "completed"],
        [spendId(2), "interrupted"],
      ],
    );
  });
});
