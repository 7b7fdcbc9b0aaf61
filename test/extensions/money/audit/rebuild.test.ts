// `books rebuild` recomputes the usage records from the spend log and days.jsonl.

import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { openLine, settleLine } from "../../../support/books.ts";
import { createScene, type Scene } from "../../../support/written-books.ts";
import * as sealed from "../../../support/sealed-books.ts";
import { outputOf } from "../../../support/command.ts";

const CLOSED = "usage/2026-01-31.jsonl";
const OPEN = "usage/2026-02-02.jsonl";

let scene: Scene;
before(async () => {
  scene = await sealed.threeDays();
});

/** Corrupts a copy, rebuilds it, and returns what that changed. */
async function rebuilt(spoil: (dir: string) => void) {
  const dir = sealed.copyOf(scene.dir);
  spoil(dir);
  const { code, stdout, stderr } = await sealed.command(dir, ["books", "rebuild", "--json"]);
  assert.notEqual(stdout, "", stderr);
  const { added, changed, removed, unchanged, left, not_rebuilt } = JSON.parse(stdout);
  return { dir, code, counts: [added, changed, removed, unchanged, left], not_rebuilt, stderr };
}

/** Asserts that the files of all days are as before. The order within open days does not matter. */
function assertAsBefore(dir: string): void {
  assert.equal(sealed.textOfFile(dir, CLOSED), sealed.textOfFile(scene.dir, CLOSED));
  assert.equal(
    sealed.textOfFile(dir, "usage/2026-02-01.jsonl"),
    sealed.textOfFile(scene.dir, "usage/2026-02-01.jsonl"),
  );
  const sorted = (from: string) => sealed.textOfFile(from, OPEN).split("\n").sort();
  assert.deepEqual(sorted(dir), sorted(scene.dir));
}

type Lines = readonly string[];
const lines =
  (file: string, change: (lines: Lines) => Lines) =>
  (dir: string): void =>
    sealed.edit(dir, file, (before) => [...change(before)]);

const SPOILS: readonly (readonly [string, (dir: string) => void, number[]])[] = [
  ["nothing is wrong", () => undefined, [0, 0, 0, 34, 0]],
  ["a closed day is gone", (dir) => rmSync(join(dir, CLOSED)), [13, 0, 0, 21, 0]],
  ["an open day is gone", (dir) => rmSync(join(dir, OPEN)), [13, 0, 0, 21, 0]],
  [
    "all records are gone",
    (dir) => rmSync(join(dir, "usage"), { recursive: true }),
    [34, 0, 0, 0, 0],
  ],
  [
    "a record was changed",
    lines(CLOSED, ([one, ...rest]) => [one!.replace('"cost":"0', '"cost":"9'), ...rest]),
    [0, 1, 0, 33, 0],
  ],
  ["records were removed", lines(CLOSED, (all) => all.slice(2)), [2, 0, 0, 32, 0]],
  [
    "records were inserted",
    lines(CLOSED, (all) => all.flatMap((line) => [line.replaceAll("sp_0", "sp_f"), line])),
    [0, 0, 13, 34, 0],
  ],
  ["a line cannot be read", lines(CLOSED, (all) => ["nonsense", ...all]), [0, 0, 1, 34, 0]],
  ["records changed places", lines(CLOSED, (all) => all.toReversed()), [0, 0, 0, 34, 0]],
  [
    "requests were settled since",
    (dir) => {
      const cursor = JSON.parse(sealed.textOfFile(dir, "usage/cursor.json"));
      delete cursor.segments[sealed.E];
      writeFileSync(join(dir, "usage/cursor.json"), JSON.stringify({ ...cursor, days: {} }));
    },
    [13, 0, 0, 21, 0],
  ],
  ["a file was cut", (dir) => truncateSync(join(dir, OPEN), 3_000), [10, 0, 0, 24, 0]],
  [
    "the cursor cannot be read",
    (dir) => writeFileSync(join(dir, "usage/cursor.json"), "{"),
    [0, 0, 0, 34, 0],
  ],
];

