// Files of lines, read in batches of any size.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { readLines, type ReadOptions } from "../../../src/extensions/books/read-lines.ts";
import { folder } from "../../support/folder.ts";

const LINES = ["one", "", "zwei 東京", "4".repeat(50), "five"];
const TEXT = LINES.map((line) => `${line}\n`).join("");

async function read(text: string, options?: ReadOptions) {
  const path = join(folder(), "lines");
  writeFileSync(path, text);
  const lines: string[] = [];
  let end: number | undefined;
  for await (const batch of readLines(path, options)) {
    lines.push(...batch.lines);
    end = batch.end;
  }
  return { lines, end };
}

describe("readLines", () => {
  it("yields every line once, however the bytes are cut", async () => {
    for (let batchBytes = 1; batchBytes < 40; batchBytes += 1)
      assert.deepEqual(await read(TEXT, { batchBytes }), {
        lines: LINES,
        end: Buffer.byteLength(TEXT),
      });
  });

  it("leaves out a last line without its end", async () => {
    assert.deepEqual(await read(`${TEXT}half`), { lines: LINES, end: Buffer.byteLength(TEXT) });
    assert.deepEqual(await read("half"), { lines: [], end: undefined });
  });

  it("reads the bytes that it is asked for", async () => {
    assert.deepEqual(await read(TEXT, { from: 4 }), {
      lines: LINES.slice(1),
      end: Buffer.byteLength(TEXT),
    });
    assert.deepEqual(await read(TEXT, { to: 5 }), { lines: ["one", ""], end: 5 });
    assert.deepEqual(await read(TEXT, { to: 4 }), { lines: ["one"], end: 4 });
    assert.deepEqual(await read(TEXT, { to: 3 }), { lines: [], end: undefined });
    assert.deepEqual(await read(TEXT, { from: 4, to: 4 }), { lines: [], end: undefined });
  });
});
