// JSON files: what stands in them, and errors that say where the fault is without quoting the file.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { readJson, textIn } from "../../src/config/json-file.ts";
import { ValidationError } from "../../src/core/schema/checker.ts";
import { folder } from "../support/folder.ts";

function messageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof ValidationError);
    return error.message;
  }
  return assert.fail("nothing was thrown");
}

describe("readJson", () => {
  it("returns what stands in the file, with or without a byte order mark", () => {
    const path = join(folder(), "a.json");
    for (const mark of ["", "\ufeff"]) {
      writeFileSync(path, `${mark}{"a":[1]}`);
      assert.deepEqual(readJson(path, null, []), { a: [1] });
    }
  });

  it("returns the stated value if the file is absent, and throws for every other error", () => {
    const dir = folder();
    const path = join(dir, "none.json");
    assert.equal(readJson(path, "absent", ["ENOENT"]), "absent");
    assert.match(
      messageOf(() => readJson(path, "absent", [])),
      /cannot read .*none\.json: ENOENT/,
    );
    mkdirSync(path);
    assert.match(
      messageOf(() => readJson(path, "absent", ["ENOENT"])),
      /EISDIR/,
    );
  });
});

it("textIn removes a byte order mark at the beginning only", () => {
  assert.equal(textIn(Buffer.from("\ufeffa\ufeff")), "a\ufeff");
});
