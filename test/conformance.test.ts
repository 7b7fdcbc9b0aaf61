// The conformance suite against this gateway, which passes all of it, and against a gateway that is wrong on purpose in one thing
// at a time: the check that is about this thing fails, and no other. So each check is known to be able to fail. Here a fault meets
// its own check and all the rules about every answer; with CONFORMANCE_MATRIX set, the whole suite.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CHECKS } from "../scripts/conformance/checks/all.ts";
import { levelOf, LEVELS, runChecks, type Check, type Options, type Result } from "../scripts/conformance/suite.ts";
import { demo, startGateway } from "./support/gateway.ts";
import { FAULTS, startWrongGateway } from "./support/wrong-gateway.ts";

const RPM = 3;
const wholeMatrix = process.env["CONFORMANCE_MATRIX"] !== undefined;

/** The demo gateway, whose clock lets a minute pass before each run, so that the limited key begins anew. */
async function bench(t: Parameters<typeof startGateway>[0]) {
  let clock = 0;
  const keys = [{ account: "demo", key: "sk-demo" }, { account: "limited", key: "sk-limited", rpm: RPM }];
  const { url } = await startGateway(t, demo({ keys }), { monotonic: () => clock });
  return {
    url,
    run(baseUrl: string, checks: readonly Check[] = CHECKS, over: Partial<Options> = {}) {
      clock += 61_000;
      return runChecks(checks, { baseUrl, key: "sk-demo", model: "demo-chat", limited: { key: "sk-limited", rpm: RPM }, deadlineMs: 10_000, ...over });
    },
  };
}

const notPassed = (results: readonly Result[]) => results.filter(({ result }) => result !== "pass");
const failed = (results: readonly Result[]) => results.filter(({ result }) => result === "fail");

describe("conformance", () => {
  it("this gateway passes every check, and none is skipped", async (t) => {
    const { url, run } = await bench(t);
    const results = await run(url);
    assert.deepEqual(notPassed(results), []);
    assert.equal(results.length, CHECKS.length);
  });

  it("each check has an id of its own, of a level, a source and a title", () => {
    assert.equal(new Set(CHECKS.map(({ id }) => id)).size, CHECKS.length);
    for (const { id, source, title } of CHECKS) {
      assert.ok(LEVELS.some((level) => level === levelOf({ id })), id);
      assert.match(source, /^(SPEC|WIRE|PITFALLS)\.md \S/, id);
      assert.ok(title.length > 10, id);
    }
  });
});

describe("a wrong gateway", () => {
  it("has a fault for each check, and a check for each fault", () => {
    assert.deepEqual([...FAULTS.keys()].sort(), CHECKS.map(({ id }) => id).sort());
  });

  it("passes every check while it has no fault", async (t) => {
    const { url, run } = await bench(t);
    const wrong = await startWrongGateway(t, url);
    assert.deepEqual(notPassed(await run(wrong.url)), []);
  });

  it(`fails the check that is about its fault, and no other${wholeMatrix ? ", of the whole suite" : ""}`, async (t) => {
    const { url, run } = await bench(t);
    const wrong = await startWrongGateway(t, url);
    const surprises: object[] = [];
    for (const check of CHECKS) {
      wrong.turn(check.id);
      const checks = wholeMatrix ? CHECKS : CHECKS.filter((each) => each === check || each.when === "last");
      const found = failed(await run(wrong.url, checks));
      if (found.length !== 1 || found[0]!.id !== check.id) surprises.push({ fault: check.id, found });
    }
    assert.deepEqual(surprises, []);
  });
});
