// One byte is changed at every kind of place in segments, usage records, heads, trees and
// statements, and lines are removed, inserted, doubled, swapped and cut off: each is found, and
// named by file and line.

import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { publicHexOf } from "../../../src/extensions/seals/heads/seal-key.ts";
import { verifyBooks } from "../../../src/extensions/seal-verify/verify-books.ts";
import { verifyStatement } from "../../../src/extensions/seal-verify/verify-statement.ts";
import { folder } from "../../support/folder.ts";
import { LONG } from "../../support/long.ts";
import { createRandom } from "../../support/random.ts";
import { threeDays } from "../seals/sealed-books.ts";

/** How many places of each file are tried: all of them takes five minutes, with EVERY_BYTE=1. */
const SOME_PLACES = LONG ? 500 : 60;
const PLACES = process.env["EVERY_BYTE"] === undefined ? SOME_PLACES : Infinity;
const SEED = Number(process.env["TAMPER_SEED"] ?? Date.now() % 1_000_000);

/** Sealed books of three days, of which two are closed, and what an auditor has kept of them. */
async function makeKept() {
  const books = await threeDays(2);
  const print = async (...args: string[]): Promise<string> => (await books.command(...args)).stdout;
  const publicKey = publicHexOf(await print("seal", "public-key"));
  const head = (await print("seal", "head")).trimEnd();
  const month = ["--account", "acme", "--month", "2026-03"];
  const statement = await print("billing", "statement", ...month, "--sealed");
  return { dir: books.dir, publicKey, head, statement };
}

let kept: Awaited<ReturnType<typeof makeKept>>;
before(async () => {
  kept = await makeKept();
});

/** The findings in a copy of the books in which one file is another. */
async function findingsWith(
  file: string,
  change: (bytes: Buffer) => Buffer | undefined,
  also: (dir: string) => void = () => undefined,
) {
  const dir = join(folder({ inMemory: true }), "data");
  cpSync(kept.dir, dir, { recursive: true });
  const path = join(dir, file);
  const changed = change(readFileSync(path));
  if (changed) writeFileSync(path, changed);
  else rmSync(path);
  also(dir);
  const { publicKey, head } = kept;
  const { ok, findings } = await verifyBooks(dir, { publicKey, kept: [head] });
  rmSync(dir, { recursive: true });
  assert.equal(ok, findings.length === 0);
  return findings;
}

function withByte(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at]! ^= 1;
  return copy;
}

/** Places spread over a file, the first and the last byte among them. */
function placesIn({ length }: { readonly length: number }): number[] {
  if (length <= PLACES) return Array.from({ length }, (_, at) => at);
  const { between } = createRandom(SEED);
  const others = Array.from({ length: PLACES }, () => between(0, length - 1));
  return [...new Set([0, length - 1, ...others])];
}

/** The number of the line in which a byte stands, from 1. */
const lineAt = (bytes: Buffer, at: number): number =>
  bytes.subarray(0, at).toString("latin1").split("\n").length;

/** Whether a finding is about lines of a file, this one among them. */
function spanHas(finding: string, file: string, line: number): boolean {
  const [, name, from, to] = /^(.*), lines (\d+) to (\d+): /.exec(finding) ?? [];
  return name === file && line >= Number(from) && line <= Number(to);
}

/**
 * Whether a finding names the file, and the line or the one after it, which continues it. What
 * receipts say of a record is proved with all lines of its day.
 */
const names = (findings: readonly string[], file: string, line: number): boolean =>
  findings.some(
    (text) =>
      [line, line + 1].some((number) => text.startsWith(`${file}, line ${number}:`)) ||
      spanHas(text, file, line),
  );

