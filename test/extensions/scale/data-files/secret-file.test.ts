// Random values that a data_dir keeps for good.

import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  readOrCreateHex,
  secretOf,
} from "../../../../src/extensions/scale/data-files/secret-file.ts";
import { folder } from "../../../support/folder.ts";

describe("readOrCreateHex", () => {
  it("makes the file once, for its owner alone, and returns the same from then on", () => {
    const path = join(folder(), "id");
    const digits = readOrCreateHex(path, 16);
    assert.match(digits, /^[0-9a-f]{32}$/);
    assert.equal(readOrCreateHex(path, 16), digits);
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it("writes what is known if the file was deleted, and reads the file if it is there", () => {
    const path = join(folder(), "id");
    assert.equal(readOrCreateHex(path, 16, "known"), "known");
    assert.equal(readFileSync(path, "utf8"), "known");
    assert.equal(readOrCreateHex(path, 16, "another"), "known");
  });

  it("throws if the folder is missing", () => {
    assert.throws(() => readOrCreateHex(join(folder(), "none", "id"), 16), { code: "ENOENT" });
  });
});

describe("secretOf", () => {
  it("is 32 bytes, the same ones while the file is there", () => {
    const dir = folder();
    const secret = secretOf(dir, assert.fail);
    assert.equal(secret.length, 32);
    assert.deepEqual(secretOf(dir, assert.fail), secret);
    rmSync(join(dir, "fingerprint-secret"));
    assert.notDeepEqual(secretOf(dir, assert.fail), secret);
  });

  it("is a random one if the file holds anything else or cannot be had, and says why", () => {
    const dir = folder();
    const reasons: string[] = [];
    for (const text of ["", "secret", "A".repeat(64)]) {
      writeFileSync(join(dir, "fingerprint-secret"), text);
      assert.equal(secretOf(dir, (reason) => reasons.push(reason)).length, 32);
    }
    assert.deepEqual(reasons, Array(3).fill("fingerprint-secret is not 64 hex digits"));
    assert.equal(secretOf(join(dir, "none"), (reason) => reasons.push(reason)).length, 32);
    assert.match(reasons.at(-1)!, /ENOENT/);
  });
});
