// The conformance suite against this gateway, which passes all checks, and against gateways with
// one planted fault each: the check for that fault fails, and no other. So every check is known to
// be able to fail.
//
// The short form leaves out the checks that load a machine for seconds. It plants one fault for
// every twelfth check, different ones each day, and a fault meets its own check, or all rules about
// every answer. With CONFORMANCE_MATRIX=1, as in .ci/run, nothing is left out, and a fault meets
// the whole suite, except that one of level `robust` meets its own check. CONFORMANCE_PART=1/2 and
// 2/2 split the faults between two processes.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { CHECKS } from "../scripts/conformance/checks/all.ts";
import { SETUPS } from "../scripts/conformance/checks/setup.ts";
import { parseJson } from "../scripts/conformance/client.ts";
import { readyConfig, startProvider } from "../scripts/conformance/provider.ts";
import {
  levelOf,
  LEVELS,
  runChecks,
  type Check,
  type Options,
  type Result,
} from "../scripts/conformance/suite.ts";
import { checkConfig } from "./support/config.ts";
import { folder } from "./support/folder.ts";
import { demo, startGateway } from "./support/gateway.ts";
import { listening } from "./support/listening.ts";
import { fromModules, runToEnd } from "./support/program.ts";
import { messagesFaults, responsesFaults, specFaults } from "./support/faults/apis.ts";
import { compatibleFaults } from "./support/faults/compatible.ts";
import { MARK } from "./support/faults/kit.ts";
import { robustFaults } from "./support/faults/robust.ts";
import { todays } from "./support/long.ts";
import { startWire, startWrongGateway, type Change, type Fault } from "./support/wrong-gateway.ts";
import { waitFor } from "./support/wait.ts";

/**
 * The faults by the id of the check that must notice them. If a check has several faults, a slash
 * and a name follow the id.
 */
const FAULTS: ReadonlyMap<string, Fault> = new Map([
  ...specFaults,
  ...compatibleFaults,
  ...robustFaults,
  ...messagesFaults,
  ...responsesFaults,
]);
const RPM = 3;
/** For checks that must pass: a reply in single bytes takes long on a busy machine. */
const PATIENT_MS = 30_000;
const matrix = process.env["CONFORMANCE_MATRIX"];
const [PART = 1, PARTS = 1] = (process.env["CONFORMANCE_PART"] ?? "1/1").split("/").map(Number);

/**
 * The demo gateway with the suite's own provider, on a clock that moves on a minute before each
 * run, so that the limited key's window is empty.
 */
async function bench(t: TestContext, rpm: number | null = null) {
  let clock = 0;
  const provider = await startProvider();
  t.after(() => provider.close());
  const wires = [await startWire(t, provider.url), await startWire(t, provider.loneUrl)] as const;
  const ready = readyConfig(
    { url: wires[0].url, loneUrl: wires[1].url, goneUrl: provider.goneUrl },
    SETUPS,
    "sk-demo",
  );
  const keys = [
    ...ready.keys.slice(1),
    { account: "demo", key: "sk-demo", rpm },
    { account: "limited", key: "sk-limited", rpm: RPM },
  ];
  const { url } = await startGateway(t, demo({ ...ready, keys, upstream: { client: "pooled" } }), {
    monotonic: () => clock + performance.now(),
  });
  return {
    url,
    provider,
    wire: (change: Change | undefined) =>
      wires.forEach((wire) => {
        wire.turn(change);
      }),
    pass: (seconds: number) => {
      clock += seconds * 1_000;
    },
    run(baseUrl: string, checks: readonly Check[] = USUAL, over: Partial<Options> = {}) {
      clock += 61_000;
      return runChecks(checks, {
        baseUrl,
        key: "sk-demo",
        model: "demo-chat",
        limited: { key: "sk-limited", rpm: RPM },
        provider,
        mark: MARK,
        deadlineMs: 10_000,
        ...over,
      });
    },
  };
}

const notPassed = (results: readonly Result[]) => results.filter(({ result }) => result !== "pass");
const failed = (results: readonly Result[]) => results.filter(({ result }) => result === "fail");

const isRobust = (check: Pick<Check, "id">): boolean => levelOf(check) === "robust";
const NOT_ROBUST = CHECKS.filter((check) => !isRobust(check));
/**
 * Whether a check measures how one client or provider can slow down all others. .ci/run runs these
 * against the built file.
 */
const isCostly = ({ id }: Pick<Check, "id">): boolean => /^robust\.(cost\.|unread$)/.test(id);
const isLeftOut = (check: Pick<Check, "id">): boolean => matrix === undefined && isCostly(check);
const USUAL = CHECKS.filter((check) => !isLeftOut(check));

const checkOf = (fault: string): string => fault.split("/")[0]!;

/**
 * The faults in the order of the checks' levels: the first fault of each check, then each second
 * one, and so on.
 */
