// The official openai client for Python, unmodified, against the running gateway. The checks
// themselves are in python_client.py; here are the gateways that it talks to, and what only the
// provider and the logs can tell.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import * as facts from "./lab.ts";
import {
  assertLeft,
  callsVia,
  DIALECTS,
  hasLogprobs,
  modelName,
  noPython,
  startFullLab,
  startLab,
  statuses,
  type Behind,
} from "./lab.ts";
import { runPython, type PythonRun } from "./python-script.ts";

/** Runs the script's checks of one group. What it must know of the lab it gets as JSON. */
function run(group: string, baseURL: string, behind: Behind = "openai"): Promise<PythonRun> {
  const script = fileURLToPath(new URL("python_client.py", import.meta.url));
  const {
    KEY,
    RESTRICTED_KEY,
    TEXT,
    REASONING,
    AFTER_CALLS,
    TALKERS,
    BAD_ENDINGS,
    BEFORE_BAD_ENDING,
  } = facts;
  const given = {
    baseURL,
    KEY,
    RESTRICTED_KEY,
    TEXT,
    REASONING,
    AFTER_CALLS,
    TALKERS,
    BAD_ENDINGS,
    BEFORE_BAD_ENDING,
    PREFIX: modelName(behind, ""),
    LOGPROBS: hasLogprobs(behind),
    CALLS: callsVia(behind, false),
    STREAMED_CALLS: callsVia(behind, true),
  };
  return runPython(`the Python checks "${group}"`, [script, group, JSON.stringify(given)]);
}

describe("openai for Python", { skip: noPython() }, () => {
  for (const behind of DIALECTS) {
    it(`replies, with ${behind} behind the gateway`, async (t) => {
      const lab = await startLab(t);
      const { code, output } = await run("replies", lab.baseURL, behind);
      for (const line of output.trim().split("\n")) t.diagnostic(line);
      assert.equal(code, 0, output);
      assert.ok((output.match(/^ok - /gm) ?? []).length >= 12, output);
      await assertLeft(lab, behind);
    });
  }

  it("names, errors and request ids", async (t) => {
    const { code, output } = await run("around", (await startLab(t)).baseURL);
    for (const line of output.trim().split("\n")) t.diagnostic(line);
    assert.equal(code, 0, output);
    assert.ok((output.match(/^ok - /gm) ?? []).length >= 7, output);
  });

  it("comes back after a 429 when the gateway said, under the same id", async (t) => {
    const lab = await startFullLab(t);
    const { code, output } = await run("retry", lab.baseURL);
    assert.equal(code, 0, output);
    assert.deepEqual(await statuses(lab, 3), [200, 429, 200]);
    assert.deepEqual(
      lab.access.slice(1).map((line) => line["request_id"]),
      ["again", "again"],
    );
  });

  it("calls no tool without tool_choice, unless the operator has made auto the default", async (t) => {
    for (const [group, compat] of [
      ["no-tool", {}],
      ["tool", { tool_choice_default: "auto" }],
    ] as const) {
      const { baseURL } = await startLab(t, { compat });
      for (const behind of DIALECTS) {
        const { code, output } = await run(group, baseURL, behind);
        assert.equal(code, 0, output);
      }
    }
  });
});
