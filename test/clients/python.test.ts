// The official openai client for Python, unmodified, against the running gateway. The checks themselves are in
// python_client.py; here are the gateways that it talks to, and what only the provider and the logs can tell.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { within } from "../support/wait.ts";
import * as facts from "./lab.ts";
import { assertLeft, noPython, PYTHON, startFullLab, startLab, statuses } from "./lab.ts";

interface Run {
  readonly code: number | string | null | undefined;
  readonly output: string;
}

/** Runs the script's checks of one group. What it must know of the lab it gets as JSON. */
function run(group: string, baseURL: string): Promise<Run> {
  const script = fileURLToPath(new URL("python_client.py", import.meta.url));
  const { KEY, RESTRICTED_KEY, TEXT, REASONING, CALLS, AFTER_CALLS, TALKERS, BAD_ENDINGS, BEFORE_BAD_ENDING } = facts;
  const given = { baseURL, KEY, RESTRICTED_KEY, TEXT, REASONING, CALLS, AFTER_CALLS, TALKERS, BAD_ENDINGS, BEFORE_BAD_ENDING };
  const env = { ...process.env, PYTHONIOENCODING: "utf-8", PYTHONDONTWRITEBYTECODE: "1" };
  const running = new Promise<Run>((resolve) => {
    execFile(PYTHON, [script, group, JSON.stringify(given)], { env, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, output: stdout + stderr }),
    );
  });
  return within(running, `the Python checks "${group}"`, 70_000);
}

describe("openai for Python", { skip: noPython() }, () => {
  it("everything but the limit", async (t) => {
    const lab = await startLab(t);
    const { code, output } = await run("all", lab.baseURL);
    for (const line of output.trim().split("\n")) t.diagnostic(line);
    assert.equal(code, 0, output);
    assert.ok((output.match(/^ok - /gm) ?? []).length >= 15, output);
    await assertLeft(lab);
  });

  it("comes back after a 429 when the gateway said, under the same id", async (t) => {
    const lab = await startFullLab(t);
    const { code, output } = await run("retry", lab.baseURL);
    assert.equal(code, 0, output);
    assert.deepEqual(await statuses(lab, 3), [200, 429, 200]);
    assert.deepEqual(lab.access.slice(1).map((line) => line["request_id"]), ["again", "again"]);
  });

  it("calls no tool without tool_choice, unless the operator has made auto the default", async (t) => {
    for (const [group, compat] of [["no-tool", {}], ["tool", { tool_choice_default: "auto" }]] as const) {
      const { code, output } = await run(group, (await startLab(t, { compat })).baseURL);
      assert.equal(code, 0, output);
    }
  });
});
