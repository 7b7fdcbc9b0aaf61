// Files that appear or change as a whole.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import {
  moveUnlessTaken,
  replaceFile,
  syncToDisk,
} from "../../../../src/extensions/scale/data-files/replace-file.ts";
import { folder } from "../../../support/folder.ts";

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

describe("moveUnlessTaken", () => {
  it("replaces nothing that has the name, and removes the draft", () => {
    const dir = folder();
    writeFileSync(join(dir, "name"), "old");
    writeFileSync(join(dir, "draft"), "new");
    assert.equal(moveUnlessTaken(join(dir, "draft"), join(dir, "name")), false);
    assert.equal(readFileSync(join(dir, "name"), "utf8"), "old");
    assert.deepEqual(readdirSync(dir), ["name"]);
  });
});
