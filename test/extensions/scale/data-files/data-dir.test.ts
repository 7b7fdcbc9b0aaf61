// A data_dir: its folders, its permanent ids and random values, and its files, which are created
// and replaced atomically. test/extensions/operations/commands/check.test.ts tests what check and
// serve say if it cannot be created.

import assert from "node:assert/strict";
import fs, { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import {
  gatewayInstanceId,
  makeDataDir,
  dataDirFingerprint,
} from "../../../../src/extensions/scale/data-files/index.ts";
import {
  moveUnlessTaken,
  replaceFile,
  syncToDisk,
} from "../../../../src/extensions/scale/data-files/replace-file.ts";
import {
  readOrCreateHex,
  installationSecret,
} from "../../../../src/extensions/scale/data-files/secret-file.ts";
import { folder } from "../../../support/folder.ts";

it("dataDirFingerprint distinguishes a data_dir from a copy with the same gateway-id", () => {
  const dir = folder();
  const copy = join(folder(), "copy");
  const place = dataDirFingerprint(dir);
  cpSync(dir, copy, { recursive: true });
  assert.equal(dataDirFingerprint(dir), place);
  assert.equal(gatewayInstanceId(copy), gatewayInstanceId(dir));
  assert.notEqual(dataDirFingerprint(copy), place);
});

const spendIn = (dataDir: string) => statSync(join(dataDir, "spend"));

describe("makeDataDir", () => {
  it("creates missing folders for this user alone, and does nothing if none is missing", () => {
    const dataDir = join(folder(), "above", "data");
    for (let time = 0; time < 2; time += 1) {
      makeDataDir(dataDir);
      assert.equal(spendIn(dataDir).mode & 0o777, 0o700);
    }
  });

  it("continues if another process creates each folder at the same moment", (t) => {
    const dataDir = join(folder(), "above", "data");
    const { mkdirSync } = fs;
    const made: string[] = [];
    const mocked = t.mock.method(fs, "mkdirSync", (path: string) => {
      made.push(path);
      mkdirSync(path); // the other process
      return mkdirSync(path);
    });
    syncBuiltinESMExports();
    t.after(() => {
      mocked.mock.restore();
      syncBuiltinESMExports();
    });
    makeDataDir(dataDir);
    assert.ok(spendIn(dataDir).isDirectory());
    assert.equal(made.length, 3);
  });
});

it("readOrCreateHex creates the digits once, and throws if the file has other content or is unreadable", () => {
  const path = join(folder(), "id");
  const digits = readOrCreateHex(path, 16);
  assert.equal(readFileSync(path, "utf8"), digits);
  assert.equal(readOrCreateHex(path, 16), digits);
  for (const text of ["", digits.slice(1), `${digits}\n`, digits.replace(/./, "A")]) {
    writeFileSync(path, text);
    assert.throws(() => readOrCreateHex(path, 16), /id is not 32 hexadecimal digits: restore it/);
  }
  const dir = folder();
  assert.throws(() => readOrCreateHex(dir, 16), { message: `${dir} cannot be read: EISDIR` });
});

it("installationSecret is random if its file is invalid or unavailable, and says why", () => {
  const dir = folder();
  const reasons: string[] = [];
  for (const text of ["", "secret", "A".repeat(64)]) {
    writeFileSync(join(dir, "fingerprint-secret"), text);
    assert.equal(installationSecret(dir, (reason) => reasons.push(reason)).length, 32);
  }
  const reason = "fingerprint-secret is not 64 hexadecimal digits: restore it from a backup";
  assert.deepEqual(reasons, Array(3).fill(join(dir, reason)));
  const made = installationSecret(join(dir, "none"), (reason) => reasons.push(reason)).length;
  assert.equal(made, 32);
  assert.match(reasons.at(-1)!, /ENOENT/);
});

describe("replaceFile", () => {
  it("leaves no draft if it fails", async () => {
    const path = join(folder(), "file");
    async function* broken(): AsyncGenerator<string> {
      yield "one";
      throw new Error("no more");
    }
    await assert.rejects(replaceFile(path, broken()), /no more/);
    assert.deepEqual(readdirSync(dirname(path)), []);
  });

  it("creates or replaces a file that only its owner may read, and leaves no draft", async () => {
    const dir = folder();
    const path = join(dir, "a.json");
    await replaceFile(path, "one");
    await replaceFile(path, "two");
    assert.equal(readFileSync(path, "utf8"), "two");
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(dir), ["a.json"]);
  });
});

it("syncToDisk names the file that cannot be synced", async () => {
  await assert.rejects(syncToDisk("/dev/null"), { message: /, fsync \/dev\/null$/ });
});

it("moveUnlessTaken never replaces a file, and removes the draft", () => {
  const dir = folder();
  writeFileSync(join(dir, "name"), "old");
  writeFileSync(join(dir, "draft"), "new");
  assert.equal(moveUnlessTaken(join(dir, "draft"), join(dir, "name")), false);
  assert.equal(readFileSync(join(dir, "name"), "utf8"), "old");
  assert.deepEqual(readdirSync(dir), ["name"]);
});
