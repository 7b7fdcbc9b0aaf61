// The README keeps its word: every shell block in it is run as it stands (only the port is a free one), or is run word for
// word by .ci/run; the configuration example is valid; the size that it states is true. The blocks in other languages
// are run in test/clients, where the SDKs are.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it, type TestContext } from "node:test";
import { CHECKS } from "../scripts/conformance/checks/all.ts";
import { levelOf, LEVELS } from "../scripts/conformance/suite.ts";
import { parseMoney } from "../src/core/ledger/price.ts";
import { demo, startGateway } from "./support/gateway.ts";
import { LONG } from "./support/long.ts";
import { bundled } from "./support/program.ts";
import { blocksOf } from "./support/readme.ts";
import { waitFor, within } from "./support/wait.ts";

const shell = blocksOf("sh");
const readme = readFileSync("README.md", "utf8");
const noJq = spawnSync("jq", ["--version"]).status === 0 ? false : "there is no jq here";
const ci = readFileSync(".ci/run", "utf8");

/** Runs a script to its end; fails if it does. */
async function run(script: string): Promise<string> {
  const child = spawn("bash", ["-euo", "pipefail", "-c", script], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (data: Buffer) => (output += data.toString()));
  child.stderr.on("data", (data: Buffer) => (output += data.toString()));
  const code = await within(
    new Promise((resolve) => child.once("close", resolve)),
    `the end of: ${script}`,
    30_000,
  );
  assert.equal(code, 0, `${script}\n${output}`);
  return output;
}

/** Runs a script that serves, until it says where; then ends it, with all that it started. */
async function serve(t: TestContext, script: string): Promise<string> {
  const child = spawn("bash", ["-euo", "pipefail", "-c", script], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let output = "";
  child.stdout.on("data", (data: Buffer) => (output += data.toString()));
  child.stderr.on("data", (data: Buffer) => (output += data.toString()));
  const closed = new Promise((resolve) => child.once("close", resolve));
  t.after(async () => {
    if (child.exitCode === null) process.kill(-child.pid!, "SIGTERM");
    await within(closed, `the end of: ${script}`, 10_000);
  });
  return waitFor(
    () =>
      /chat-gateway listens on (http:\S+)/.exec(output)?.[1] ??
      (child.exitCode !== null && assert.fail(output)),
    `the address of: ${script}`,
    30_000,
  );
}

// A developer's own ./gateway.json is theirs: where there is one, the demo is run by its name.
const folder = mkdtempSync(join(tmpdir(), "chat-gateway-"));
after(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, "demo.json"), JSON.stringify(demo()));
const own = existsSync("gateway.json") ? ` --config ${join(folder, "demo.json")}` : "";

/** A command as it stands in the long form; else without npm and tsx, which take long to start and are tried by a test of their own. */
const built = bundled(folder).args[0];
const startedQuickly = (line: string): string =>
  LONG ? line : line.replace(/^npm start (--silent )?--/, `node ${built}`);

