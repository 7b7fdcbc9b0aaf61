// A log of one JSON object a line: what is written when.

import assert from "node:assert/strict";
import { it } from "node:test";
import { createLineLog } from "../../../src/core/http/line-log.ts";

it("a log writes the lines of one turn together, what waits when it is flushed, and nothing twice", async () => {
  const writes: string[] = [];
  const log = createLineLog((lines) => writes.push(lines));
  log.write({ a: 1 });
  log.writeText("text");
  assert.deepEqual(writes, []);
  await new Promise(setImmediate);
  assert.deepEqual(writes, ['{"a":1}\ntext\n']);
  log.writeText("last");
  log.flush();
  await new Promise(setImmediate);
  assert.deepEqual(writes.slice(1), ["last\n"]);
});
