// `init --from-litellm` with YAML, read by the real package `yaml`: comments, anchors, numbers in
// every notation. What becomes of the fields is tested in test/extensions/operations/init.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { assertFails, assertOneLine, ended } from "../support/command.ts";
import { checkConfig } from "../support/config.ts";
import { folder } from "../support/folder.ts";
import { blocksOf } from "../support/readme.ts";
import { notInstalled } from "./lab.ts";

const YAML = `# The proxy of the platform team
defaults: &defaults
  api_key: os.environ/OPENAI_API_KEY
  max_retries: 0
model_list:
  - model_name: gpt-4o        # what clients send
    litellm_params:
      <<: *defaults
      model: openai/gpt-4.1
      rpm: 480
    model_info:
      input_cost_per_token: 2e-06
      output_cost_per_token: 0.000008
      cache_read_input_token_cost: 5.0e-7
  - {model_name: claude, litellm_params: {model: anthropic/claude-haiku-4-5}}

router_settings:
  fallbacks:
    - gpt-4o: [claude]
general_settings:
  master_key: "os.environ/LITELLM_MASTER_KEY"
`;

/** Runs init where the package is installed. */
async function convert(t: TestContext, text: string, options: readonly string[] = []) {
  const place = folder();
  const source = join(place, "config.yaml");
  const file = join(place, "gateway.json");
  writeFileSync(source, text);
  const args = ["init", "--from-litellm", source, "--config", file, ...options];
  return { file, end: await ended(t, args, { cwd: "test/clients" }) };
}

describe("init --from-litellm, with YAML", { skip: notInstalled() }, () => {
  it("reads anchors, comments and numbers", async (t) => {
    const { file, end } = await convert(t, YAML, ["--json"]);
    assert.deepEqual([end.code, end.stderr], [0, ""]);
    const result = JSON.parse(end.stdout);
    const env = Object.fromEntries(result.variables.map((name: string) => [name, `sk-${name}`]));
    const written = JSON.parse(readFileSync(file, "utf8"));
    const { models } = checkConfig(written, env);
    assert.deepEqual([...models.keys()], ["gpt-4o/openai", "claude"]);
    const price = written.models["gpt-4o/openai"].price;
    assert.deepEqual(price, { input_cache_hit: 0.5, input_cache_miss: 2, output: 8 });
    assert.deepEqual(written.aliases, { "gpt-4o": { models: ["gpt-4o/openai", "claude"] } });
    assert.deepEqual(
      result.left_out.map(({ path }: { path: string }) => path),
      ["model_list[0].litellm_params.max_retries", "model_list[0].litellm_params.rpm", "defaults"],
    );
  });

  it("takes a date as the text that it is", async (t) => {
    const params = "{ model: azure/d, api_base: https://a.example, api_version: 2024-10-21 }";
    const model = `  - { model_name: m, litellm_params: ${params} }`;
    const { file, end } = await convert(t, `model_list:\n${model}\n`);
    assert.deepEqual([end.code, end.stderr], [0, ""]);
    const { providers } = JSON.parse(readFileSync(file, "utf8"));
    const [provider] = Object.values<{ api_version?: string }>(providers);
    assert.equal(provider?.api_version, "2024-10-21");
  });

  it("takes the last of several fields with one name, as LiteLLM does", async (t) => {
    const model = "  - { model_name: m, litellm_params: { model: openai/x } }";
    const settings = [1, 2].map((count) => `litellm_settings:\n  num_retries: ${count}\n`);
    const { file, end } = await convert(t, `model_list:\n${model}\n${settings.join("")}`);
    assert.deepEqual([end.code, end.stderr], [0, ""]);
    assert.deepEqual(JSON.parse(readFileSync(file, "utf8")).retry, { max_retries: 2 });
  });

  it("says where the text stops being YAML", async (t) => {
    const { end } = await convert(t, 'a: 1\nb: "sk-secret\n');
    assertOneLine(
      end,
      /config\.yaml is not YAML that can be read: the fault is at line 3, column 1/,
    );
    assert.ok(!end.stderr.includes("sk-secret"));
  });

  it("refuses aliases that grow without bound", async (t) => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
    for (let at = 1; at < 9; at += 1)
      lines.push(
        `a${at}: &a${at} [${Array(10)
          .fill(`*a${at - 1}`)
          .join(", ")}]`,
      );
    const { end } = await convert(t, `${lines.join("\n")}\n`);
    assertFails(end, 1, /config\.yaml is not YAML that can be read/);
  });

  it("converts the example of the manual", async (t) => {
    const [example = ""] = blocksOf("yaml", "litellm");
    const { file, end } = await convert(t, example);
    assert.deepEqual([end.code, end.stderr], [0, ""]);
    const [shown = ""] = blocksOf("json", "litellm");
    assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), JSON.parse(shown));
  });
});
