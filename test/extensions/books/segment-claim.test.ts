// How a process shows that it writes a segment, and what other processes make of it.

import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { isLockHeld } from "../../../src/extensions/data-files/process-lock.ts";
import {
  claimSegment,
  hasWriter,
  type SegmentClaim,
} from "../../../src/extensions/books/spend-log/segment-claim.ts";
import { claimFileOf, socketOf } from "../../../src/extensions/books/spend-log/segment-names.ts";
import { folder } from "../../support/folder.ts";

const NAME = "2026-01-31.0001.jsonl";

async function claimed(t: TestContext, dir = folder()) {
  const path = join(dir, NAME);
  const claim = (await claimSegment(path)) as SegmentClaim;
  t.after(() => claim.release());
  return { path, claim, socket: socketOf(path), file: claimFileOf(path) };
}

function setAge(file: string, seconds: number): void {
  const time = Date.now() / 1_000 - seconds;
  utimesSync(file, time, time);
}

describe("a claim", () => {
  it("is a socket that answers, and a file with the number of its own inode", async (t) => {
    const { path, socket, file } = await claimed(t);
    assert.equal(await isLockHeld(socket), true);
    assert.equal(readFileSync(file, "utf8"), String(statSync(file).ino));
    assert.equal(await hasWriter(path), true);
  });

  it("is given to one process only", async (t) => {
    const { path } = await claimed(t);
    assert.equal(await claimSegment(path), undefined);
  });

  it("that is renewed has nothing made anew, and a file that is young again", async (t) => {
    const { claim, file } = await claimed(t);
    setAge(file, 60);
    assert.equal(await claim.renew(), false);
    assert.ok(Date.now() - statSync(file).mtimeMs < 10_000);
  });

  for (const what of ["socket", "file"] as const) {
    it(`whose ${what} was deleted has it again after it is renewed`, async (t) => {
      const parts = await claimed(t);
      rmSync(parts[what]);
      assert.equal(await parts.claim.renew(), true);
      assert.equal(await isLockHeld(parts.socket), true);
      assert.equal(readFileSync(parts.file, "utf8"), String(statSync(parts.file).ino));
    });
  }

  it("whose socket another process has taken cannot be restored", async (t) => {
    const { claim, path, socket } = await claimed(t);
    rmSync(socket);
    const other = (await claimSegment(path)) as SegmentClaim;
    t.after(() => other.release());
    assert.equal(await claim.restore(), false);
    assert.equal(await claim.renew(), true);
    assert.equal(await claim.renew(), false, "it is reported once");
  });

  it("that is abandoned or removed leaves an empty file or none", async (t) => {
    const { claim, file } = await claimed(t);
    claim.abandon();
    assert.equal(readFileSync(file, "utf8"), "");
    claim.removeFile();
    assert.ok(!existsSync(file));
    claim.abandon();
    assert.ok(!existsSync(file), "nothing is made that was gone");
  });
});

describe("hasWriter", () => {
  it("believes a young claim file if the socket was deleted, for 15 s", async (t) => {
    const { path, socket, file } = await claimed(t);
    rmSync(socket);
    assert.equal(await hasWriter(path), true);
    setAge(file, 14);
    assert.equal(await hasWriter(path), true);
    setAge(file, 16);
    assert.equal(await hasWriter(path), false);
  });

  it("does not believe the copy of a claim file", async (t) => {
    const { file } = await claimed(t);
    const copy = join(folder(), NAME);
    cpSync(file, claimFileOf(copy));
    assert.equal(await hasWriter(copy), false);
  });

  it("does not believe a claim file beside a socket that nobody answers", async (t) => {
    const { path, claim, socket, file } = await claimed(t);
    const content = readFileSync(file);
    claim.release();
    cpSync(file, socket);
    assert.ok(content.length > 0);
    assert.equal(await hasWriter(path), false);
  });
});
