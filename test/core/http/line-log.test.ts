// A log of one JSON object a line: what is written when.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLineLog } from "../../../src/core/http/line-log.ts";

describe("a line log", () => {
  it("writes the lines of one turn of the event loop together", async () => {
    const writes: string[] = [];
    const log = createLineLog((lines) => writes.push(lines));
    log.write({ a: 1 });
    log.writeText("text");
    assert.deepEqual(writes, []);
    await new Promise(setImmediate);
    assert.deepEqual(writes, ['{"a":1}\ntext\n']);
  });

  it("writes what waits at once when it is flushed, and nothing twice", async () => {
    const writes: string[] = [];
    const log = createLineLog((lines) => writes.push(lines));
    log.writeText("first");
    log.flush();
    assert.deepEqual(writes, ["first\n"]);
    await new Promise(setImmediate);
    assert.deepEqual(writes, ["first\n"]);
  });
});
