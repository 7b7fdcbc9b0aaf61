// The official openai client for Python, unmodified, against the running gateway. What else it is
// tried with stands in the manual (client-programs.test.ts).

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { demo, startGateway } from "../support/gateway.ts";
import { blocksOf } from "../support/readme.ts";
import * as facts from "./lab.ts";
import { DIALECTS, modelName, noPython, runPython, scriptAt, startLab } from "./lab.ts";

describe("openai for Python", { skip: noPython() }, () => {
  it("replies and errors, with a provider of each format behind the gateway", async (t) => {
    const lab = await startLab(t);
    const { KEY, RESTRICTED_KEY, SPENT_KEY, TEXT } = facts;
    const PREFIXES = DIALECTS.map((behind) => modelName(behind, ""));
    const given = { baseURL: lab.baseURL, KEY, RESTRICTED_KEY, SPENT_KEY, TEXT, PREFIXES };
    const args = [scriptAt("python_client.py"), JSON.stringify(given)];
    const { code, output } = await runPython("the checks of the Python client", args);
    assert.deepEqual([code, output], [0, "ok\n".repeat(DIALECTS.length)]);
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
