// The line of a usage record is exactly what a gateway writes. Anything else in it is found, also
// where usage/cursor.json, which nobody seals, says that the file was written anew.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { keptBooks, MONTH, type KeptBooks } from "./tampered-books.ts";

let books: KeptBooks;
before(async () => {
  books = await keptBooks();
});

const withoutBrace = (line: string): string => line.slice(0, -1);

/** What can be written into a line, so that programs read another record than the sealed one. */
const OTHER_LINES: Readonly<Record<string, (line: string) => string>> = {
  "a second cost behind the details": (line) => `${withoutBrace(line)},"cost":"1000"}`,
  "second details": (line) => `${withoutBrace(line)},"details":{}}`,
  "a member that no record has": (line) => `${withoutBrace(line)},"note":"x"}`,
  "a member that no details have": (line) => `${line.slice(0, -2)},"ended_at":"2020-01-01"}}`,
  "details that are no object": (line) => line.replace(/"details":.*/, '"details":[]}'),
  "an attempt of another shape": (line) => line.replace('"attempts":[[', '"attempts":[["x",'),
  "a space": (line) => line.replace('{"usage_id"', '{ "usage_id"'),
  "another spelling of a text": (line) => line.replace('"acme"', '"\\u0061cme"'),
};

describe("a line of a closed day that was written otherwise, in a file that was written anew", () => {
  for (const [name, change] of Object.entries(OTHER_LINES))
    it(`with ${name}: found, with its line`, async () => {
      const findings = await books.findings((copy) => {
        copy.lines(MONTH, (line, number) => (number === 1 ? change(line) : line));
        copy.count(1);
      });
      assert.ok(
        findings.some((text) =>
          /^usage\/2026-03\.jsonl, line 1: sp_.* a gateway writes/.test(text),
        ),
        findings.join("\n"),
      );
    });
});

describe("details that were changed", () => {
  const changeDetails = (line: string): string =>
    line.replace('"finish_reason":"stop"', '"finish_reason":"length"');

  it("are found by the bytes that heads have", async () => {
    const findings = await books.findings((copy) => {
      copy.lines(MONTH, (line, number) => (number === 1 ? changeDetails(line) : line));
      copy.count();
    });
    assert.match(findings.join("\n"), /lines 1 to 3: are not byte for byte/);
  });

  it("are found by the spend log, with the line, if the file was written anew", async () => {
    const { findings } = await books.after((copy) => {
      copy.lines(MONTH, (line, number) => (number === 2 ? changeDetails(line) : line));
      copy.count(1);
    });
    assert.equal(findings.length, 1);
    assert.match(findings[0]!, /^usage\/2026-03\.jsonl, line 2: sp_.* in its details/);
  });

  it("are reported as not proved, if the file was written anew and the segment is gone", async () => {
    const { code, text } = await books.printed((copy) => {
      copy.lines(MONTH, (line, number) => (number === 2 ? changeDetails(line) : line));
      copy.count(1);
      copy.remove("spend/2026-03-02.0001.jsonl");
    });
    assert.equal(code, 0);
    assert.match(text, /written anew since the head of 2026-03-03: the \d+ bytes that heads have/);
    assert.match(text, /; the details of 4 records are not proved\n/);
  });

  it("a file that was written anew as it was has no finding, and says what is not compared", async () => {
    const { ok, months } = await books.after((copy) => copy.count(1));
    assert.equal(ok, true);
    const [month] = months ?? [];
    assert.equal(month?.by_head, 8);
    assert.equal(month?.written_anew?.since, "2026-03-03");
    assert.equal(month?.details_not_proved, undefined);
  });
});
