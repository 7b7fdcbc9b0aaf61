// What an audit proves and what it does not: whatever is altered, unreadable, contradictory or out
// of reach is a difference. What the sums of deleted segments prove is in retention.test.ts.

import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { describe, it } from "node:test";
import { acquireSocketLock } from "../../../src/extensions/data-files/process-lock.ts";
import {
  COUNTED,
  handMade,
  openLine,
  segmentPath,
  settleLine,
  spendId,
  textOf,
  usageCount,
  usageFile,
  type Line,
} from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { audit, command, readCursor, writeCursor } from "../../support/ledger.ts";

/**
 * The real clock decides what is kept: one month is long out of reach of keep_days, the other is
 * not.
 */
const OLD = "2024-01-31";
const YOUNG = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
const KEEP = { spend: { keep_days: 100 } };
const pair = (n: number, day: string, over: Line = {}) => [
  openLine(n, { time: `${day}T12:00:00.000Z` }),
  settleLine(n, { time: `${day}T12:00:01.500Z`, ...over }),
];
const monthOf = (day: string) => day.slice(0, 7);

/**
 * Old requests 0 to 4 and young ones 5 to 9, copied; the segments of the old ones are still there,
 * as they may be.
 */
async function books(): Promise<string> {
  const dir = folder();
  for (const [first, day] of [
    [0, OLD],
    [5, YOUNG],
  ] as const) {
    const pairs = Array.from({ length: 5 }, (_, at) => pair(first + at, day)).flat();
    handMade(dir, `${day}.0001.jsonl`, textOf(pairs), "let go");
  }
  assert.equal((await command(dir, ["usage", "sync", "--once"], KEEP)).code, 0);
  return dir;
}

/** Changes a month's lines, and how much of them counts. */
function edit(dir: string, day: string, change: (lines: string[]) => string[]): void {
  const file = usageFile(dir, monthOf(day));
  const text = textOf(change(readFileSync(file, "utf8").split("\n").slice(0, -1)));
  writeFileSync(file, text);
  const { segments, months } = readCursor(dir);
  const sizes = { ...months, [monthOf(day)]: Buffer.byteLength(text) };
  writeCursor(dir, { segments, months: sizes });
}
const replaced = (at: number, from: string | RegExp, to: string) => (lines: string[]) =>
  lines.map((line, each) => (each === at ? line.replace(from, to) : line));

/** The audit fails, and its differences are about these ids or words, each of them. */
async function assertDifferences(dir: string, expected: readonly RegExp[]) {
  const { code, found } = await audit(dir, KEEP);
  assert.deepEqual([code, found.ok], [1, false]);
  const told: string[] = found.differences;
  for (const words of expected)
    assert.ok(
      told.some((each) => words.test(each)),
      `${words}: ${JSON.stringify(told)}`,
    );
  for (const each of told)
    assert.ok(
      expected.some((words) => words.test(each)),
      `unexpected: ${each}`,
    );
  return found;
}

