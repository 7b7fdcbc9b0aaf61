// The heads of closed days: when they are made, what they say, and that nobody without the key can
// make one.

import assert from "node:assert/strict";
import { createHash, createPublicKey, verify } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createRecordProofs } from "../../../src/extensions/seals/tree/record-proofs.ts";
import { createChainWriter } from "../../../src/extensions/seals/chain/write-chain.ts";
import { rootOfProof } from "../../../src/extensions/seals/tree/merkle.ts";
import { configFile, segmentPath, segments, usageRecords } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";
import { runHere } from "../../support/run-here.ts";
import { HOUR, sealedBooks, settlement, textOfFile, threeDays } from "./sealed-books.ts";

const sha = (...parts: (Uint8Array | string)[]): Buffer => {
  const digest = createHash("sha256");
  for (const part of parts) digest.update(part);
  return digest.digest();
};
/** The leaf of a record, as the manual defines it. */
const leafOf = (line: string): Buffer =>
  sha(
    Buffer.from([0]),
    line.replace(/,"details":.*/s, "}").replace(/,"cache_write_tokens":0\}$/, "}"),
  );
const headLines = (dir: string): string[] =>
  textOfFile(dir, "seals/heads.jsonl").split("\n").slice(0, -1);

/** Verifies a signature as the manual says, with nothing of the program. */
function assertSigned(text: string, pem: string): void {
  const [, start = "", signature = ""] = /^(.*),"signature":"([0-9a-f]{128})"\}$/s.exec(text) ?? [];
  const digest = sha(`${start}}`);
  assert.ok(verify(null, digest, createPublicKey(pem), Buffer.from(signature, "hex")), text);
}

