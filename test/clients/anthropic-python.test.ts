// The official anthropic client for Python, unmodified, against the gateway's Messages API. The
// checks themselves are in anthropic_client.py.

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { within } from "../support/wait.ts";
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

const skip = skipUnless(
  spawnSync(PYTHON, ["-c", "import anthropic"]).status === 0,
  `${PYTHON} cannot import anthropic: pip install -r test/clients/requirements.txt, or set CLIENTS_PYTHON`,
);

function run(facts: object): Promise<{ readonly code: unknown; readonly output: string }> {
  const script = fileURLToPath(new URL("anthropic_client.py", import.meta.url));
  const env = { ...process.env, PYTHONIOENCODING: "utf-8", PYTHONDONTWRITEBYTECODE: "1" };
  const running = new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(
      PYTHON,
      [script, JSON.stringify(facts)],
      { env, timeout: 60_000 },
      (error, stdout, stderr) => resolve({ code: error ? error.code : 0, output: stdout + stderr }),
    );
  });
  return within(running, "the Python checks", 70_000);
}

describe("anthropic for Python", { skip }, () => {
  for (const behind of DIALECTS)
    it(`talks, thinks and calls tools, with ${behind} behind the gateway`, async (t) => {
      const { url } = await startLab(t);
      const PREFIX = modelName(behind, "");
      const { code, output } = await run({ url, KEY, TEXT, REASONING, AFTER_CALLS, PREFIX });
      for (const line of output.trim().split("\n")) t.diagnostic(line);
      assert.equal(code, 0, output);
      assert.equal((output.match(/^ok - /gm) ?? []).length, 5, output);
    });
});
