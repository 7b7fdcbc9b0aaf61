// The files of months as a whole: one that is renamed, forgotten or cut by usage/cursor.json, which
// nobody seals, is found by what heads have of it.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { keptBooks, MONTH, type Copy, type KeptBooks } from "./tampered-books.ts";

let books: KeptBooks;
before(async () => {
  books = await keptBooks();
});

/** Lets the usage sync seem to have copied nothing. */
function forgetMarks(cursor: any): void {
  for (const mark of Object.values<any>(cursor.segments).flat()) mark.position = 0;
}

describe("a month that is put in the place of another", () => {
  it("is found, with each record", async () => {
    const findings = await books.findings((copy) => {
      copy.rename(MONTH, "usage/2026-02.jsonl");
      copy.cursor((cursor) => {
        cursor.months = { "2026-02": cursor.months["2026-03"] };
      });
    });
    const text = findings.join("\n");
    assert.match(text, /^usage\/2026-03\.jsonl: usage\/cursor\.json does not know it, and heads/m);
    assert.equal(
      text.match(/^usage\/2026-02\.jsonl, line \d+: sp_\w+ ended on 2026-03-/gm)?.length,
      12,
    );
  });
});

describe("a month that is not there any more", () => {
  /** All records of closed days, which the head of the first, of the last day or both have. */
  const isAllClosed = (findings: readonly string[]): boolean =>
    findings.filter((text) => /is missing: the head of 2026-03-02 has it/.test(text)).length === 4;

  const removed = (copy: Copy): void => {
    copy.remove(MONTH);
    copy.cursor((cursor) => {
      delete cursor.months["2026-03"];
      forgetMarks(cursor);
    });
  };

  it("is found, although its records look as if they had not been copied", async () => {
    const findings = await books.findings(removed);
    assert.match(findings[0]!, /^usage\/2026-03\.jsonl: usage\/cursor\.json does not know it/);
    assert.ok(isAllClosed(findings), findings.join("\n"));
  });

  it("is found as well if it is said to have been written anew", async () => {
    const findings = await books.findings((copy) => {
      removed(copy);
      copy.cursor((cursor) => {
        cursor.rewritten = { "2026-03": 1 };
      });
    });
    assert.match(findings[0]!, /^usage\/2026-03\.jsonl: usage\/cursor\.json does not know it/);
  });

  it("is found if it is empty and said to have been written anew", async () => {
    const findings = await books.findings((copy) => {
      copy.write(MONTH, "");
      copy.count(1);
      copy.cursor(forgetMarks);
    });
    assert.ok(isAllClosed(findings), findings.join("\n"));
  });
});

describe("a month that is cut", () => {
  it("is found by the bytes that heads have, although the rest seems not to be copied", async () => {
    const findings = await books.findings((copy) => {
      copy.lines(MONTH, (line, number) => (number > 4 ? undefined : line));
      copy.count();
      copy.cursor(forgetMarks);
    });
    assert.match(findings[0]!, /cursor\.json counts \d+ bytes of it, and heads have \d+: records/);
  });

  it("after the last head, before its records were copied: they are on the way", async () => {
    const { ok, awaited } = await books.after((copy) => {
      copy.lines(MONTH, (line, number) => (number > 8 ? undefined : line));
      copy.count();
      copy.cursor((cursor) => {
        delete cursor.segments["2026-03-04.0001.jsonl"];
      });
    });
    assert.deepEqual([ok, awaited], [true, 4]);
  });
});
