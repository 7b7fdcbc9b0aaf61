// The parts of the index by request ids, each against what a plain search finds: sorted runs that
// are searched with small reads, merged, cut off or full of equal keys, and lines that are read in
// pieces.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  ENTRY_BYTES,
  KEY_BYTES,
  offsetIn,
  type EntryRange,
} from "../../../src/extensions/books/request-index/entries.ts";
import {
  createLineSearch,
  lineAt,
  wholeLines,
} from "../../../src/extensions/books/request-index/month-lines.ts";
import { withDescriptor } from "../../../src/extensions/books/request-index/read-file.ts";
import {
  HEADER_BYTES,
  mergeRuns,
  writeRun,
  type Run,
} from "../../../src/extensions/books/request-index/runs.ts";
import { offsetsIn } from "../../../src/extensions/books/request-index/search.ts";
import { createTurns } from "../../../src/extensions/books/request-index/turns.ts";
import { folder } from "../../support/folder.ts";
import { createRandom } from "../../support/random.ts";

const seed = (Date.now() ^ process.pid) | 0;
const { between, pick, random } = createRandom(seed);

/** A key whose first bytes are spread evenly, or all the same. */
function keyOf(isEven: boolean): Buffer {
  const key = Buffer.alloc(KEY_BYTES, 7);
  for (let at = isEven ? 0 : KEY_BYTES - 3; at < KEY_BYTES; at += 1) key[at] = between(0, 255);
  return key;
}

function entryOf(key: Buffer, offset: number): Buffer {
  const entry = Buffer.alloc(ENTRY_BYTES);
  key.copy(entry);
  entry.writeUIntBE(offset, KEY_BYTES, ENTRY_BYTES - KEY_BYTES);
  return entry;
}

/** Sorted entries; some keys have hundreds. */
function entriesOf(count: number, isEven: boolean): Buffer[] {
  const keys = Array.from({ length: count }, () => keyOf(isEven));
  const often = keys.slice(0, 3);
  return keys
    .map((key, at) => entryOf(random() < 0.05 && often.length > 0 ? pick(often) : key, at))
    .sort(Buffer.compare);
}

const run = (dir: string, entries: readonly Buffer[], from: number, to: number): Promise<Run> =>
  writeRun({ dir, month: "2026-01", version: 0, from, to, tail: Buffer.alloc(8) }, (file) =>
    file.appendFile(Buffer.concat(entries)),
  );

const expected = (entries: readonly Buffer[], { first, last }: EntryRange): number[] =>
  entries
    .filter((entry) => {
      const key = entry.subarray(0, KEY_BYTES);
      return key.compare(first) >= 0 && key.compare(last) <= 0;
    })
    .map((entry) => offsetIn(entry, 0));

describe(`the search in a run (seed ${seed})`, () => {
  for (const isEven of [true, false]) {
    for (const count of [0, 1, 127, 128, 129, 5_000, 40_000]) {
      const spread = isEven ? "spread evenly" : "of one beginning";
      it(`finds the same as a plain search among ${count} keys ${spread}`, async () => {
        const entries = entriesOf(count, isEven);
        const written = await run(folder(), entries, 0, 1);
        const known = Array.from({ length: Math.min(count, 60) }, () => pick(entries));
        const keys = [
          ...[...known, ...entries.slice(0, 2), ...entries.slice(-2)].map((entry) =>
            entry.subarray(0, KEY_BYTES),
          ),
          ...Array.from({ length: 20 }, () => keyOf(isEven)),
          Buffer.alloc(KEY_BYTES, 0),
          Buffer.alloc(KEY_BYTES, 0xff),
        ];
        for (const first of keys) {
          const open = Buffer.concat([first.subarray(0, 8), Buffer.alloc(4, 0xff)]);
          for (const last of [first, open]) {
            const found = await offsetsIn(written, { first, last });
            assert.deepEqual(found, expected(entries, { first, last }), first.toString("hex"));
          }
        }
      });
    }
  }

  it("comes to an end in a run that was cut off", async () => {
    const entries = entriesOf(5_000, true);
    const written = await run(folder(), entries, 0, 1);
    truncateSync(written.path, HEADER_BYTES + 100 * ENTRY_BYTES + 5);
    const first = entries.at(-1)!.subarray(0, KEY_BYTES);
    assert.deepEqual(await offsetsIn(written, { first, last: first }), []);
    truncateSync(written.path, 3);
    assert.deepEqual(await offsetsIn(written, { first, last: first }), []);
  });

  it("merged runs have the entries of both in their order", async () => {
    for (const [left, right] of [
      [0, 10],
      [10_000, 1],
      [9_000, 4_096],
      [4_096, 4_096],
    ] as const) {
      const dir = folder();
      const [a, b] = [entriesOf(left, true), entriesOf(right, false)];
      const merged = await mergeRuns(dir, await run(dir, a, 0, 5), await run(dir, b, 5, 9));
      const bytes = readFileSync(merged.path).subarray(HEADER_BYTES);
      assert.ok(bytes.equals(Buffer.concat([...a, ...b].sort(Buffer.compare))), `${left} ${right}`);
      assert.deepEqual(readdirSync(dir), ["2026-01.0.0-9.ids"]);
    }
  });
});