describe("one changed byte", () => {
  it("books that nobody changed have no finding", async () => {
    assert.deepEqual(await findingsWith("spend/2026-03-02.0001.jsonl", (bytes) => bytes), []);
  });

  for (const file of [
    "spend/2026-03-02.0001.jsonl",
    "spend/2026-03-04.0001.jsonl",
    "usage/2026-03.jsonl",
    "seals/heads.jsonl",
  ])
    it(`in ${file}: found, with its line`, async () => {
      const bytes = readFileSync(join(kept.dir, file));
      for (const at of placesIn(bytes)) {
        const findings = await findingsWith(file, (whole) => withByte(whole, at));
        const where = `byte ${at}, seed ${SEED}: ${JSON.stringify(findings)}`;
        assert.ok(names(findings, file, lineAt(bytes, at)), where);
      }
    });

  it("in the tree of a day: found, with its file", async () => {
    const file = "seals/2026-03-02.tree";
    for (const at of placesIn(readFileSync(join(kept.dir, file)))) {
      const findings = await findingsWith(file, (whole) => withByte(whole, at));
      assert.ok(
        findings.some((text) => text.startsWith(file)),
        `byte ${at}, seed ${SEED}`,
      );
    }
  });

  it("in a head that was kept, or in the public key: found", async () => {
    const { publicKey, head } = kept;
    for (const at of placesIn(head)) {
      const other = withByte(Buffer.from(head), at).toString();
      const { findings } = await verifyBooks(kept.dir, { publicKey, kept: [other] });
      assert.match(findings.join("\n"), /^the head that was kept: /m, `byte ${at}, seed ${SEED}`);
    }
    const wrongKey = "00".repeat(32);
    const { findings } = await verifyBooks(kept.dir, { publicKey: wrongKey, kept: [head] });
    assert.equal(findings.filter((text) => text.includes("another key")).length, 3);
  });

  it("in a statement: found", async () => {
    const { publicKey, statement } = kept;
    const bytes = Buffer.from(statement.trimEnd());
    assert.deepEqual(verifyStatement(statement, { publicKey, kept: [] }).findings, []);
    for (const at of placesIn(bytes)) {
      const other = withByte(bytes, at).toString();
      const { findings } = verifyStatement(other, { publicKey, kept: [] });
      assert.match(findings.join("\n"), /^the statement: was changed/m, `byte ${at}, seed ${SEED}`);
    }
  });
});

/** What may stand in the place of any value. */
const OTHERS = [null, 0, -1, 1e15, 1.5, "", "x", [], {}, [null], [[]], true];

/** Texts in which one value of a JSON text is another, or is missing: all with LONG_TESTS. */
const withOtherValues = (text: string): string[] =>
  [...allOtherValues(text)].filter((_, at) => LONG || at % 7 === SEED % 7);

function* allOtherValues(text: string): Generator<string> {
  function* pathsOf(value: unknown, path: readonly string[]): Generator<readonly string[]> {
    for (const [name, member] of Object.entries(value ?? {})) {
      yield [...path, name];
      if (typeof member === "object") yield* pathsOf(member, [...path, name]);
    }
  }
  for (const path of pathsOf(JSON.parse(text), [])) {
    for (const other of [undefined, ...OTHERS]) {
      const copy = JSON.parse(text);
      const parent = path.slice(0, -1).reduce((value, name) => value[name], copy);
      parent[path.at(-1)!] = other;
      if (JSON.stringify(copy) !== text) yield JSON.stringify(copy);
    }
  }
}

describe("another value in the place of any value", () => {
  it("in a statement: found, whatever it is", () => {
    for (const text of withOtherValues(kept.statement.trimEnd())) {
      const { findings } = verifyStatement(text, { publicKey: undefined, kept: [] });
      assert.ok(findings.length > 0, text);
    }
  });

  it("in a head: found, whatever it is", async () => {
    const file = "seals/heads.jsonl";
    const [first = "", ...rest] = linesIn(readFileSync(join(kept.dir, file)));
    for (const text of withOtherValues(first.trimEnd())) {
      const findings = await findingsWith(file, () => fromLines([`${text}\n`, ...rest]));
      assert.ok(
        findings.some((finding) => finding.startsWith(`${file}, line 1: `)),
        text,
      );
    }
  });
});

const linesIn = (bytes: Buffer): string[] => bytes.toString().split(/(?<=\n)/);
const fromLines = (lines: readonly string[]): Buffer => Buffer.from(lines.join(""));

/** What can be done to lines, by the number of the line, from 0. */
const CHANGES: Readonly<Record<string, (lines: readonly string[], at: number) => string[]>> = {
  removed: (lines, at) => lines.toSpliced(at, 1),
  doubled: (lines, at) => lines.toSpliced(at, 0, lines[at]!),
  inserted: (lines, at) => lines.toSpliced(at, 0, '{"type":"open","spend_id":"sp_0"}\n'),
  swapped: (lines, at) => lines.toSpliced(at, 2, lines[at + 1]!, lines[at]!),
  "moved to the end": (lines, at) => [...lines.toSpliced(at, 1), lines[at]!],
};

