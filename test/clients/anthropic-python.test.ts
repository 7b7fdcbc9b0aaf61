// The official anthropic client for Python, unmodified, against the gateway's Messages API. The
// checks themselves are in anthropic_client.py.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import {
  AFTER_CALLS,
  DIALECTS,
  KEY,
  modelName,
  PYTHON,
  REASONING,
  skipUnless,
  startLab,
  TEXT,
} from "./lab.ts";
import { runPython } from "./python-script.ts";

const skip = skipUnless(
  spawnSync(PYTHON, ["-c", "import anthropic"]).status === 0,
  `${PYTHON} cannot import anthropic: pip install -r test/clients/requirements.txt, or set CLIENTS_PYTHON`,
);

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