describe("the heads of closed days", () => {
  it("are signed, continue each other, and have the root of the day's records", async () => {
    const books = await threeDays(5);
    const { stdout: pem } = await books.command("seal", "public-key");
    const lines = headLines(books.dir);
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).day),
      ["2026-03-02", "2026-03-03"],
    );
    let previous = "0".repeat(64);
    lines.forEach((line, index) => {
      assertSigned(line, pem);
      const head = JSON.parse(line);
      assert.deepEqual([head.number, head.previous], [index + 1, previous]);
      previous = sha(line).toString("hex");
      const records = textOfFile(books.dir, "usage/2026-03.jsonl")
        .split("\n")
        .filter((record) => record.includes(`"ended_at":"${head.day}T`));
      assert.equal(head.records, 10);
      let level = records.map(leafOf).sort(Buffer.compare);
      while (level.length > 1)
        level = level.flatMap((node, at) => {
          if (at % 2 === 1) return [];
          return [level[at + 1] ? sha(Buffer.from([1]), node, level[at + 1]!) : node];
        });
      assert.equal(head.root, level[0]!.toString("hex"));
      const [segment] = head.segments;
      assert.deepEqual([head.segments.length, segment.lines], [1, 20]);
      const last = readFileSync(segmentPath(books.dir, segment.segment), "utf8").split("\n")[19]!;
      assert.equal(segment.seal, JSON.parse(last).seal);
    });
    const { mode } = statSync(join(books.dir, "keys.seal"));
    assert.equal(mode & 0o777, 0o600);
  });

  it("are named in the log, each once", async () => {
    const books = await threeDays();
    const events = books.events.filter(({ event }) => event === "seal_head");
    assert.deepEqual(
      events.map(({ level, day, number, records }) => [level, day, number, records]),
      [
        ["info", "2026-03-02", 1, 8],
        ["info", "2026-03-03", 2, 8],
      ],
    );
    assert.deepEqual(
      events.map(({ head }) => head),
      headLines(books.dir).map((line) => sha(line).toString("hex")),
    );
    assert.deepEqual(
      books.events.filter(({ level }) => level !== "info"),
      [],
    );
  });

  it("wait for requests that began on the day, and a day without any gets a head too", async () => {
    const books = sealedBooks();
    await books.requests(1);
    await books.serve(async (ledger) => {
      const request = {
        requestId: "slow",
        account: "acme",
        keyId: "k",
        modelRequested: "m",
        stream: false,
      };
      const slow = ledger.open(request);
      await slow.opened;
      books.clock.advance(13 * HOUR);
      const pass = await books.command("usage", "sync", "--once");
      assert.equal(pass.code, 0, pass.stderr);
      assert.equal(existsSync(join(books.dir, "seals")), false);
      await slow.settle(settlement(5));
    });
    books.clock.advance(23 * HOUR);
    await books.requests(1);
    for (let times = 0; times < 3; times += 1) {
      books.clock.advance(23 * HOUR);
      await books.serve(async () => undefined);
    }
    const heads = headLines(books.dir).map((line) => JSON.parse(line));
    assert.deepEqual(
      heads.map(({ day, records, segments: list }) => [day, records, list.length]),
      [
        ["2026-03-02", 2, 2],
        ["2026-03-03", 1, 0],
        ["2026-03-04", 2, 1],
        ["2026-03-05", 0, 0],
      ],
    );
    assert.deepEqual((await books.verify()).findings, []);
  });

  it("prove usage records after their segments were deleted", async () => {
    const books = await threeDays(4, { spend: { keep_days: 1 } });
    for (const name of segments(books.dir)) utimesSync(segmentPath(books.dir, name), 1, 1);
    for (let hours = 0; hours < 4; hours += 1) {
      books.clock.advance(23 * HOUR);
      await books.serve(async () => undefined);
    }
    assert.deepEqual(segments(books.dir), []);
    const { ok, months, heads } = await books.verify();
    assert.deepEqual([ok, heads.count], [true, 6]);
    assert.deepEqual(months, [
      {
        file: "usage/2026-03.jsonl",
        records: 24,
        by_head: 24,
        by_log: 0,
        not_proved: 0,
        uncounted_bytes: 0,
      },
    ]);
  });

  it("state records that came late, and those that they replaced", async () => {
    const books = sealedBooks();
    await books.requests(1);
    const [name = ""] = segments(books.dir);
    const path = segmentPath(books.dir, name);
    const whole = readFileSync(path, "utf8");
    // The process is taken for dead before its last line is there.
    writeFileSync(path, `${whole.split("\n").slice(0, 3).join("\n")}\n`);
    writeFileSync(path.replace("jsonl", "open"), "");
    rmSync(join(books.dir, "usage"), { recursive: true });
    await books.serve(async () => undefined);
    books.clock.advance(23 * HOUR);
    await books.requests(1);
    const recovered = readFileSync(path, "utf8");
    assert.match(recovered, /"status":"interrupted"/);
    // It was alive, and settles its request now.
    const chain = createChainWriter(join(books.dir, "spend")).resume(
      path,
      Buffer.byteLength(recovered),
    );
    const { seal: _, ...settle } = JSON.parse(whole.split("\n")[3]!);
    writeFileSync(path, `${recovered}${chain.seal(JSON.stringify(settle))}\n`);
    books.clock.advance(23 * HOUR);
    await books.requests(1);
    const heads = headLines(books.dir).map((line) => JSON.parse(line));
    assert.equal(heads[1].late.length + heads[0].late.length, 1);
    assert.equal(heads[1].replaced.length, 1);
    const { findings, months } = await books.verify();
    assert.deepEqual(findings, []);
    assert.deepEqual([months[0].by_head, months[0].by_log], [4, 2]);
    const sealed = await books.command(
      "billing",
      "statement",
      "--account",
      "beta",
      "--month",
      "2026-03",
      "--sealed",
    );
    assert.equal(JSON.parse(sealed.stdout).late.length, 1);
    const [{ usage_id: id }] = heads.flatMap(({ late }) => late);
    const month = join(books.dir, "usage/2026-03.jsonl");
    writeFileSync(
      month,
      readFileSync(month, "utf8")
        .split("\n")
        .map((line) => (line.includes(id) ? line.replace('"completed"', '"cancelled"') : line))
        .join("\n"),
    );
    const changed = (await books.verify()).findings.join("\n");
    assert.match(changed, new RegExp(`${id} is not as the head of a later day has it`));
  });
});

describe("the proof of one record", () => {
  it("leads from its line to the root in the head of its day, and is null before there is one", async () => {
    const books = await threeDays(20);
    const proofs = createRecordProofs(books.dir);
    const heads = headLines(books.dir);
    let open = 0;
    for (const record of usageRecords(books.dir)) {
      const proof = proofs.ofRecord(record as never);
      if (!proof) {
        open += 1;
        continue;
      }
      const line = heads.find((text) => sha(text).toString("hex") === proof.head)!;
      const leaf = leafOf(JSON.stringify(record));
      assert.equal(proof.leaf, leaf.toString("hex"));
      const known = new Map([[proof.index, leaf]]);
      assert.equal(rootOfProof(proof.records, known, proof.hashes), JSON.parse(line).root);
    }
    assert.equal(open, 40);
  });
});

