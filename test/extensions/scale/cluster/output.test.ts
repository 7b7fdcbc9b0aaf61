// The lines of a worker's output, as the first process reads them.

import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { MAX_LINE, readLines } from "../../../../src/extensions/scale/cluster/output.ts";
import { within } from "../../../support/wait.ts";

async function linesOf(...pieces: readonly (string | Buffer)[]): Promise<string[]> {
  const output = new PassThrough();
  const found: string[] = [];
  readLines(output, (line) => found.push(line));
  for (const piece of pieces) output.write(piece);
  output.end();
  await within(once(output, "end"), "the end of the output");
  return found;
}

describe("the output of a worker", () => {
  it("is cut at line ends only: what JSON may hold ends no line", async () => {
    const record = JSON.stringify({ detail: "one\u2028two\u2029three\rfour\u0085five" });
    assert.deepEqual(await linesOf(`${record}\n${record}\n`), [record, record]);
  });

  it("is the same however its bytes come", async () => {
    const bytes = Buffer.from("é\u2028\n\nlast");
    const single = Array.from(bytes, (byte) => Buffer.from([byte]));
    assert.deepEqual(await linesOf(...single), ["é\u2028", "last"]);
  });

  it("keeps no more of a line without an end than its bound", async () => {
    const most = "x".repeat(MAX_LINE);
    assert.deepEqual(await linesOf(most, "\n"), [most]);
    assert.deepEqual(await linesOf(`${most}x`, "rest\n"), [`${most}x`, "rest"]);
  });
});
