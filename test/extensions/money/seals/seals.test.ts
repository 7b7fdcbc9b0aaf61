// The key, heads kept elsewhere, and what `seal verify` proves with them.

import assert from "node:assert/strict";
import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { createSigner, isSignedBy } from "../../../../src/extensions/money/seals/sign.ts";
import { lineOf } from "../../../../src/extensions/money/usage/index.ts";
import { folder } from "../../../support/folder.ts";
import { request, type Scene } from "../../../support/written-books.ts";
import { runHere } from "../../../support/run-here.ts";
import {
  A,
  B,
  C,
  command,
  copyOf,
  E,
  edit,
  findingsIn,
  publicKeyOf,
  retire,
  textOfFile,
  threeDays,
} from "../../../support/sealed-books.ts";
import { outputOf } from "../../../support/command.ts";

const OPEN = "usage/2026-02-02.jsonl";
const NOON = "2026-02-02T12:05:00.000Z";

let scene: Scene;
/** A head from the moment when the first two days were closed. */
let head: string;
let later: Scene;
before(async () => {
  scene = await threeDays();
  const { books } = scene;
  head = await lineOf(books, await books.store.cursor());
  const dir = copyOf(scene.dir);
  later = scene.other({ dir });
  later.write(E, ...request(48, NOON));
  later.write("2026-02-02.0001.jsonl", request(99, "2026-02-02T12:01:39.000Z")[1]);
  await later.passUntil("2026-02-03T12:01:00.000Z");
  assert.equal(later.closed().length, 3);
});

const lines = (dir: string): string[] => textOfFile(dir, "days.jsonl").split("\n").slice(0, -1);

/** `seal verify` of a folder with the kept heads. */
async function verify(dir: string, kept: string, ...args: string[]) {
  const outside = folder();
  writeFileSync(join(outside, "head"), kept);
  writeFileSync(join(outside, "key"), (await command(dir, ["seal", "public-key"])).stdout);
  const files = ["--public-key", join(outside, "key"), "--head", join(outside, "head")];
  return await runHere(["seal", "verify", dir, ...files, ...args]);
}

describe("the key", () => {
  it("is created once, readable by its owner only, and signs", () => {
    const dir = folder();
    const signer = createSigner(dir);
    const text = signer.sign('{"a":1}');
    assert.match(text, /^\{"a":1,"signature":"[0-9a-f]{128}"\}$/);
    assert.equal(statSync(join(dir, "keys.seal")).mode & 0o777, 0o600);
    assert.equal(createSigner(dir).publicHex, signer.publicHex);
    assert.ok(isSignedBy(text, signer.publicHex));
    assert.ok(!isSignedBy(text.replace("1", "2"), signer.publicHex));
    assert.ok(!isSignedBy(text, createSigner(folder()).publicHex));
    assert.ok(!isSignedBy('{"a":1}', signer.publicHex));
  });

  it("is printed in PEM and in hexadecimal digits", async () => {
    const dir = copyOf(scene.dir);
    const inPem = (await command(dir, ["seal", "public-key"])).stdout;
    assert.match(inPem, /^-----BEGIN PUBLIC KEY-----\n/);
    const { stdout } = await command(dir, ["seal", "public-key", "--json"]);
    assert.deepEqual(JSON.parse(stdout), { public_key: publicKeyOf(scene.dir) });
  });

  it("is not created without seals or books", async () => {
    const dir = folder();
    const off = { seals: { enabled: false } };
    const unsealed = (await command(dir, ["seal", "public-key"], off)).stderr;
    assert.match(unsealed, /does not switch seals on/);
    const none = await command(join(dir, "none"), ["seal", "public-key"]);
    assert.match(none.stderr, /there are no books in /);
    assert.match((await command(dir, ["seal", "public-key"])).stderr, /keys.seal is made/);
  });
});