describe("seal head", () => {
  it("of this moment is found again in the books, and finds them cut", async () => {
    const books = sealedBooks();
    await books.requests(3);
    const { stdout, code } = await books.command("seal", "head");
    assert.equal(code, 0);
    const kept = join(books.dir, "kept.json");
    writeFileSync(kept, stdout);
    assert.deepEqual((await books.verify("--head", kept)).findings, []);
    const [name = ""] = segments(books.dir);
    const path = segmentPath(books.dir, name);
    const text = readFileSync(path, "utf8");
    rmSync(join(books.dir, "usage"), { recursive: true });
    writeFileSync(path, `${text.split("\n").slice(0, 6).join("\n")}\n`);
    assert.deepEqual(
      (await books.verify()).findings,
      [],
      "nothing says that there were more lines",
    );
    const { findings } = await books.verify("--head", kept);
    assert.equal(findings.length, 1);
    assert.match(findings[0]!, new RegExp(`^spend/${name}, line 6: is the last one, .* has 12: `));
  });

  it("of this moment has all segments since the first sealed day, those of heads left out", async () => {
    const books = sealedBooks();
    await books.requests(1);
    const [name = ""] = segments(books.dir);
    utimesSync(segmentPath(books.dir, name), 1, 1);
    const print = async () =>
      JSON.parse((await books.command("seal", "head")).stdout).segments.map(
        (each: { segment: string; lines: number }) => [each.segment, each.lines],
      );
    assert.deepEqual(await print(), [[name, 4]], "its day is long over, and has no head yet");
    books.clock.advance(23 * HOUR);
    await books.requests(2);
    assert.deepEqual(await print(), [[segments(books.dir)[1], 8]]);
  });

  it("of a closed day is the line of the heads' file, and a day that is not over has none", async () => {
    const books = await threeDays();
    const { stdout } = await books.command("seal", "head", "--day", "2026-03-03");
    assert.equal(stdout, `${headLines(books.dir)[1]}\n`);
    const open = await books.command("seal", "head", "--day", "2026-03-04");
    assert.deepEqual([open.code, open.stdout], [1, ""]);
    assert.match(open.stderr, /2026-03-04 has no head/);
    const none = await books.command("seal", "head", "--day", "2026-02-30");
    assert.deepEqual([none.code, none.stdout], [2, ""], "no day of the calendar");
  });
});

describe("seal public-key", () => {
  it("makes the key of sealed books once, and says so", async () => {
    const books = sealedBooks();
    await books.requests(1);
    rmSync(join(books.dir, "keys.seal"), { force: true });
    const made = await books.command("seal", "public-key");
    assert.match(made.stderr, /keys\.seal is made/);
    const again = await books.command("seal", "public-key");
    assert.deepEqual([again.stdout, again.stderr], [made.stdout, ""]);
    const { stdout } = await books.command("seal", "verify");
    assert.match(stdout, /^key: none/);
    const key = join(folder(), "key.pem");
    writeFileSync(key, made.stdout);
    const stated = await books.command("seal", "verify", "--public-key", key);
    assert.match(stated.stdout, /as stated by --public-key; no head is signed with it yet\n/);
  });

  it("makes none where nothing is sealed, or where no gateway has run", async () => {
    const dir = folder();
    const config = (over: object): string => configFile(demo({ data_dir: dir, ...over }));
    const plain = await runHere(["seal", "public-key", "--config", config({})]);
    assert.match(plain.stderr, /does not switch seals on/);
    const gone = { data_dir: join(dir, "nothing"), seals: { enabled: true } };
    const nowhere = await runHere(["seal", "public-key", "--config", config(gone)]);
    assert.match(nowhere.stderr, /there are no books in .*nothing: no gateway has run with it/);
    assert.deepEqual([plain.code, nowhere.code, plain.stdout, nowhere.stdout], [1, 1, "", ""]);
    assert.ok(!existsSync(join(dir, "keys.seal")));
  });
});