describe("changed lines", () => {
  for (const [name, change] of Object.entries(CHANGES))
    it(`${name}, in a segment: found, with the line`, async () => {
      for (const file of ["spend/2026-03-02.0001.jsonl", "spend/2026-03-04.0001.jsonl"]) {
        const count = linesIn(readFileSync(join(kept.dir, file))).length;
        for (let at = 0; at < count - 1; at += 1) {
          const findings = await findingsWith(file, (bytes) =>
            fromLines(change(linesIn(bytes), at)),
          );
          assert.ok(names(findings, file, at + 1), `${file}, line ${at + 1}: ${findings.join()}`);
        }
      }
    });

  for (const [name, change] of Object.entries(CHANGES))
    it(`${name}, in the usage records, all of which count: found`, async () => {
      const file = "usage/2026-03.jsonl";
      const bytes = readFileSync(join(kept.dir, file));
      // The last four records are of the open day: of those no head has the order.
      const isOrder = name === "swapped" || name === "moved to the end";
      for (let at = 0; at < (isOrder ? 7 : 12); at += 1) {
        const changed = fromLines(change(linesIn(bytes), at));
        const findings = await findingsWith(
          "usage/cursor.json",
          (text) => {
            const cursor = JSON.parse(text.toString());
            cursor.months["2026-03"] = changed.length;
            return Buffer.from(JSON.stringify(cursor));
          },
          (dir) => writeFileSync(join(dir, file), changed),
        );
        const id = JSON.parse(linesIn(bytes)[at]!).usage_id;
        const expected = {
          removed: (text: string) => text.includes(`${id} is missing`),
          doubled: (text: string) => text.startsWith(`${file}, line ${at + 2}: ${id} is there a`),
          inserted: (text: string) => text.startsWith(`${file}, line ${at + 1}: `),
        };
        const isFound = isOrder
          ? (text: string) => spanHas(text, file, at + 1)
          : expected[name as keyof typeof expected];
        assert.ok(findings.some(isFound), `line ${at + 1}: ${findings.join()}`);
      }
    });

  it("cut off at the end of a segment: found, with the last line that is left", async () => {
    for (const file of ["spend/2026-03-02.0001.jsonl", "spend/2026-03-04.0001.jsonl"]) {
      const count = linesIn(readFileSync(join(kept.dir, file))).length;
      for (let left = 1; left < count; left += 1) {
        const findings = await findingsWith(file, (bytes) =>
          fromLines(linesIn(bytes).slice(0, left)),
        );
        assert.ok(names(findings, file, left), `${file}, ${left} lines: ${findings.join()}`);
      }
    }
  });

  it("cut off at the end of the heads, or all of them: found by the head that was kept", async () => {
    const file = "seals/heads.jsonl";
    const cut = await findingsWith(file, (bytes) => fromLines(linesIn(bytes).slice(0, 1)));
    assert.match(cut.join("\n"), /^the head that was kept: continues a head that is not in/m);
    const gone = await findingsWith(file, () => undefined);
    assert.match(gone.join("\n"), /^the head that was kept: continues a head that is not in/m);
  });
});

describe("whole files that are gone", () => {
  it("a segment of an open day, a tree, and the usage records: found", async () => {
    for (const [file, finding] of [
      ["spend/2026-03-04.0001.jsonl", /^spend\/2026-03-04.0001.jsonl: is not there, and the head/m],
      ["seals/2026-03-02.tree", /^seals\/2026-03-02.tree: is not there/m],
      ["usage/2026-03.jsonl", /^usage: .*2026-03.jsonl is not there, although/m],
    ] as const)
      assert.match((await findingsWith(file, () => undefined)).join("\n"), finding, file);
  });

  it("has all files of these books in one of these tests", () => {
    const files = ["seals", "spend", "usage"].flatMap((name) => readdirSync(join(kept.dir, name)));
    assert.deepEqual(files.sort(), [
      "2026-03-02.0001.jsonl",
      "2026-03-02.tree",
      "2026-03-03.0001.jsonl",
      "2026-03-03.tree",
      "2026-03-04.0001.jsonl",
      "2026-03.jsonl",
      "cursor.json",
      "heads.jsonl",
    ]);
  });
});