describe("seal head", () => {
  it("prints a signed line of this moment that continues the last day", async () => {
    const dir = copyOf(scene.dir);
    const stdout = outputOf(await command(dir, ["seal", "head"]));
    assert.ok(isSignedBy(stdout.trim(), publicKeyOf(dir)));
    const { number, records, segments } = JSON.parse(stdout);
    assert.deepEqual([number, records, segments.length], [3, 13, 2]);
    const verified = await verify(dir, stdout);
    assert.equal(verified.code, 0, verified.stdout);
    edit(dir, OPEN, (texts) => texts.map((text) => text.replace('"m"', '"n"')));
    assert.equal((await verify(dir, stdout)).code, 1);
  });
});

describe("seal verify with kept heads", () => {
  it("accepts a head whose day ended while it was made", async () => {
    const { books, clock } = scene.other({
      dir: copyOf(scene.dir),
      now: "2026-02-02T23:59:59.999Z",
    });
    async function* slowly(day: string) {
      clock.advance(1);
      yield* books.store.linesOf(day);
    }
    const slow = { ...books, store: { ...books.store, linesOf: slowly } };
    const made = await lineOf(slow, await books.store.cursor());
    assert.deepEqual(await findingsIn(scene.dir, { keptLines: [made] }), []);
  });

  it("finds nothing in books that continued since", async () => {
    assert.deepEqual(await findingsIn(scene.dir, { keptLines: [head] }), []);
    assert.deepEqual(await findingsIn(later.dir, { keptLines: [head, ...lines(scene.dir)] }), []);
    const retired = copyOf(later.dir);
    retire(retired, [A, B, C]);
    assert.deepEqual(await findingsIn(retired, { keptLines: [head] }), []);
  });

  it("finds a log of an open day that was changed together with its records", async () => {
    const dir = copyOf(scene.dir);
    edit(dir, `spend/${E}`, (texts) =>
      texts.map((text) => text.replace('"stream":false', '"stream":true ')),
    );
    assert.equal((await command(dir, ["books", "rebuild"])).code, 0);
    assert.deepEqual(await findingsIn(dir), [], "the files alone show no fault");
    const found = await findingsIn(dir, { keptLines: [head] });
    assert.ok(found[0]?.startsWith(`spend/${E}, lines 1 to 14: are not the bytes that the head`));
    assert.match(found[1]!, /^the usage records after 2026-02-01: are not those of the head that/);
  });

  it("finds days that were cut off or recreated, and names the line", async () => {
    const cut = copyOf(later.dir);
    edit(cut, "days.jsonl", (texts) => texts.slice(0, 2));
    const found = await findingsIn(cut, { keptLines: lines(later.dir) });
    assert.ok(found.includes("days.jsonl, line 3: is gone: a head that was kept has it"));
    const anew = copyOf(later.dir);
    edit(anew, "days.jsonl", (texts) => {
      const line = JSON.parse(texts[2]!);
      const { signature: _signature, ...body } = { ...line, made_at: "2026-02-03T18:00:00.000Z" };
      return [...texts.slice(0, 2), createSigner(anew).sign(JSON.stringify(body))];
    });
    assert.deepEqual(await findingsIn(anew), [], "the files alone show no fault");
    assert.deepEqual(await findingsIn(anew, { keptLines: lines(later.dir) }), [
      "days.jsonl, line 3: is another one: a head that was kept has it",
    ]);
  });

  it("finds heads that were changed", async () => {
    const changed = head.replace('"records":13', '"records":12');
    const finding = (await findingsIn(scene.dir, { keptLines: [changed] }))[0]!;
    assert.match(finding, /changed, or signed by/);
  });

  it("finds lines without a signature, or signed with another key", async () => {
    const unsigned = copyOf(scene.dir);
    edit(unsigned, "days.jsonl", ([first, last]) => [
      first!,
      last!.replace(/,"public_key".*\}$/, "}"),
    ]);
    assert.deepEqual(await findingsIn(unsigned), [
      "days.jsonl, line 2: is not signed, and the line before is",
      "days.jsonl, line 2: is not signed, and no line after it is",
    ]);
    const other = await findingsIn(scene.dir, { publicKey: createSigner(folder()).publicHex });
    assert.deepEqual(
      other,
      [1, 2].map(
        (line) =>
          `days.jsonl, line ${line}: its signature is wrong: it was changed, or signed by another key`,
      ),
    );
  });

  it("accepts a log with the lines of days among others", async () => {
    const log = [
      { event: "day_closed", level: "info", day: "2026-02-01", line: lines(scene.dir)[1] },
      { event: "other" },
    ];
    const text = log.map((line) => `${JSON.stringify(line)}\n`).join("");
    // As in journald and container logs, between other lines.
    const noise =
      'chat-gateway listens on http://h\n{"request_id":"segments","path":"day_closed"}\n';
    for (const kept of [text, noise + text.replaceAll(/^/gm, "Feb 02 00:00:12 host gw[7]: ")])
      assert.equal((await verify(scene.dir, kept)).code, 0);
    const wrong = text.replace('\\"records\\":8', '\\"records\\":9');
    assert.equal((await verify(scene.dir, wrong)).code, 1);
    assert.match((await verify(scene.dir, '{"event":"other"}\n')).stderr, /holds no head/);
    for (const damaged of [head.slice(0, 600), head.replace('"root"', '"toor"')]) {
      const { code, stdout } = await verify(scene.dir, `${text}${damaged}\n`);
      assert.deepEqual([code, /is not a closed day's line/.test(stdout)], [1, true]);
    }
  });
});

describe("seal verify", () => {
  it("prints what is proved, for people and for programs", async () => {
    const stdout = outputOf(await verify(scene.dir, head));
    for (const expected of [
      /^key: [0-9a-f]{64}, as stated by --public-key\ndays.jsonl: 2 closed days, from 2026-01-31 to 2026-02-01\n/,
      /\n {2}spend\/2026-01-31.0002.jsonl +14 +14 +line 2 of days.jsonl +0\n/,
      /\n {2}spend\/2026-02-02.0002.jsonl +14 +14 +the head that was kept/,
      /\n {2}2026-01-31 +13 +true +13\n/,
      /\nnothing was changed\n$/,
    ])
      assert.match(stdout, expected);
    const json = JSON.parse((await verify(scene.dir, head, "--json")).stdout);
    assert.deepEqual([json.ok, json.key_stated, json.heads.count], [true, true, 2]);
    assert.deepEqual(json.days[0], { day: "2026-01-31", records: 13, by_line: true, by_log: 13 });
  });

  it("names deleted segments, and what waits to be copied", async () => {
    const dir = copyOf(scene.dir);
    assert.equal((await command(dir, ["seal", "verify"])).code, 0);
    retire(dir, [A, B, C]);
    assert.equal((await command(dir, ["seal", "verify"])).code, 1, "too recent to be deleted");
    scene.other({ dir }).write(E, ...request(60, NOON));
    const { stdout } = await runHere(["seal", "verify", dir]);
    assert.match(stdout, /\n {2}spend\/2026-01-31.0001.jsonl +16 +gone +line 1 of days.jsonl/);
    assert.match(stdout, /\nrequests not yet in the usage records: 1\nnothing was changed\n$/);
  });

  it("says that a folder has no books, and that nothing is proved", async () => {
    const { code, stderr } = await runHere(["seal", "verify", folder()]);
    assert.equal(code, 1);
    assert.match(stderr, /holds no books: it has none of spend, usage, days.jsonl/);
    assert.equal((await runHere(["seal", "verify", join(scene.dir, "spend", A)])).code, 2);
    const fresh = copyOf(scene.dir);
    for (const name of ["usage", "days.jsonl"]) rmSync(join(fresh, name), { recursive: true });
    const nothing = await runHere(["seal", "verify", fresh]);
    assert.equal(nothing.code, 1);
    assert.match(nothing.stdout, /\ndays.jsonl: no day was closed\n/);
    assert.match(nothing.stdout, /\nnothing is proved: no day is closed\n$/);
  });
});