describe("README", () => {
  it("has the shell blocks that this test knows how to run", () => {
    const kinds = shell.map((block) =>
      block.startsWith("curl") ? "curl" : block.split(/\s/).slice(0, 4).join(" "),
    );
    assert.deepEqual(
      kinds,
      [
        "npm ci && npm",
        "curl",
        "curl",
        "curl",
        "npm start --silent --",
        "npm start --silent --",
        "export DEEPSEEK_API_KEY=sk-from-deepseek ANTHROPIC_API_KEY=sk-from-anthropic ACME_KEY=sk-for-your-client",
        "cat data/spend/*.jsonl | jq",
        "npm ci && npm",
        "npm run build node",
        "npm ci --prefix test/clients",
        "npm run conformance --",
        "npm ci && npm ci --prefix test/clients",
      ].map((kind) => kind.split(/\s/).slice(0, 4).join(" ")),
    );
  });

  it("npm ci && npm start", async (t) => {
    assert.equal(shell[0], "npm ci && npm start");
    assert.ok(ci.includes("npm ci && npm test"), ".ci/run installs the same way");
    const address = await serve(t, `npm start -- --port 0${own}`);
    assert.equal((await fetch(`${address}/healthz`)).status, 200);
  });

  shell.forEach((block, index) => {
    if (!block.startsWith("curl")) return;
    it(`call ${index}: ${/"model": "([^"]+)"/.exec(block)?.[1]}`, async (t) => {
      const gateway = await startGateway(t, demo());
      assert.ok(block.includes("http://127.0.0.1:8080"));
      const output = await run(block.replace("http://127.0.0.1:8080", gateway.url));
      assert.match(
        output,
        block.includes('"stream": true') ? /data: \[DONE\]\n\n$/ : /"object":"chat\.completion"/,
      );
      assert.equal(output.includes('"reasoning_content":"The"'), block.includes('"thinking"'));
      assert.equal(
        output.includes('"usage":{'),
        !block.includes('"stream": true') || block.includes("include_usage"),
      );
      if (block.includes("X-Request-Id")) await gateway.accessOf("my-first-thought");
    });
  });

  it("the books: trace, statement, audit, keys, and the same sum by jq", {
    skip: noJq,
  }, async (t) => {
    const data_dir = mkdtempSync(join(tmpdir(), "chat-gateway-"));
    t.after(() => rmSync(data_dir, { recursive: true }));
    const config = join(data_dir, "gateway.json");
    writeFileSync(config, JSON.stringify(demo({ data_dir })));
    const gateway = await startGateway(t, demo({ data_dir }));
    for (let calls = 0; calls < 3; calls += 1)
      await run(shell[3]!.replace("http://127.0.0.1:8080", gateway.url));
    const commands = (block: string) =>
      block.split("\n").map((line) => `${startedQuickly(line)} --config ${config}`);
    const [traced, , audited] = await Promise.all(commands(shell[4]!).map(run));
    assert.equal(traced!.match(/demo-reasoner {2}demo {2,}completed/g)?.length, 3);
    assert.match(
      audited!,
      /^settled 3 for \S+ USD; recorded 3 for .*\nproved: 3 requests settled from .*\nthe books are right\n$/,
    );
    const key = await run(commands(shell[5]!)[0]!);
    assert.match(key, /^sk-\S{32}\n|\nsk-\S{32}\n/);
    assert.match(await run(commands(shell[5]!)[1]!), /acme +laptop +60 +auto\/chat/);
    const { lines } = JSON.parse(await run(`${commands(shell[4]!)[1]} --json`));
    const summed = JSON.parse(await run(shell[7]!.replace("data/spend", join(data_dir, "spend"))));
    assert.deepEqual(Object.keys(summed), ["demo-reasoner"]);
    assert.equal(summed["demo-reasoner"].requests, 3);
    const { units, micro, pico } = summed["demo-reasoner"];
    assert.equal(
      BigInt(units) * 10n ** 12n + BigInt(micro) * 10n ** 6n + BigInt(pico),
      parseMoney(lines[0].cost),
    );
  });

  it("a configuration of one's own: check it, serve it", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "chat-gateway-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "gateway.json");
    writeFileSync(file, blocksOf("json")[0]!);
    const [environment, check, explain, server] = shell[6]!
      .replaceAll("gateway.json", file)
      .split("\n");
    assert.match(
      await run(`${environment}\n${startedQuickly(check!)}`),
      /is valid: 3 models, 3 aliases, 1 keys/,
    );
    assert.match(
      await run(`${environment}\n${startedQuickly(explain!)}`),
      /1 +qwen-local .*= 960\.00[^\n]*\n +2 +deepseek-chat .*= 234\.92/,
    );
    const address = await serve(t, `${environment}\n${server} --port 0`);
    const models = await fetch(`${address}/v1/models`, {
      headers: { authorization: "Bearer sk-for-your-client" },
    });
    assert.equal(models.status, 200);
  });

  it("the built file", async (t) => {
    const [build, start] = shell[9]!.split("\n");
    await run(build!);
    const address = await serve(t, `exec ${start!.replace("8080", "0")}${own}`);
    assert.equal((await fetch(`${address}/healthz`)).status, 200);
  });

  it("the conformance of a running gateway", async (t) => {
    const gateway = await startGateway(t, demo());
    assert.ok(shell[11]!.includes("http://127.0.0.1:8080"));
    assert.match(
      await run(shell[11]!.replace("http://127.0.0.1:8080", gateway.url)),
      /^spec +(\d+) checks: \1 passed, 0 failed, 0 skipped$/m,
    );
    for (const level of LEVELS) {
      const checks = CHECKS.filter((check) => levelOf(check) === level).length;
      assert.match(
        readme,
        new RegExp(`${checks} (checks )?of what [^(]*\\(\`${level}\`\\)`),
        `${level} has ${checks} checks`,
      );
    }
  });

  it("the benchmark's scripts are there", async () => {
    const [, peers, bench] = shell[12]!.split("\n");
    assert.equal(spawnSync("bash", ["-n", peers!]).status, 0);
    assert.ok(statSync(peers!).mode & 0o100, `${peers} can be run`);
    assert.equal(bench, "npm run bench");
    assert.ok(
      existsSync(
        /tsx (\S+)/.exec(JSON.parse(readFileSync("package.json", "utf8")).scripts.bench)![1]!,
      ),
    );
  });

  it("the blocks that install from the registry are run by .ci/run, word for word", () => {
    for (const block of [shell[8]!, shell[10]!])
      for (const line of block.split("\n")) assert.ok(ci.includes(line), line);
  });
});