describe("records older than keep_days", { concurrency: 2 }, () => {
  it("are proved as long as their segments are there", async () => {
    const { code, found } = await audit(await books(), KEEP);
    assert.deepEqual(
      [code, found.proved],
      [0, { requests: 10, from: `${OLD}T12:00:01.500Z`, to: `${YOUNG}T12:00:01.500Z` }],
    );
  });

  it("are found out when their costs are altered", async () => {
    const dir = await books();
    edit(dir, OLD, replaced(2, /"cost":"0\./, '"cost":"9.'));
    const found = await assertDifferences(dir, [
      new RegExp(`^${spendId(2)}: in the usage records cost is "9.*", settled as "0.*"$`),
    ]);
    assert.equal(found.proved.requests, 9);
  });

  it("are not proved, which is a difference with number and span, once their segments are gone and left no sums", async () => {
    const dir = await books();
    rmSync(segmentPath(dir, `${OLD}.0001.jsonl`));
    const found = await assertDifferences(dir, [
      /^2024-01: nothing proves usage records .*: 5 for \S+ USD, which ended from 2024-01-31T12:00:01.500Z to 2024/,
    ]);
    const old = `${OLD}T12:00:01.500Z`;
    assert.deepEqual(found.not_proved, { records: 5, from: old, to: old });
    assert.deepEqual([found.settled, found.recorded, found.proved.requests], [5, 5, 5]);
    const { stdout } = await command(dir, ["audit"], KEEP);
    assert.match(
      stdout,
      /\nproved: 5 requests settled from .*\nnot proved: 5 usage records that ended from 2024-01-31T12:00:01.500Z to 2024-01-31T12:00:01.500Z: .*\nthe books are wrong:\n/,
    );
    assert.doesNotMatch(stdout, /the books are right/);
  });

  it("are not proved also where older segments than theirs are still there", async () => {
    const dir = await books();
    handMade(dir, "2023-12-31.0001.jsonl", textOf(pair(20, "2023-12-31")), "let go");
    assert.equal((await audit(dir, { spend: { keep_days: 3_000 } })).code, 0);
    rmSync(segmentPath(dir, `${OLD}.0001.jsonl`));
    const { code, found } = await audit(dir, KEEP);
    assert.deepEqual([code, found.not_proved.records, found.recorded, found.settled], [1, 5, 6, 6]);
    assert.deepEqual(found.cost_recorded, found.cost_settled);
  });

  it("are a difference if they contradict themselves, proved or not", async () => {
    const dir = await books();
    edit(dir, OLD, replaced(1, /"total_tokens":\d+/, '"total_tokens":1'));
    rmSync(segmentPath(dir, `${OLD}.0001.jsonl`));
    await assertDifferences(dir, [
      new RegExp(`^${spendId(1)}: recorded, but total_tokens is not prompt_tokens`),
      /^2024-01: nothing proves usage records/,
    ]);
  });
});

describe("records within keep_days", { concurrency: 2 }, () => {
  it("are differences when their segment is gone", async () => {
    const dir = await books();
    rmSync(segmentPath(dir, `${YOUNG}.0001.jsonl`));
    const found = await assertDifferences(
      dir,
      [5, 6, 7, 8, 9].map((n) => new RegExp(`^${spendId(n)}: .* without lines in the spend log`)),
    );
    assert.deepEqual([found.proved.requests, found.not_proved.records], [5, 0]);
  });

  it("are differences when their month file is shorter than what was written", async () => {
    const dir = await books();
    truncateSync(usageFile(dir, monthOf(YOUNG)), 10);
    await assertDifferences(dir, [
      /\.jsonl has 10 bytes, although \d+ bytes of records were written/,
      ...[5, 6, 7, 8, 9].map((n) => new RegExp(`^${spendId(n)}: settled, and not in the usage`)),
    ]);
  });
});

describe("what cannot be read", { concurrency: 2 }, () => {
  const segment = (dir: string) => segmentPath(dir, `${YOUNG}.0001.jsonl`);

  it("is a difference in the spend log", async () => {
    const dir = await books();
    appendFileSync(segment(dir), "nonsense\n");
    await assertDifferences(dir, [/^line 11 cannot be read in spend\/.*\.0001\.jsonl$/]);
  });

  it("is a difference at the torn end of a segment that nobody writes", async () => {
    const dir = await books();
    appendFileSync(segment(dir), '{"type":"open"');
    await assertDifferences(dir, [/^spend\/.*\.0001\.jsonl ends in the middle of a line$/]);
  });

  it("is a difference in the usage records, and does not end the audit", async () => {
    const dir = await books();
    edit(dir, YOUNG, (lines) => ["\0\0\0", "{}", ...lines]);
    await assertDifferences(dir, [/^a line that is no usage record, in usage\/\d{4}-\d\d\.jsonl/]);
  });

  for (const [what, over] of [
    ["whose sums exceed 2^53", { usage: { ...COUNTED, total_tokens: 9_007_199_254_741_000 } }],
    ["whose cost is no amount", { cost: "-1" }],
  ] as const) {
    it(`is a difference in a settle line ${what}, in a segment that is written too, and not in flight`, async (t) => {
      const dir = await books();
      appendFileSync(segment(dir), textOf(pair(30, YOUNG, over)));
      writeFileSync(segment(dir).replace("jsonl", "open"), "");
      const release = await acquireSocketLock(segment(dir).replace("jsonl", "sock"));
      t.after(() => release?.());
      const end = await command(dir, ["audit", "--json"], KEEP);
      const found = JSON.parse(end.stdout);
      assert.equal(end.code, 1);
      assert.equal(found.in_flight, 0);
      assert.ok(
        found.differences.some((each: string) => each.startsWith(`${spendId(30)}: line 12 cannot`)),
        JSON.stringify(found.differences),
      );
    });
  }

  it("is a difference where it contradicts itself", async () => {
    const dir = await books();
    const usage = { ...COUNTED, prompt_cache_hit_tokens: COUNTED.prompt_cache_hit_tokens + 1 };
    appendFileSync(segment(dir), textOf(pair(30, YOUNG, { usage })));
    await assertDifferences(dir, [
      new RegExp(`^${spendId(30)}: (settled|recorded), but prompt_tokens is not prompt_cache_hit`),
    ]);
  });
});

it("says of an empty spend log that nothing is proved", async () => {
  const dir = await books();
  for (const day of [OLD, YOUNG]) rmSync(segmentPath(dir, `${day}.0001.jsonl`));
  edit(dir, YOUNG, () => []);
  const { code, stdout } = await command(dir, ["audit"], KEEP);
  assert.equal(code, 1);
  assert.match(stdout, /\nproved: nothing.*\nnot proved: 5 usage records/);
});

describe("an open line that says something else than its settle line", { concurrency: 2 }, () => {
  for (const [name, from, to] of [
    ["account", "acme", "evil"],
    ["key_id", "key_0123456789abcdef", "key_0123456789abcdee"],
    ["gateway_request_id", "request 5", "request 6"],
    ["model_requested", "m", "n"],
  ] as const) {
    it(`is a difference: ${name}`, async () => {
      const dir = await books();
      const path = segmentPath(dir, `${YOUNG}.0001.jsonl`);
      const [open = "", ...rest] = readFileSync(path, "utf8").split("\n");
      const altered = open.replace(`"${name}":"${from}"`, `"${name}":"${to}"`);
      assert.notEqual(altered, open);
      writeFileSync(path, [altered, ...rest].join("\n"));
      await assertDifferences(dir, [
        new RegExp(
          `^${spendId(5)}: ${name} is "${to}" when opened, settled as "${from}" in spend/`,
        ),
      ]);
    });
  }

  it("is a difference too where an interrupted request was settled once more", async () => {
    const dir = await books();
    const path = segmentPath(dir, `${YOUNG}.0001.jsonl`);
    const time = { time: `${YOUNG}T12:00:01.500Z` };
    const lines = [
      openLine(30, { time: `${YOUNG}T12:00:00.000Z` }),
      settleLine(30, { ...time, status: "interrupted" }),
      settleLine(30, { ...time, account: "evil" }),
    ];
    appendFileSync(path, textOf(lines));
    await assertDifferences(dir, [
      new RegExp(`^${spendId(30)}: account is "acme" when first settled, settled as "evil"`),
    ]);
  });
});

describe("what is named like a segment and is no file", { concurrency: 2 }, () => {
  const stranger = /\/spend\/2023-11-22\.0001\.jsonl is named like a segment .* no regular file/;
  for (const [what, make] of [
    ["a folder", (path: string) => mkdirSync(path)],
    ["a link to itself", (path: string) => symlinkSync(path, path)],
  ] as const) {
    it(`is a difference, and stops neither the sync of the others nor a rebuild: ${what}`, async () => {
      const dir = await books();
      make(segmentPath(dir, "2023-11-22.0001.jsonl"));
      handMade(dir, `${YOUNG}.0002.jsonl`, textOf(pair(30, YOUNG)), "let go");
      const sync = await command(dir, ["usage", "sync", "--once"], KEEP);
      assert.equal(sync.code, 0, sync.stderr);
      assert.match(sync.stderr, stranger);
      assert.equal(usageCount(dir), 11);
      const found = await assertDifferences(dir, [stranger]);
      assert.equal(found.proved.requests, 11);
      const rebuild = await command(dir, ["books", "rebuild"], KEEP);
      assert.equal(rebuild.code, 0, rebuild.stderr);
      assert.match(rebuild.stderr, stranger);
    });
  }

  it("is a difference also where a process has left its mark beside it", async () => {
    const dir = await books();
    mkdirSync(segmentPath(dir, "2023-11-22.0001.jsonl"));
    writeFileSync(segmentPath(dir, "2023-11-22.0001.open"), "");
    await assertDifferences(dir, [stranger]);
  });
});