const line = (id: string, account: string, filler: number): string =>
  JSON.stringify({ gateway_request_id: id, account, more: "é".repeat(filler) });

describe("lines of a month's file", () => {
  it("are found in pieces, whatever their lengths, and only whole ones", async () => {
    const fillers = [0, 10, 70_000, 3, 200_000, 1, 65_500, 0];
    const lines = fillers.map((filler, at) => line(`id ${at % 3}`, `a${at % 2}`, filler));
    const path = join(folder(), "lines");
    const text = `${lines.join("\n")}\n`;
    const torn = line("id 0", "a0", 5);
    writeFileSync(path, text + torn);
    const search = createLineSearch();
    const size = Buffer.byteLength(text);
    const find = (requestId: string, account?: string, to = size + Buffer.byteLength(torn)) =>
      withDescriptor(path, (fd) => search({ fd, from: 0, to }, { requestId, account, limit: 9 }));
    const having = (part: string) => lines.filter((each) => each.includes(part)).reverse();
    assert.deepEqual(await find("id 0"), having('"id 0"'));
    assert.deepEqual(await find("id 2", "a1"), having('"id 2","account":"a1"'));
    assert.deepEqual(await find("id 1", undefined, size - 1), having('"id 1"').slice(1));
    assert.deepEqual(await find("id"), []);
    const all = await Promise.all(Array.from({ length: 9 }, () => find("id 0")));
    for (const found of all) assert.deepEqual(found, having('"id 0"'));
  });

  it("are read from where they begin", async () => {
    const lines = [10, 5_000, 0].map((filler, at) => line(`id ${at}`, "a", filler));
    const path = join(folder(), "lines");
    writeFileSync(path, lines.join("\n"));
    await withDescriptor(path, async (fd) => {
      const first = Buffer.byteLength(lines[0]!) + 1;
      const second = first + Buffer.byteLength(lines[1]!) + 1;
      assert.equal(await lineAt(fd, 0), lines[0]);
      assert.equal(await lineAt(fd, first), lines[1]);
      assert.equal(await lineAt(fd, second), lines[2]);
      const whole = await wholeLines({ fd, from: 0, to: second + 5 });
      assert.equal(whole.toString(), `${lines[0]}\n${lines[1]}\n`);
      assert.equal((await wholeLines({ fd, from: second, to: second + 5 })).length, 0);
    });
  });
});

describe("turns", () => {
  it("let so many works run at once, in their order, whatever fails", async () => {
    const inTurn = createTurns(2);
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    const works = [0, 1, 2, 3].map((n) =>
      inTurn(async () => {
        begun.push(n);
        await new Promise<void>((resolve) => ends.push(resolve));
        if (n === 0) throw new Error("failed");
        return n;
      }),
    );
    assert.deepEqual(begun, [0, 1]);
    ends[0]!();
    await assert.rejects(works[0]!, /failed/);
    assert.deepEqual(begun, [0, 1, 2]);
    ends[2]!();
    assert.equal(await works[2], 2);
    ends[1]!();
    assert.equal(await works[1], 1);
    ends[3]!();
    assert.equal(await works[3], 3);
    assert.deepEqual(begun, [0, 1, 2, 3]);
  });
});
