// Random values that a data_dir keeps for good.

import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  fingerprintSecretOf,
  readOrCreateHex,
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

describe("fingerprintSecretOf", () => {
  it("returns 64 hex digits, and others once the file is gone", () => {
    const dir = folder();
    const secret = fingerprintSecretOf(dir);
    assert.match(secret, /^[0-9a-f]{64}$/);
    rmSync(join(dir, "fingerprint-secret"));
    assert.notEqual(fingerprintSecretOf(dir), secret);
  });

  it("throws if the file holds anything else, without repeating it", () => {
    const dir = folder();
    for (const text of ["", "secret", "A".repeat(64)]) {
      writeFileSync(join(dir, "fingerprint-secret"), text);
      assert.throws(() => fingerprintSecretOf(dir), {
        message: "fingerprint-secret is not 64 hex digits",
      });
    }
  });
});
