// Sealed statements, and verifiers written from the manual alone.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { createSigner } from "../../../../src/extensions/money/seals/sign.ts";
import { verifyStatement } from "../../../../src/extensions/money/seals/verify-statement.ts";
import { createMerkleRoot, leafOf, rootFrom } from "../../../../src/extensions/money/days/index.ts";
import { heldNow } from "../../../support/effort.ts";
import { folder } from "../../../support/folder.ts";
import { createRandom } from "../../../support/random.ts";
import { runHere } from "../../../support/run-here.ts";
import type { Scene } from "../../../support/written-books.ts";
import {
  A,
  B,
  C,
  command,
  copyOf,
  edit,
  publicKeyOf,
  retire,
  textOfFile,
  threeDays,
} from "../../../support/sealed-books.ts";

let scene: Scene;
let text: string;
let publicKey: string;
let keyFile: string;

const billing = (month: string, form: string) =>
  ["billing", "statement", "--account", "acme", "--month", month, form] as const;

async function statement(month: string, dir = scene.dir): Promise<string> {
  const { code, stdout, stderr } = await command(dir, billing(month, "--sealed"));
  assert.equal(code, 0, stderr);
  return stdout;
}

before(async () => {
  scene = await threeDays();
  publicKey = publicKeyOf(scene.dir);
  keyFile = join(folder(), "key.pem");
  writeFileSync(keyFile, (await command(scene.dir, ["seal", "public-key"])).stdout);
  text = await statement("2026-02");
});

const verified = (changed: string, keptLines: readonly string[] = []) =>
  verifyStatement(changed, { publicKey, keptLines }).result;

/** Signs a statement again, as somebody with the key would. */
function forged(change: (statement: Record<string, any>) => void): string {
  const { signature: _signature, ...body } = JSON.parse(text);
  change(body);
  return createSigner(scene.dir).sign(JSON.stringify(body));
}

/** Turns the first day into one that closed before seals were enabled. */
function unsign({ days: [day] }: Record<string, any>): void {
  const { signature: _signature, public_key: _key, ...line } = JSON.parse(day.line);
  day.line = JSON.stringify(line);
}

it("a proof in a tree of many leaves leads from its leaf to the root, and from no other", () => {
  const { random } = createRandom(7);
  for (let count = 0; count < 40; count += 1) {
    const leaves = Array.from({ length: count }, (_, at) => leafOf(`line ${at}`));
    for (const share of [0.1, 0.5, 1]) {
      const merkle = createMerkleRoot();
      const known = new Map<number, Buffer>();
      leaves.forEach((leaf, at) => {
        const isProved = random() < share || share === 1;
        merkle.add(leaf, isProved);
        if (isProved) known.set(at, leaf);
      });
      if (known.size === 0) continue;
      const hashes = merkle.hashes();
      assert.equal(rootFrom(count, known, hashes), merkle.root());
      assert.ok(share < 1 || hashes.length === 0);
      const [first] = [...known.keys()];
      const wrong = new Map(known).set(first!, leafOf("another"));
      assert.notEqual(rootFrom(count, wrong, hashes), merkle.root());
      assert.equal(rootFrom(count, known, [...hashes, "00"]), undefined);
    }
  }
});