describe("books rebuild", { concurrency: 2 }, () => {
  for (const [what, spoil, counts] of SPOILS)
    it(`restores the records from the spend log: ${what}`, async () => {
      const end = await rebuilt(spoil);
      assert.deepEqual([end.code, end.counts, end.not_rebuilt], [0, counts, []], end.stderr);
      assertAsBefore(end.dir);
      assert.deepEqual(await sealed.findingsIn(end.dir), []);
      outputOf(await sealed.command(end.dir, ["audit"]));
    });

  it("keeps records beyond the end of an older log, also of requests still open in it", async () => {
    const at = createScene();
    const name = "2026-01-31.0001.jsonl";
    at.write(name, ...[1, 2, 3].map((n) => openLine(n)), settleLine(1));
    await at.pass();
    const [older, records] = [readFileSync(at.segment(name)).subarray(0, -10), await at.records()];
    assert.equal(records.length, 3);
    writeFileSync(at.segment(name), older);
    const rebuild = async () => {
      const { stdout, stderr } = await sealed.command(at.dir, ["books", "rebuild", "--json"]);
      const { added, changed, removed, left } = JSON.parse(stdout || stderr);
      return [added, changed, removed, left];
    };
    for (let times = 0; times < 2; times += 1) {
      assert.deepEqual(await rebuild(), [0, 0, 0, 1], "its lines are gone");
      assert.equal((await at.other().pass()).copied, 0, "none is settled again");
      assert.deepEqual(await at.records(), records);
    }
  });

  it("counts complete lines only if the cursor is lost", async () => {
    const end = await rebuilt((dir) => {
      rmSync(join(dir, "usage/cursor.json"));
      writeFileSync(join(dir, OPEN), `${sealed.textOfFile(dir, OPEN)}{"usage_id":"sp_`);
    });
    assert.deepEqual([end.code, end.counts], [0, [0, 0, 0, 34, 0]]);
    const { days } = JSON.parse(sealed.textOfFile(end.dir, "usage/cursor.json"));
    assert.deepEqual(days, { "2026-02-02": Buffer.byteLength(sealed.textOfFile(scene.dir, OPEN)) });
  });

  for (const [what, spoil] of [
    ["emptied", (segment: string) => truncateSync(segment)],
    ["deleted", (segment: string) => rmSync(segment)],
  ] as const)
    it(`keeps the records of an open day, and their segment's name, if the segment was ${what}`, async () => {
      const { dir, code, counts, stderr } = await rebuilt((copy) =>
        spoil(join(copy, "spend", sealed.E)),
      );
      assert.deepEqual([code, counts], [0, [0, 0, 0, 27, 7]]);
      assert.match(stderr, /was wrong: .*its lines are gone/);
      assertAsBefore(dir);
      const { segments } = JSON.parse(sealed.textOfFile(dir, "usage/cursor.json"));
      assert.deepEqual(segments[sealed.E], { first: "", bytes: 0, lines: 0, unsettled: 0 });
      assert.equal((await sealed.command(dir, ["usage", "sync", "--once"])).code, 0);
    });

  it("changes nothing if a segment exists under two names, and says which one is a copy", async () => {
    const dir = sealed.copyOf(scene.dir);
    cpSync(join(dir, "spend", sealed.A), join(dir, "spend", "2026-01-31.0009.jsonl"));
    rmSync(join(dir, OPEN));
    const cursor = sealed.textOfFile(dir, "usage/cursor.json");
    const { code, stderr } = await sealed.command(dir, ["books", "rebuild"]);
    assert.equal(code, 1);
    const copied = /2026-01-31.000[19].jsonl begins with sp_0+1 like 2026-01-31.000[19].jsonl/;
    assert.match(stderr, copied);
    assert.equal(sealed.textOfFile(dir, "usage/cursor.json"), cursor);
    assert.equal(existsSync(join(dir, OPEN)), false);
  });

  it("replaces a closed day only by what its line states, and names it otherwise", async () => {
    const lost = (dir: string) => {
      sealed.retire(dir, [sealed.A]);
      sealed.edit(dir, CLOSED, (all) => all.slice(1));
    };
    const end = await rebuilt(lost);
    assert.equal(end.code, 1);
    assert.match(end.not_rebuilt[0], /^the usage records of 2026-01-31: were left .* line 1 of/);
    assert.equal(sealed.textOfFile(end.dir, CLOSED).split("\n").length, 13);
    assert.match(end.stderr, /warning: the usage records of 2026-01-31: were left as they are/);
  });

  const LOSSES = [
    ["is deleted", sealed.A, CLOSED, (copy: string) => sealed.retire(copy, [sealed.A])],
    [
      "is cut",
      sealed.C,
      "usage/2026-02-01.jsonl",
      lines(`spend/${sealed.C}`, (all) => all.slice(0, -2)),
    ],
  ] as const;
  for (const [what, segment, day, lose] of LOSSES)
    it(`lets the gateway continue without a closed day whose segment ${what}, and restores it with the segment`, async () => {
      const { dir, code } = await rebuilt((copy) => {
        lose(copy);
        rmSync(join(copy, day));
      });
      assert.equal(code, 1);
      const { code: synced, stderr } = await sealed.command(dir, ["usage", "sync", "--once"]);
      assert.equal(synced, 0, stderr);
      const { stdout } = await sealed.command(dir, ["audit"]);
      assert.ok(stdout.includes(day), "the audit names it");
      writeFileSync(join(dir, "spend", segment), sealed.textOfFile(scene.dir, `spend/${segment}`));
      assert.equal((await sealed.command(dir, ["books", "rebuild"])).code, 0);
      assert.deepEqual(JSON.parse(sealed.textOfFile(dir, "usage/cursor.json")).lost, []);
      assertAsBefore(dir);
    });

  it("reopens days whose lines are lost, including what their deleted segments had", async () => {
    const { dir } = await rebuilt((copy) => {
      sealed.retire(copy, [sealed.A, sealed.B]);
      rmSync(join(copy, "days.jsonl"));
    });
    const january = ["billing", "statement", "--account", "acme", "--month", "2026-01"];
    const { stdout, stderr } = await sealed.command(dir, january);
    assert.equal(stdout, (await sealed.command(scene.dir, january)).stdout, stderr);
  });

  it("replaces a closed day with a deleted segment if the result then matches its line", async () => {
    const end = await rebuilt((dir) => {
      sealed.retire(dir, [sealed.A]);
      sealed.edit(dir, CLOSED, (all) => all.slice(0, -1));
    });
    assert.deepEqual([end.code, end.counts], [0, [1, 0, 0, 25, 8]]);
    assertAsBefore(end.dir);
  });

  it("books nothing twice if lines were removed from the log of an open day", async () => {
    const { dir, counts } = await rebuilt(lines(`spend/${sealed.E}`, (all) => all.slice(2)));
    assert.deepEqual(counts, [0, 7, 0, 27, 0]);
    const ids = sealed.textOfFile(dir, OPEN).match(/"usage_id":"\w+"/g) ?? [];
    assert.deepEqual([ids.length, new Set(ids).size], [13, 13]);
  });

  it("that dies leaves books to which nothing is copied before the next rebuild", async () => {
    const dir = sealed.copyOf(scene.dir);
    rmSync(join(dir, "usage/cursor.json"));
    mkdirSync(join(dir, "usage/2026-02-01.sums.new"));
    assert.equal((await sealed.command(dir, ["books", "rebuild"])).code, 1);
    rmSync(join(dir, "usage/2026-02-01.sums.new"), { recursive: true });
    const grown = sealed.copyOf(dir);
    for (const name of [sealed.A, sealed.B, sealed.C, sealed.D, sealed.E])
      sealed.edit(grown, `spend/${name}`, (all) => [...all, JSON.stringify(openLine(200))]);
    const { code, stderr } = await sealed.command(grown, ["usage", "sync", "--once"]);
    assert.equal(code, 1);
    assert.match(stderr, /the last 'books rebuild' has not ended: .* run it again/);
    assert.equal((await sealed.command(dir, ["books", "rebuild"])).code, 0);
    assertAsBefore(dir);
  });

  it("rebuilds the files kept beside the records of closed days", async () => {
    const kept = ["usage/2026-01-31.sums", "usage/2026-01.ids"];
    const { dir } = await rebuilt((copy) => {
      sealed.edit(copy, kept[0]!, (lines) =>
        lines.map((line) => line.replace('"cost":"0.', '"cost":"9.')),
      );
      rmSync(join(copy, kept[1]!));
    });
    for (const file of kept)
      assert.deepEqual(readFileSync(join(dir, file)), readFileSync(join(scene.dir, file)), file);
    assert.equal(
      (await sealed.command(dir, ["books", "rebuild"])).stdout,
      "usage records: 0 added, 0 changed, 0 removed, 34 as the spend log has them; " +
        "0 have no lines there and were left as they were\n",
    );
  });
});
