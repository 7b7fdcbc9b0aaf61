// The official clients for Python, unmodified, against the running gateway. The checks themselves
// are in the scripts.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { demo, startGateway } from "../support/gateway.ts";
import { blocksOf } from "../support/readme.ts";
import * as facts from "./lab.ts";

/** By the beginning of its models' names: a provider's calls, as they reach a client. */
const CALLS_BEHIND = Object.fromEntries(
  facts.DIALECTS.map((behind) => [
    facts.modelName(behind, ""),
    { whole: facts.callsVia(behind, false), streamed: facts.callsVia(behind, true) },
  ]),
);

/**
 * Runs so many checks of a script, each with a provider of each format behind the gateway; none may
 * fail. What the script must know of the lab it gets as JSON.
 */
async function check(t: TestContext, script: string, count: number) {
  const lab = await facts.startLab(t);
  const { KEY, RESTRICTED_KEY, SPENT_KEY, TEXT, REASONING, AFTER_CALLS, CALLS } = facts;
  const { OPENING, BAD_ENDINGS, BEFORE_BAD_ENDING } = facts;
  const given = JSON.stringify({
    ...{ url: lab.url, baseURL: lab.baseURL, KEY, RESTRICTED_KEY, SPENT_KEY },
    ...{ TEXT, REASONING, AFTER_CALLS, CALLS, CALLS_BEHIND, PREFIXES: Object.keys(CALLS_BEHIND) },
    ...{ OPENING, BAD_ENDINGS, BEFORE_BAD_ENDING },
  });
  const { code, output } = await facts.runPython(script, [facts.scriptAt(script), given]);
  for (const line of output.trim().split("\n")) t.diagnostic(line);
  assert.equal(code, 0, output);
  assert.equal((output.match(/^ok - /gm) ?? []).length, count * facts.DIALECTS.length);
}

describe("openai for Python", { skip: facts.noPython() }, () => {
  it("chat completions and Responses", async (t) => {
    await check(t, "python_client.py", 8);
  });

  it("the manual's program prints a reply and its tokens", async (t) => {
    const [program = ""] = blocksOf("python", "responses");
    assert.ok(program.includes("http://127.0.0.1:8080"));
    const { url } = await startGateway(t, demo());
    const args = ["-c", program.replace("http://127.0.0.1:8080", url)];
    const { code, output } = await facts.runPython("the manual's program", args);
    assert.equal(code, 0, output);
    assert.match(output, /^You said: “What is 6 times 7\?”[\s\S]*\n\d+\n$/);
  });
});

it("anthropic for Python talks, thinks and calls tools", {
  skip: facts.noModule("anthropic"),
}, async (t) => {
  await check(t, "anthropic_client.py", 3);
});
