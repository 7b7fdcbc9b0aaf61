// README.md and the manual keep their word: every shell block runs unchanged (only the port is a
// free one), or .ci/run runs it word for word; configuration examples are valid. npm takes a second
// to start, so the suite runs the program itself for most `npm start`, and npm with LONG_TESTS.
// test/clients runs the blocks in JavaScript and Python, and those of Claude Code and Codex,
// because it has the programs; test/extensions/money those of the page "Backup and restore";
// test/howto.test.ts those of "How do I ...?".

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { CHECKS } from "../scripts/conformance/checks/all.ts";
import { levelOf, LEVELS } from "../scripts/conformance/suite.ts";
import { checkConfig } from "./support/config.ts";
import { parseMoney } from "../src/extensions/money/records/index.ts";
import { folder } from "./support/folder.ts";
import { demo, startGateway } from "./support/gateway.ts";
import { LONG } from "./support/long.ts";
import { quickest } from "./support/program.ts";
import { allBlocks, blocksOf, pages, runShell, secretOf, startShell } from "./support/readme.ts";
import { waitFor } from "./support/wait.ts";

/** The beginning of each shell block, by page. A new block needs a test below. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  README: [
    "npm ci && npm start",
    "curl -s ",
    "export ANTHROPIC_BASE_URL=",
    "export DEEPSEEK_API_KEY=",
    "npm start --silent -- help",
  ],
  api: ["curl -sN ", "curl -sN "],
  books: ["npm start --silent -- billing trace", "cat data/spend/*.jsonl | jq"],
  commands: ["npm start --silent -- init", "npm start --silent -- keys create"],
  comparison: ["npm run conformance -- "],
  configuration: ["export DEEPSEEK_API_KEY="],
  simulation: ["npm run --silent simulate -- --seeds 100"],
  contributing: ["npm ci && npm test", "npm ci --prefix test/clients"],
  deploying: ["npm run release", "npm run build"],
  performance: ["npm ci && npm ci --prefix test/clients"],
};
const LANGUAGES = ["sh", "bash", "json", "js", "python", "nginx", "text", "toml", "yaml"];

/** The first shell block of a page that begins with this text. */
function shellBlock(page: string, beginning: string, at = 0): string {
  const block = blocksOf("sh", page).filter((text) => text.startsWith(beginning))[at];
  assert.ok(block !== undefined, `${page} has no block that begins with ${beginning}`);
  return block;
}

const calls = allBlocks().filter(({ language, text }) => language === "sh" && /^curl/.test(text));
const thinkingCall = shellBlock("api", "curl", 1);
const noJq = spawnSync("jq", ["--version"]).status === 0 ? false : "there is no jq here";
const ci = readFileSync(".ci/run", "utf8");

const place = folder();
const program = [process.execPath, ...quickest(place).args].join(" ");

/** The same script with the program instead of npm, unless LONG_TESTS is set. */
const quick = (script: string): string =>
  LONG ? script : script.replace(/npm start (--silent )?--(?= [a-z])/g, program);

const run = (script: string): Promise<string> => runShell(quick(script));

/** Runs a script that serves until it prints its address, then ends it with all its children. */
async function serve(t: TestContext, script: string): Promise<string> {
  const { child, output, ended } = startShell(quick(script), { detached: true });
  t.after(async () => {
    if (child.exitCode === null) process.kill(-child.pid!, "SIGTERM");
    await ended();
  });
  return waitFor(
    () =>
      /chat-gateway listens on (http:\S+)/.exec(output())?.[1] ??
      (child.exitCode !== null && assert.fail(output())),
    `the address of: ${script}`,
  );
}

// A developer may have their own ./gateway.json, so the demo runs with its own file name.
writeFileSync(join(place, "demo.json"), JSON.stringify(demo()));
const own = existsSync("gateway.json") ? ` --config ${join(place, "demo.json")}` : "";