const ROUNDS: (readonly [string, Fault])[][] = [];
for (const [name, fault] of FAULTS) {
  const check = checkOf(name);
  if (isLeftOut({ id: check })) continue;
  const round = ROUNDS.find((faults) => faults.every(([other]) => checkOf(other) !== check));
  if (round) round.push([name, fault]);
  else ROUNDS.push([[name, fault]]);
}
const TRIED_ROUNDS = matrix === undefined ? [todays(ROUNDS[0]!, 12)] : ROUNDS;
const inPart = <T>(cases: readonly T[]): T[] => cases.filter((_, at) => at % PARTS === PART - 1);

/** The documents that the levels of vendors' APIs cite. */
const SOURCES: Readonly<Record<string, RegExp>> = {
  responses: /^OpenAI API reference, \S/,
};

describe("conformance", () => {
  it("waits as long as its key's rate limit demands, and then asks again", async (t) => {
    const { url, run, pass } = await bench(t, 60);
    const waits: number[] = [];
    const results = await run(url, NOT_ROBUST, {
      concurrency: 1,
      pause: async (seconds) => pass(waits[waits.push(seconds) - 1]!),
    });
    assert.deepEqual(notPassed(results), []);
    assert.ok(waits.length > 0 && waits.every((seconds) => seconds <= 60), waits.join(" "));
  });

  it("does not wait for a gateway that rejects a check of robustness", async (t) => {
    const { url, run } = await bench(t, 1);
    const waits: number[] = [];
    const checks = CHECKS.filter(({ id }) => /^robust\.usage\.(asked|hidden)$/.test(id));
    const pause = async (seconds: number) => waits.push(seconds);
    const results = await run(url, checks, { concurrency: 1, pause });
    assert.deepEqual([results.map(({ result }) => result), waits], [["pass", "fail"], []]);
  });

  it("imports only node: modules and its own files", () => {
    const names = readdirSync("scripts/conformance", { recursive: true, encoding: "utf8" });
    for (const name of names.filter((each) => each.endsWith(".ts"))) {
      const text = readFileSync(join("scripts/conformance", name), "utf8");
      const own = name.includes("/") ? /^(node:|\.\.?\/[a-z]+\.ts$)/ : /^(node:|\.\/)/;
      for (const [, from] of text.matchAll(/ from "([^"]+)"/g)) assert.match(from!, own, name);
    }
  });

  it("each check has a unique id, a level, a source and a title", () => {
    assert.equal(new Set(CHECKS.map(({ id }) => id)).size, CHECKS.length);
    for (const { id, source, title } of CHECKS) {
      const hasLevel = LEVELS.some((level) => level === levelOf({ id }));
      assert.ok(hasLevel, id);
      assert.match(source, SOURCES[levelOf({ id })] ?? /^[a-z]+\.md "[A-Z]/, id);
      assert.ok(title.length >= 10, id);
    }
  });
});

describe("a wrong gateway", () => {
  it("has a fault for each check, and a check for each fault", () => {
    const noticed = new Set([...FAULTS.keys()].map(checkOf));
    assert.deepEqual([...noticed].sort(), CHECKS.map(({ id }) => id).sort());
  });

  it("passes every check while no fault is planted", async (t) => {
    const { url, run } = await bench(t);
    const wrong = await startWrongGateway(t, url);
    const results = await run(wrong.url, USUAL, { deadlineMs: PATIENT_MS });
    assert.deepEqual(notPassed(results), []);
    assert.equal(results.length, USUAL.length);
  });

  /**
   * The faults that their own check missed or another check noticed, all tried in one new gateway.
   */
  async function surprises(
    t: TestContext,
    faults: readonly (readonly [string, Fault])[],
    among: readonly Check[],
  ): Promise<object[]> {
    const { run, wire, url, provider } = await bench(t);
    const wrong = await startWrongGateway(t, url, provider.url);
    const surprising: object[] = [];
    for (const [name, fault] of faults) {
      wrong.turn(fault);
      wire(fault.wire);
      let checks = among.filter(({ id }) => id === checkOf(name));
      if (matrix !== undefined && !isRobust(checks[0]!)) checks = NOT_ROBUST;
      else if (checks[0]!.when === "last") checks = among.filter(({ when }) => when === "last");
      const found = failed(await run(wrong.url, checks));
      if (found.length !== 1 || found[0]!.id !== checkOf(name))
        surprising.push({ fault: name, found });
    }
    return surprising;
  }

  it(`fails the check that is about its fault, and no other${matrix === undefined ? "" : ", of the whole suite"}`, async (t) => {
    const faults = inPart(TRIED_ROUNDS.flat().filter(([id]) => !isRobust({ id })));
    assert.ok(faults.length > 0);
    assert.deepEqual(await surprises(t, faults, NOT_ROBUST), []);
  });

  // A gateway remembers failures of a provider. But each check has its own models there, so one
  // gateway can have one fault for each check.
  describe("whose fault involves the provider does so too", { concurrency: 4 }, () => {
    for (const [index, round] of inPart([...TRIED_ROUNDS.entries()])) {
      const faults = round.filter(([id]) => isRobust({ id }));
      it(`in ${faults.length} faults, number ${index + 1} of their checks`, async (t) => {
        assert.deepEqual(await surprises(t, faults, CHECKS.filter(isRobust)), []);
      });
    }
  });
});

describe("the command", () => {
  const program = fromModules(process.cwd(), "scripts/conformance/main.ts");
  const conformance = (url: string, words: string) =>
    runToEnd(program, ["--base-url", url, "--key", "sk-demo", ...words.split(" ")]);

  it("prints a scorecard, says why it skips checks, and exits with 0 when nothing failed", async (t) => {
    const { url } = await bench(t);
    const only = "spec.healthz,spec.model.canonical,spec.limit.code";
    const { code, stdout } = await conformance(url, `--level spec --only ${only}`);
    assert.equal(code, 0);
    assert.match(stdout, /^pass {2}spec\.healthz +contract\.md "Endpoints" +200 while/m);
    assert.match(stdout, /^skip {2}spec\.model\.canonical .*\n +skipped {3}needs --model$/m);
    assert.match(
      stdout,
      /^skip {2}spec\.limit\.code .*\n +skipped {3}needs --limited-key and --limited-rpm$/m,
    );
    assert.match(stdout, /^spec +5 checks: 2 passed, 0 failed, 3 skipped$/m);
  });

  it("sends custom headers with every request, and rejects malformed ones", async (t) => {
    const heard: string[] = [];
    const server = http.createServer(({ headers }, res) => {
      heard.push(`${headers["x-route"]}, id ${headers["x-request-id"]}`);
      res.end("{}");
    });
    const url = await listening(t, server);
    await conformance(url, "--only spec.healthz --header x-route=a=b");
    // No id from the client, which the gateway would use instead of generating one.
    assert.deepEqual([...new Set(heard)], ["a=b, id undefined"]);
    assert.equal((await conformance(url, "--header x-route")).code, 2);
  });

  it("shows what was expected and what was received, and exits with 1", async (t) => {
    const { url } = await bench(t);
    const wrong = await startWrongGateway(t, url);
    wrong.turn(FAULTS.get("spec.error.code"));
    const words = "--model demo-chat --only spec.error";
    const { code, stdout } = await conformance(wrong.url, words);
    assert.equal(code, 1);
    assert.match(
      stdout,
      /^fail {2}spec\.error\.code .*\n +expected {2}error\.code to be a non-empty string\n +got {7}404 \(in 1 of \d+, first in GET \/v1\/no-such-path, 404, of the sample\)$/m,
    );
    const document = JSON.parse((await conformance(wrong.url, `${words} --json`)).stdout);
    assert.equal(document.passed, false);
    assert.deepEqual(
      document.checks.filter(({ result }: Result) => result === "fail").map(({ id }: Result) => id),
      ["spec.error.code"],
    );
  });

  it("starts its own provider, prints how to configure the gateway, and begins once it is configured", async (t) => {
    const file = join(folder(), "gateway.json");
    const { url, gateway } = await startGateway(t, demo());
    const only = "robust.usage,robust.leaving";
    const ended = conformance(url, `--with-provider --provider-config ${file} --only ${only}`);
    const config = await waitFor(
      () => existsSync(file) && parseJson(readFileSync(file, "utf8")),
      "the file with the configuration",
    );
    gateway.reload(checkConfig(config, {}));
    const { code, stdout, stderr } = await ended;
    const waiting = /^conformance: the gateway's provider is to be http:.*; waiting until http:/;
    assert.match(stderr, waiting);
    assert.match(stdout, /^robust +\d+ checks: (\d+) passed, 0 failed, 0 skipped$/m);
    assert.equal(code, 0);
  });

  const HERE = "--base-url http://127.0.0.1:1 --key k";
  for (const [words, said] of [
    ["--json", /--base-url and --key are required/],
    ["--base-url nowhere --key k", /an http or https address/],
    [`${HERE} --level best`, /no level best/],
    [`${HERE} --only none`, /no such check/],
    [`${HERE} --without luck`, /without luck/],
    [`${HERE} --limited-rpm 3`, /go together/],
    [`${HERE} --concurrency 0`, /a positive integer/],
    ["--surprise", /Unknown option/],
    [HERE, /the connection failed/],
  ] as const) {
    it(`exits with 2: ${words}`, async () => {
      const { code, stdout, stderr } = await runToEnd(program, words.split(" "));
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, said);
    });
  }

  it("gives every wait a deadline, and says what it waited for", async (t) => {
    const silent = await listening(
      t,
      http.createServer(() => undefined),
    );
    const { code, stderr } = await conformance(silent, "--timeout-ms 200");
    assert.equal(code, 2);
    assert.equal(stderr, "conformance: waited 200 ms for the head of the answer to GET /healthz\n");
  });
});
