// The Responses API with clients for Python, unmodified: the official openai client with its
// helpers, and openai-agents in its default setup. The checks are in python_responses.py.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { callsVia, DIALECTS, modelName, noModule, startLab, type Behind } from "./lab.ts";
import * as facts from "./lab.ts";
import { runPython, type PythonRun } from "./python-script.ts";
import { demo, startGateway } from "../support/gateway.ts";
import { blocksOf } from "../support/readme.ts";

const noAgents = () => noModule("agents");

function run(baseURL: string, behind: Behind): Promise<PythonRun> {
  const script = fileURLToPath(new URL("python_responses.py", import.meta.url));
  const { KEY, TEXT, REASONING, AFTER_CALLS } = facts;
  const PREFIX = modelName(behind, "");
  const CALLS = callsVia(behind, false);
  const given = { baseURL, KEY, TEXT, REASONING, AFTER_CALLS, PREFIX, CALLS };
  return runPython("the Python checks", [script, JSON.stringify(given)]);
}

describe("Python, Responses API", { skip: noAgents() }, () => {
  for (const behind of DIALECTS)
    it(`openai and openai-agents, with ${behind} behind the gateway`, async (t) => {
      const { baseURL } = await startLab(t);
      const { code, output } = await run(baseURL, behind);
      for (const line of output.trim().split("\n")) t.diagnostic(line);
      assert.equal(code, 0, output);
      assert.equal((output.match(/^ok - /gm) ?? []).length, 5, output);
    });

  it("the manual's program prints a reply and its tokens", async (t) => {
    const [program = ""] = blocksOf("python", "responses");
    assert.ok(program.includes("http://127.0.0.1:8080"));
    const { url } = await startGateway(t, demo());
    const args = ["-c", program.replace("http://127.0.0.1:8080", url)];
    const { code, output } = await runPython("the manual's program", args);
    assert.equal(code, 0, output);
    assert.match(output, /^You said: “What is 6 times 7\?”[\s\S]*\n\d+\n$/);
  });
});