describe("README and manual", () => {
  it("have the shell blocks that this test knows how to run", () => {
    for (const { name } of pages()) {
      const blocks = blocksOf("sh", name);
      const known = KNOWN[name] ?? [];
      assert.equal(blocks.length, known.length, `shell blocks of ${name}`);
      for (const [at, beginning] of known.entries())
        assert.ok(blocks[at]!.startsWith(beginning), `${name}: ${blocks[at]}`);
    }
  });

  it("name the language of every block", () => {
    for (const { page, language, text } of allBlocks())
      assert.ok(LANGUAGES.includes(language), `${page}: ${language || "none"} of ${text}`);
  });

  it("a first configuration is written, and is valid", async () => {
    const file = `--config ${join(place, "first.json")}`;
    const written = await run(`${shellBlock("commands", "npm start --silent -- init")} ${file}`);
    assert.match(written, /is written: .* of DeepSeek/);
    const keys = "DEEPSEEK_API_KEY=sk-1 GATEWAY_KEY=sk-2";
    assert.match(await run(`${keys} npm start --silent -- check ${file}`), /is valid/);
  });

  it("npm ci && npm start", async (t) => {
    assert.equal(shellBlock("README", "npm ci"), "npm ci && npm start");
    assert.ok(ci.includes("npm ci && npm test"), ".ci/run installs the same way");
    const address = await serve(t, `npm start -- --port 0${own}`);
    assert.equal((await fetch(`${address}/healthz`)).status, 200);
  });

  for (const { page, text: block } of calls) {
    it(`a call of ${page}: ${/"model": "([^"]+)"/.exec(block)?.[1]}`, async (t) => {
      const gateway = await startGateway(t, demo());
      assert.ok(block.includes("http://127.0.0.1:8080"));
      const output = await run(block.replace("http://127.0.0.1:8080", gateway.url));
      assert.match(
        output,
        block.includes('"stream": true') ? /data: \[DONE\]\n\n$/ : /"object":"chat\.completion"/,
      );
      assert.equal(output.includes('"reasoning_content":"The"'), block.includes('"thinking"'));
      const hasUsage = output.includes('"usage":{');
      assert.equal(hasUsage, !block.includes('"stream": true') || block.includes("include_usage"));
      if (block.includes("X-Request-Id")) await gateway.accessOf("my-first-thought");
    });
  }

  it("the manual by the command help", async () => {
    const [page, search] = shellBlock("README", "npm start --silent -- help").split("\n");
    assert.equal(await run(page!), readFileSync("src/manual/configuration.md", "utf8"));
    assert.match(await run(search!), /^configuration: Secrets\n {4}\S/m);
  });

  it("the books: trace, statement, audit, keys, and the same sum by jq", {
    skip: noJq,
  }, async (t) => {
    const data_dir = folder();
    const config = join(data_dir, "gateway.json");
    writeFileSync(config, JSON.stringify(demo({ data_dir })));
    const gateway = await startGateway(t, demo({ data_dir }));
    for (let calls = 0; calls < 3; calls += 1)
      await run(thinkingCall.replace("http://127.0.0.1:8080", gateway.url));
    const commands = (block: string) =>
      block.split("\n").map((line) => `${line} --config ${config}`);
    const books = commands(shellBlock("books", "npm start"));
    const keys = commands(shellBlock("commands", "npm start --silent -- keys create"));
    const [traced, , audited] = await Promise.all(books.map(run));
    assert.equal(traced!.match(/demo-reasoner {2}demo {2,}completed/g)?.length, 3);
    assert.match(
      audited!,
      /^settled 3 for \S+ USD; recorded 3 for .*\nproved: 3 requests settled from .*\nthe books are right\n$/,
    );
    const key = await run(keys[0]!);
    assert.match(key, /^sk-\S{32}\n|\nsk-\S{32}\n/);
    assert.match(await run(keys[1]!), /acme +laptop +60 +auto\/chat/);
    const { lines } = JSON.parse(await run(`${books[1]} --json`));
    const sum = shellBlock("books", "cat").replace("data/spend", join(data_dir, "spend"));
    const summed = JSON.parse(await run(sum));
    assert.deepEqual(Object.keys(summed), ["demo-reasoner"]);
    assert.equal(summed["demo-reasoner"].requests, 3);
    const { units, micro, pico } = summed["demo-reasoner"];
    const summedCost = BigInt(units) * 10n ** 12n + BigInt(micro) * 10n ** 6n + BigInt(pico);
    assert.equal(summedCost, parseMoney(lines[0].cost));
  });

  /**
   * The lines of a page's block that uses the preceding configuration, which is in its own folder.
   */
  function configured(page: string): readonly string[] {
    const file = join(folder(), "gateway.json");
    writeFileSync(file, blocksOf("json", page)[0]!);
    return shellBlock(page, "export DEEPSEEK_API_KEY=")
      .replaceAll("gateway.json", file)
      .split("\n");
  }
  /** Starts a gateway, and requests the models with the client's key. */
  async function serveModels(t: TestContext, script: string): Promise<void> {
    const address = await serve(t, `${script} --port 0`);
    const models = await fetch(`${address}/v1/models`, {
      headers: { authorization: "Bearer sk-for-your-client" },
    });
    assert.equal(models.status, 200);
  }

  it("README's configuration: check it, serve it", async (t) => {
    const [environment, check, server] = configured("README");
    const printed = await run(`${environment}\n${check} 2>&1`);
    assert.match(printed, /is valid: 1 model, 1 alias, 1 key$/m);
    assert.doesNotMatch(printed, /warning/);
    await serveModels(t, `${environment}\n${server}`);
  });

  it("the manual's configuration: check it, explain it, serve it", async (t) => {
    const [environment, check, explain, server] = configured("configuration");
    assert.match(await run(`${environment}\n${check}`), /is valid: 3 models, 3 aliases, 1 key$/m);
    const explained = await run(`${environment}\n${explain}`);
    assert.match(explained, /1 +qwen-local .*= 960\.00[^\n]*\n +2 +deepseek-flash .*= 281\.90/);
    await serveModels(t, `${environment}\n${server}`);
  });

  it("every configuration in the manual is valid", () => {
    for (const { page, language, text } of allBlocks()) {
      if (language !== "json") continue;
      const secrets = [...text.matchAll(/"\$(\w+)"/g)].map(([, name]) => [name, secretOf(name!)]);
      const withoutFiles = text.replace(/"\$file:[^"]+"/g, '"sk-from-a-file"');
      const config = JSON.parse(withoutFiles);
      assert.doesNotThrow(() => checkConfig(config, Object.fromEntries(secrets)), page);
    }
  });

  it("the built file", async (t) => {
    const [build, start] = shellBlock("deploying", "npm run build").split("\n");
    await run(build!);
    const address = await serve(t, `exec ${start!.replace("8080", "0")}${own}`);
    assert.equal((await fetch(`${address}/healthz`)).status, 200);
  });

  it("the conformance of a running gateway", async (t) => {
    const gateway = await startGateway(t, demo());
    const block = shellBlock("comparison", "npm run conformance");
    assert.ok(block.includes("http://127.0.0.1:8080"));
    assert.match(
      await run(block.replace("http://127.0.0.1:8080", gateway.url)),
      /^spec +(\d+) checks: \1 passed, 0 failed, 0 skipped$/m,
    );
    const comparison = readFileSync("src/manual/comparison.md", "utf8");
    for (const level of LEVELS) {
      const checks = CHECKS.filter((check) => levelOf(check) === level).length;
      const stated = new RegExp(`${checks} (checks )?of what [^(]*\\(\`${level}\`\\)`);
      assert.match(comparison, stated, `${level} has ${checks} checks`);
    }
  });

  it("the benchmark's scripts are there", async () => {
    const [, peers, bench] = shellBlock("performance", "npm ci").split("\n");
    assert.equal(spawnSync("bash", ["-n", peers!]).status, 0);
    assert.ok(statSync(peers!).mode & 0o100, `${peers} can be run`);
    assert.equal(bench, "npm run bench");
  });

  it("the blocks that install from the registry, or take long, are in .ci/run, word for word", () => {
    const blocks = [
      shellBlock("contributing", "npm ci"),
      shellBlock("contributing", "npm ci", 1),
      shellBlock("deploying", "npm run release"),
    ];
    for (const block of blocks)
      for (const line of block.split("\n")) assert.ok(ci.includes(line), line);
  });
});
