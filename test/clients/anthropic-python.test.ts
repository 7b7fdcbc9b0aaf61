// The official anthropic client for Python, unmodified, against the gateway's Messages API. The
// checks themselves are in anthropic_client.py.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import {
  AFTER_CALLS,
  DIALECTS,
  KEY,
  modelName,
  noModule,
  REASONING,
  startLab,
  TEXT,
} from "./lab.ts";
import { runPython } from "./python-script.ts";

const skip = noModule("anthropic");

const script = fileURLToPath(new URL("anthropic_client.py", import.meta.url));

describe("anthropic for Python", { skip }, () => {
  for (const behind of DIALECTS)
    it(`talks, thinks and calls tools, with ${behind} behind the gateway`, async (t) => {
      const { url } = await startLab(t);
      const PREFIX = modelName(behind, "");
      const { code, output } = await runPython("the Python checks", [
        script,
        JSON.stringify({ url, KEY, TEXT, REASONING, AFTER_CALLS, PREFIX }),
      ]);
      for (const line of output.trim().split("\n")) t.diagnostic(line);
      assert.equal(code, 0, output);
      assert.equal((output.match(/^ok - /gm) ?? []).length, 5, output);
    });
});