describe("a sealed statement", () => {
  it("has the bill and the records as in the books, and proves them", async () => {
    const { days, bill, type } = JSON.parse(text);
    const billed = JSON.parse((await command(scene.dir, billing("2026-02", "--json"))).stdout);
    assert.deepEqual(bill, billed);
    assert.deepEqual([type, bill.account, bill.month], ["statement", "acme", "2026-02"]);
    const records = days.flatMap((day: { records: [number, string][] }) =>
      day.records.map(([, line]) => line),
    );
    const files = ["2026-02-01", "2026-02-02"].map((day) => scene.dayFile(day)).join("");
    for (const line of records) assert.ok(files.includes(`${line}\n`));
    const { findings, ok, by_head, not_proved, account } = verified(text);
    assert.deepEqual([findings, ok, account], [[], true, "acme"]);
    assert.deepEqual([by_head + not_proved, not_proved], [records.length, 7]);
    assert.ok(records.length === bill.total.requests && by_head > 0);
  });

  it("proves a month without records of the account too", async () => {
    assert.deepEqual(verified(await statement("2025-12")).findings, []);
  });

  it("is proved if a day closed before seals were enabled", () => {
    const { findings, by_head } = verified(forged(unsign));
    assert.deepEqual([findings, by_head], [[], 0], "the signature of the statement alone");
  });

  it("is printed without keeping the text around its records in memory", async () => {
    const { account, month, currency, total } = JSON.parse(text).bill;
    const size = 1_000_000;
    async function* linesOf(day: string) {
      for await (const { lines } of scene.books.store.linesOf(day)) {
        const parts = lines.map((line) => line.text.padEnd(size).slice(0, line.text.length));
        yield { lines: lines.map((line, at) => ({ ...line, text: parts[at]! })) };
      }
    }
    const books = { ...scene.books, store: { ...scene.books.store, linesOf } };
    const bill = { account, month, currency, total };
    const before = heldNow();
    await createSigner(scene.dir).printStatement(
      books,
      async () => bill,
      async () => {
        const held = heldNow() - before;
        assert.ok(held < size, `${held} bytes`);
      },
    );
  });

  it("is detected if any byte of it was changed", () => {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length - 2; at += 101) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      assert.equal(verified(changed.toString()).ok, false, `byte ${at}`);
    }
  });

  /** Gives the open day a line that follows that of the first day. */
  const closeNext = (days: Record<string, any>[]): void => {
    const { signature: _signature, ...line } = JSON.parse(days[0]!["line"]);
    days[1]!["line"] = JSON.stringify({ ...line, day: "2026-02-02", number: line.number + 1 });
  };
  const changed = /^the records of 2026-02-01: are not those that/;
  /** The forged parts: the bill, the first day, its first record. */
  const FORGERIES: readonly (readonly [string, (body: Record<string, any>) => void, RegExp])[] = [
    ["a sum", ({ bill }) => (bill.total.cost = "1"), /^the total: is not the sum/],
    ["a line", ({ bill }) => (bill.lines[0].requests = 1), /^the line of .*: is not the sum/],
    ["a record", ({ days: [day] }) => (day.records[0][1] += " "), changed],
    ["a record's place", ({ days: [day] }) => (day.records[0][0] = 5), changed],
    ["a hash", ({ days: [day] }) => day.hashes.pop(), changed],
    ["a day", ({ days: [day] }) => (day.line += " "), /^the line of 2026-02-01: was changed/],
    ["a line's signature", ({ days }) => closeNext(days), /02-02: is not signed, and that of /],
    ["the line before", ({ days }) => closeNext(days), /02-02: has another line before it/],
    ["a record twice", ({ days }) => days[1].records.push(days[1].records[0]), /statement twice$/],
    ["another account", ({ bill }) => (bill.account = "beta"), /is of another account, day or/],
  ];
  for (const [what, change, expected] of FORGERIES)
    it(`is detected even if it was signed again: ${what}`, () => {
      const { findings } = verified(forged(change));
      const isFound = findings.some((finding) => expected.test(finding));
      assert.ok(isFound, JSON.stringify(findings));
    });

  it("is compared with kept heads", () => {
    const kept = textOfFile(scene.dir, "days.jsonl").split("\n").slice(0, -1);
    assert.deepEqual(verified(text, kept).compared, ["2026-02-01"]);
    const { signature: _signature, ...line } = JSON.parse(kept[1]!);
    const anew = createSigner(scene.dir).sign(JSON.stringify({ ...line, records: 9 }));
    const other = verified(text, [anew]);
    assert.deepEqual(other.findings, [
      "the line of 2026-02-01 in the statement: is not the one that was kept",
    ]);
  });

  it("is verified by the command", async () => {
    const file = join(folder(), "statement.json");
    writeFileSync(file, text);
    const { code, stdout } = await runHere(["seal", "verify", file, "--public-key", keyFile]);
    assert.equal(code, 0);
    assert.match(
      stdout,
      /\nstatement of acme for 2026-02: \d+ records: \d+ proved by signed lines of closed days, 7 by the signature of the statement alone\ncompared with heads that were kept: none\nnothing was changed\n$/,
    );
    writeFileSync(file, text.slice(0, 900));
    const cut = await runHere(["seal", "verify", file]);
    assert.equal(cut.code, 1);
    assert.match(cut.stderr, /was cut off or damaged/);
    assert.match((await runHere(["seal", "verify", `${file}s`])).stderr, /is not there/);
  });

  it("is not made from records that do not match their day, nor without seals", async () => {
    const args = billing("2026-02", "--sealed");
    for (const [file, expected] of [
      ["usage/2026-02-01.jsonl", /are not those of its line in days.jsonl/],
      ["usage/2026-02-01.sums", /not those of their records/],
    ] as const) {
      const dir = copyOf(scene.dir);
      edit(dir, file, (lines) => lines.map((line) => line.replace('"cost":"0', '"cost":"7')));
      assert.match((await command(dir, args)).stderr, expected);
    }
    const unsealed = await command(scene.dir, args, { seals: { enabled: false } });
    assert.match(unsealed.stderr, /--sealed needs seals.enabled in the configuration/);
  });
});

describe("a verifier written from the manual alone", { concurrency: 2 }, () => {
  const python = (path: string) => {
    const args = ["test/extensions/money/seals/verify.py", path, keyFile];
    const { status, stderr } = spawnSync("python3", args, { encoding: "utf8" });
    return { status, stderr };
  };
  const RIGHT = { status: 0, stderr: "" };

  it("accepts correct books and statements", () => {
    assert.deepEqual(python(scene.dir), RIGHT);
    const retired = copyOf(scene.dir);
    retire(retired, [A, B, C]);
    assert.deepEqual(python(retired), RIGHT);
    const file = join(folder(), "statement.json");
    for (const right of [text, forged(unsign)]) {
      writeFileSync(file, right);
      assert.deepEqual(python(file), RIGHT);
    }
    writeFileSync(
      file,
      forged(({ days }) => days[0].hashes.reverse()),
    );
    assert.match(python(file).stderr, /^wrong: 2026-02-01/);
    writeFileSync(file, text.replace("acme", "beta"));
    assert.match(python(file).stderr, /^wrong: statement: signature/);
  });

  it("finds what was changed", () => {
    const dir = copyOf(scene.dir);
    edit(dir, "days.jsonl", (lines) =>
      lines.map((line) => line.replace('"records":8', '"records":9')),
    );
    assert.match(python(dir).stderr, /^wrong: days.jsonl, line 2/);
    const other = copyOf(scene.dir);
    edit(other, `spend/${B}`, (lines) => lines.map((line) => line.replace('"m"', '"n"')));
    assert.match(python(other).stderr, /^wrong: spend\/2026-01-31.0002/);
  });
});
