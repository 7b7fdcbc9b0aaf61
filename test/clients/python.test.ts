// The official clients for Python, unmodified, against the running gateway: openai for chat
// completions and Responses, openai-agents, and anthropic. The checks themselves are in the scripts;
// here are the gateways that they talk to, and what only the provider and the logs can tell.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { demo, startGateway } from "../support/gateway.ts";
import { blocksOf } from "../support/readme.ts";
import * as facts from "./lab.ts";
import {
  assertLeft,
  callsVia,
  DIALECTS,
  hasLogprobs,
  modelName,
  noModule,
  noPython,
  startFullLab,
  startLab,
  statuses,
  type Behind,
  type Lab,
} from "./lab.ts";
import { runPython, scriptAt } from "./python-script.ts";

/**
 * Runs a script's checks, which must be so many at least, and none fail. What it must know of the
 * lab it gets as JSON.
 */
async function check(t: TestContext, script: readonly string[], lab: Lab, given: object) {
  const [name = "", ...args] = script;
  const { KEY, RESTRICTED_KEY, TEXT, REASONING, AFTER_CALLS, CALLS } = facts;
  const said = { KEY, RESTRICTED_KEY, TEXT, REASONING, AFTER_CALLS, CALLS };
  const { TALKERS, BAD_ENDINGS, BEFORE_BAD_ENDING } = facts;
  const models = { TALKERS, BAD_ENDINGS, BEFORE_BAD_ENDING };
  const { url, baseURL } = lab;
  const all = JSON.stringify({ url, baseURL, ...said, ...models, ...given });
  const { code, output } = await runPython(script.join(" "), [scriptAt(name), ...args, all]);
  for (const line of output.trim().split("\n")) t.diagnostic(line);
  assert.equal(code, 0, output);
  return (output.match(/^ok - /gm) ?? []).length;
}

/** What the checks of chat completions must know of the provider behind the gateway. */
const factsOf = (behind: Behind) => ({
  PREFIX: modelName(behind, ""),
  LOGPROBS: hasLogprobs(behind),
  CALLS: callsVia(behind, false),
  STREAMED_CALLS: callsVia(behind, true),
});
const PREFIXES = DIALECTS.map((behind) => modelName(behind, ""));

describe("openai for Python", { skip: noPython() }, () => {
  const chat = (t: TestContext, group: string, lab: Lab, behind: Behind = "openai") =>
    check(t, ["python_client.py", group], lab, factsOf(behind));

  for (const behind of DIALECTS) {
    it(`replies, with ${behind} behind the gateway`, async (t) => {
      const lab = await startLab(t);
      assert.ok((await chat(t, "replies", lab, behind)) >= 12);
      await assertLeft(lab, behind);
    });
  }

  it("names, errors and request ids", async (t) => {
    assert.ok((await chat(t, "around", await startLab(t))) >= 7);
  });

  it("comes back after a 429 when the gateway said, under the same id", async (t) => {
    const lab = await startFullLab(t);
    await chat(t, "retry", lab);
    assert.deepEqual(await statuses(lab, 3), [200, 429, 200]);
    const ids = lab.access.slice(1).map((line) => line["request_id"]);
    assert.deepEqual(ids, ["again", "again"]);
  });

  it("calls no tool without tool_choice, unless the operator has made auto the default", async (t) => {
    for (const [group, compat] of [
      ["no-tool", {}],
      ["tool", { tool_choice_default: "auto" }],
    ] as const)
      await chat(t, group, await startLab(t, { compat }));
  });
});

describe("Python, Responses API", { skip: noModule("agents") }, () => {
  it("openai and openai-agents, with a provider of each format behind the gateway", async (t) => {
    const count = await check(t, ["python_responses.py"], await startLab(t), { PREFIXES });
    assert.equal(count, 5 * PREFIXES.length);
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

describe("anthropic for Python", { skip: noModule("anthropic") }, () => {
  it("talks, thinks and calls tools, with a provider of each format behind the gateway", async (t) => {
    const count = await check(t, ["anthropic_client.py"], await startLab(t), { PREFIXES });
    assert.equal(count, 5 * PREFIXES.length);
  });
});
