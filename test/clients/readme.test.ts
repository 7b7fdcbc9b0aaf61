// The README's programs in JavaScript and Python, as they stand, against the demo configuration on
// another port; and its lines for Claude Code and Codex, which the real programs run with, against
// the README's configuration with a provider of the tests.

import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, it, type TestContext } from "node:test";
import { startOpenai } from "../support/fake-openai.ts";
import { PROVIDER_KEY } from "../support/fake-provider.ts";
import { folder } from "../support/folder.ts";
import { demo, startGateway } from "../support/gateway.ts";
import { blocksOf } from "../support/readme.ts";
import { notInstalled, noPython, PYTHON } from "./lab.ts";
import { runLines } from "./shell.ts";

const inModules = (path: string) => fileURLToPath(new URL(`node_modules/${path}`, import.meta.url));
const ADDRESS = "http://127.0.0.1:8080";
/** Nothing but this machine is reached. */
const NO_NETWORK = { HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "127.0.0.1" };

/** Runs the README's one block in `language`, with the address replaced; what it prints. */
async function run(t: TestContext, language: string, command: string, ending: string) {
  const [block, ...others] = blocksOf(language);
  assert.equal(others.length, 0);
  assert.ok(block!.includes(ADDRESS));
  const gateway = await startGateway(t, demo());
  const file = fileURLToPath(new URL(`.readme-${process.pid}${ending}`, import.meta.url));
  writeFileSync(file, block!.replace(ADDRESS, gateway.url));
  t.after(() => rmSync(file));
  const { code, output } = await runLines(t, `"${command}" "${file}"`, ".", {});
  assert.equal(code, 0, output);
  return output;
}

describe("README's programs", () => {
  it("JavaScript", { skip: notInstalled() }, async (t) => {
    assert.match(
      await run(t, "js", process.execPath, ".mjs"),
      /^You said: “Say hello”\.\n\nThis is the demo model/,
    );
  });

  it("Python", { skip: noPython() }, async (t) => {
    assert.match(
      await run(t, "python", PYTHON, ".py"),
      /^You said: “Say hello”\.\n\nThis is the demo model[\s\S]* req_[0-9a-f]{32}$/,
    );
  });
});

const LAST_WORDS = "All is well.";
const ACME_KEY = "sk-for-your-client";

/** The README's gateway, whose provider is one of the tests; it says its last words at once. */
async function startConfigured(t: TestContext) {
  const provider = await startOpenai(t, { "deepseek-v4-flash": () => ({ text: LAST_WORDS }) });
  const [text = ""] = blocksOf("json");
  const { providers, ...rest } = JSON.parse(text);
  const deepseek = { ...providers.deepseek, base_url: provider.url };
  const config = { ...rest, providers: { deepseek }, server: { port: 0 }, admin: { port: 0 } };
  const env = { DEEPSEEK_API_KEY: PROVIDER_KEY, ACME_KEY };
  return { provider, gateway: await startGateway(t, config, {}, env) };
}

describe("README's lines for coding agents", { skip: notInstalled() }, () => {
  it("Claude Code answers with the model behind the gateway", async (t) => {
    const { provider, gateway } = await startConfigured(t);
    const block = blocksOf("sh").find((each) => each.includes("claude --model")) ?? "";
    assert.ok(block.includes(ADDRESS));
    const program = inModules("@anthropic-ai/claude-code/cli-wrapper.cjs");
    const claude = `claude() { "${process.execPath}" "${program}" -p "How are you?" "$@"; }`;
    const text = `${claude}\n${block.replace(ADDRESS, gateway.url)}`;
    const { code, output } = await runLines(t, text, folder(), { ACME_KEY, ...NO_NETWORK });
    assert.deepEqual([code, output], [0, LAST_WORDS]);
    assert.deepEqual(provider.broken, []);
  });

  it("Codex answers with the model behind the gateway", async (t) => {
    const { provider, gateway } = await startConfigured(t);
    const [block = ""] = blocksOf("toml");
    assert.ok(block.includes(ADDRESS));
    const home = folder();
    // What else Codex asks its vendor is switched off: there is no network.
    const quiet = "check_for_update_on_startup = false\n[analytics]\nenabled = false\n";
    const settings = `${block.replace(ADDRESS, gateway.url)}\n${quiet}`;
    writeFileSync(join(home, "config.toml"), settings);
    const flags = "--strict-config --skip-git-repo-check --ephemeral";
    const text = `"${inModules(".bin/codex")}" exec ${flags} "How are you?"`;
    const env = { ACME_KEY, ...NO_NETWORK, CODEX_HOME: home };
    const { code, output } = await runLines(t, text, home, env);
    assert.equal(code, 0, output);
    assert.ok(output.includes(LAST_WORDS), output);
    assert.deepEqual(provider.broken, []);
  });
});
