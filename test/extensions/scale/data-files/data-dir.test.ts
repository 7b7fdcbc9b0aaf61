// A data_dir: its folders, the ids and random values that it keeps for good, and its files, which
// appear or change as a whole. What check and serve say of one that cannot be made is tried in
// test/extensions/operations/commands/check.test.ts.

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

it("dataDirFingerprint tells a data_dir from a copy with the same gateway-id", () => {
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
  it("makes the folders that are missing, for this user alone, and is done where none is", () => {
    const dataDir = join(folder(), "above", "data");
    for (let time = 0; time < 2; time += 1) {
      makeDataDir(dataDir);
      assert.equal(spendIn(dataDir).mode & 0o777, 0o700);
    }
  });

  it("goes on where another process makes each of the folders at that moment", (t) => {
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

it("readOrCreateHex makes the digits once, and throws if the file holds anything else or cannot be read", () => {
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

it("installationSecret is a random one if the file holds anything else or cannot be had, and says why", () => {
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
  it("leaves no draft where it fails", async () => {
    const path = join(folder(), "file");
    async function* broken(): AsyncGenerator<string> {
      yield "one";
      throw new Error("no more");
    }
    await assert.rejects(replaceFile(path, broken()), /no more/);
    assert.deepEqual(readdirSync(dirname(path)), []);
  });

  it("makes or replaces a file that only its owner may read, and leaves no draft", async () => {
    const dir = folder();
    const path = join(dir, "a.json");
    await replaceFile(path, "one");
    await replaceFile(path, "two");
    assert.equal(readFileSync(path, "utf8"), "two");
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(dir), ["a.json"]);
  });
});

it("syncToDisk names the file that cannot be flushed", async () => {
  await assert.rejects(syncToDisk("/dev/null"), { message: /, fsync \/dev\/null$/ });
});

it("moveUnlessTaken replaces nothing that has the name, and removes the draft", () => {
  const dir = folder();
  writeFileSync(join(dir, "name"), "old");
  writeFileSync(join(dir, "draft"), "new");
  assert.equal(moveUnlessTaken(join(dir, "draft"), join(dir, "name")), false);
  assert.equal(readFileSync(join(dir, "name"), "utf8"), "old");
  assert.deepEqual(readdirSync(dir), ["name"]);
});
