// The official openai client for Python, unmodified, against the running gateway. What else it is
// tried with stands in the manual (client-programs.test.ts).

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { demo, startGateway } from "../support/gateway.ts";
import { blocksOf } from "../support/readme.ts";
import * as facts from "./lab.ts";
import { callsVia, DIALECTS, modelName, noPython, runPython, scriptAt, startLab } from "./lab.ts";

/** By the beginning of its models' names: a provider's calls, as they reach a client. */
const CALLS_BEHIND = Object.fromEntries(
  DIALECTS.map((behind) => [
    modelName(behind, ""),
    { whole: callsVia(behind, false), streamed: callsVia(behind, true) },
  ]),
);

describe("openai for Python", { skip: noPython() }, () => {
  it("replies, calls and errors, with a provider of each format behind the gateway", async (t) => {
    const lab = await startLab(t);
    const { KEY, RESTRICTED_KEY, SPENT_KEY, TEXT, REASONING, AFTER_CALLS } = facts;
    const given = JSON.stringify({
      ...{ baseURL: lab.baseURL, KEY, RESTRICTED_KEY, SPENT_KEY },
      ...{ TEXT, REASONING, AFTER_CALLS, CALLS_BEHIND, PREFIXES: Object.keys(CALLS_BEHIND) },
    });
    const args = [scriptAt("python_client.py"), given];
    const { code, output } = await runPython("the checks of the Python client", args);
    assert.equal(code, 0, output);
    assert.equal((output.match(/^ok - /gm) ?? []).length, 3 * DIALECTS.length);
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
