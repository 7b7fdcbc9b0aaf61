// Locks between processes: sockets that respond as long as their process lives.

import assert from "node:assert/strict";
import fs, { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";
import {
  acquireSocketLock,
  BusyError,
  isLockHeld,
  withLock,
} from "../../../../src/extensions/scale/data-files/process-lock.ts";
import { systemClock, type Clock } from "../../../../src/core/clock.ts";
import { folder } from "../../../support/folder.ts";

describe("acquireSocketLock", () => {
  it("responds until it is released, and leaves nothing behind", async () => {
    const dir = folder();
    const path = join(dir, "a.sock");
    const release = await acquireSocketLock(path);
    assert.equal(await isLockHeld(path), true);
    release?.();
    assert.equal(await isLockHeld(path), false);
    assert.deepEqual(readdirSync(dir), []);
  });

  it("resolves with undefined if anything has the path, even if nobody holds it", async () => {
    const path = join(folder(), "a.sock");
    writeFileSync(path, "");
    assert.equal(await acquireSocketLock(path), undefined);
    assert.equal(await isLockHeld(path), false);
  });

  it("does not remove what another process has put at its path", async () => {
    const path = join(folder(), "a.sock");
    const first = await acquireSocketLock(path);
    rmSync(path);
    const second = await acquireSocketLock(path);
    first?.();
    assert.equal(await isLockHeld(path), true);
    second?.();
  });

  it("needs no working directory for a path that is short enough", async (t) => {
    t.mock.method(process, "cwd", () => {
      throw new Error("ENOENT: no such file or directory, uv_cwd");
    });
    const release = await acquireSocketLock(join(folder(), "a.sock"));
    assert.ok(release);
    release();
  });

  it("throws a fault of data_dir if no path to the socket is short enough", async () => {
    // The path relative to the working directory is the shorter one: 127 bytes, 24 more than 103.
    const path = resolve("x".repeat(120), "a.sock");
    const acquiring = acquireSocketLock(path);
    await assert.rejects(acquiring, /data_dir: is 24 bytes too long for the sockets in it/);
  });
});

describe("an error says what data_dir needs, of a file system", () => {
  const refusal = (code: string) => (): never => {
    throw Object.assign(new Error(`${code}, link`), { syscall: "link", code });
  };
  for (const [situation, linkSync, words] of [
    ["without hard links, such as FAT", refusal("EPERM"), /^EPERM, link; /],
    ["that does not implement them", refusal("ENOSYS"), /^ENOSYS, link; /],
    ["that does not support them", refusal("ENOTSUP"), /^ENOTSUP, link; /],
    [
      "where a hard link is another file, such as bindfs",
      (_draft: string, path: string) => writeFileSync(path, ""),
      /a\.sock does not answer; /,
    ],
  ] as const)
    it(situation, async (t) => {
      const dir = folder();
      const { mock } = t.mock.method(fs, "linkSync", linkSync);
      syncBuiltinESMExports();
      t.after(() => {
        mock.restore();
        syncBuiltinESMExports();
      });
      await assert.rejects(acquireSocketLock(join(dir, "a.sock")), ({ message }: Error) => {
        assert.match(message, words);
        assert.match(message, /; data_dir needs a file system with Unix sockets and hard links$/);
        return true;
      });
      assert.deepEqual(readdirSync(dir), []);
    });
});

describe("withLock", () => {
  const LOCK = { name: "books" } as const;

  it("leaves no socket if the work fails", async () => {
    const dir = folder();
    const work = () => Promise.reject(new Error("no"));
    await assert.rejects(withLock({ ...LOCK, dir }, work), { message: "no" });
    assert.deepEqual(readdirSync(dir), []);
  });

  it("rejects with a BusyError if another process holds the lock and there is no patience", async () => {
    const dir = folder();
    await withLock({ ...LOCK, dir }, async () => {
      const second = withLock({ ...LOCK, dir, patienceMs: 0 }, async () => "never");
      await assert.rejects(second, BusyError);
    });
  });

  it("pauses longer if an attempt takes long, because two slow processes would collide each time", async (t) => {
    t.mock.method(Math, "random", () => 1);
    const dir = folder();
    const pauses: number[] = [];
    let now = 0;
    const clock: Clock = {
      now: systemClock.now,
      monotonic: () => (now += 500),
      after(ms, listener) {
        pauses.push(ms);
        return systemClock.after(0, listener);
      },
    };
    await withLock({ ...LOCK, dir }, async () => {
      const second = withLock({ ...LOCK, dir, patienceMs: 2_000, clock }, async () => "never");
      await assert.rejects(second, BusyError);
    });
    assert.deepEqual(pauses, [2_020]);
  });

  it("ignores other locks, and removes sockets left by dead processes", async () => {
    const dir = folder();
    writeFileSync(join(dir, "books.dead.sock"), "");
    await withLock({ dir, name: "keys" }, async () => {
      await withLock({ ...LOCK, dir, patienceMs: 0 }, async () => undefined);
    });
    assert.ok(!existsSync(join(dir, "books.dead.sock")));
  });
});
