// Making data_dir. What check and serve say of one that cannot be made is tried in
// test/extensions/operations/commands/check.test.ts.

import assert from "node:assert/strict";
import fs, { statSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { describe, it } from "node:test";
import { makeDataDir } from "../../../../src/extensions/scale/data-files/index.ts";
import { folder } from "../../../support/folder.ts";

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
