// `init`: for each vendor it writes a valid configuration without a warning, and it never
// overwrites a file.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { VENDOR_ROWS } from "../../../../src/extensions/operations/vendor-models/index.ts";
import { configFile } from "../../../support/books.ts";
import { assertFails, assertOneLine, ended, outputOf } from "../../../support/command.ts";
import { checkConfig, VENDORS } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { quickest } from "../../../support/program.ts";
import { runHere } from "../../../support/run-here.ts";

const newFile = (): string => join(folder(), "gateway.json");
const read = (file: string) => JSON.parse(readFileSync(file, "utf8"));

/** Runs `init`. Also returns the path that the file has or would have. */
async function init(...args: readonly string[]) {
  const file = newFile();
  return { file, ...(await runHere(["init", ...args, "--config", file])) };
}

/** The arguments that a vendor without known models, or without an address, requires. */
function demandsOf(vendor: string): string[] {
  const { models } = VENDOR_ROWS.get(vendor)!;
  const hasAddress = VENDORS.get(vendor)?.base_url !== undefined;
  const address = `http://127.0.0.1:9/${vendor === "foundry" ? "anthropic/v1" : "v1"}`;
  return [
    ...(Object.keys(models).length > 0 ? [] : ["--models", "my-model"]),
    ...(hasAddress ? [] : ["--base-url", address]),
  ];
}

describe("the file that init writes", () => {
  it("exists for every vendor but the demo", () => {
    const known = [...VENDORS.keys()].filter((vendor) => vendor !== "demo");
    assert.deepEqual([...VENDOR_ROWS.keys()].sort(), known.sort());
  });

  for (const [vendor, row] of VENDOR_ROWS) {
    it(`for ${vendor} passes check without warnings once the variables are set, and has aliases for its models`, async () => {
      const { file, ...written } = await init("--vendor", vendor, ...demandsOf(vendor), "--json");
      assert.deepEqual([written.code, written.stderr], [0, ""]);
      const { variables, models, as_of, prices } = JSON.parse(written.stdout);
      const env = Object.fromEntries(variables.map((name: string) => [name, `sk-${name}`]));
      const checked = await runHere(["check", "--config", file], { env });
      assert.deepEqual([checked.code, checked.stderr], [0, ""]);
      const config = checkConfig(read(file), env);
      assert.deepEqual([...config.models.keys()], models);
      assert.ok(models.length > 0);
      for (const name of row.chat) assert.ok(Object.hasOwn(row.models, name), name);
      for (const name of row.reasoning) assert.equal(row.models[name]?.reasoning, true, name);
      if (row.as_of === undefined) return;
      assert.match(as_of, /^20\d\d-\d\d-\d\d$/);
      assert.match(prices, /^https:\/\//);
      for (const model of config.models.values()) assert.ok(model.context_tokens! >= 100_000);
      const priced = Object.values(row.models).map(({ price }) => price !== undefined);
      assert.equal(new Set(priced).size, 1, "all have prices, or none, which the operator sees");
    });
  }

  for (const [vendor, written, base] of [
    ["ollama", "http://127.0.0.1:9/v1", "http://127.0.0.1:9"],
    ["ollama", "http://127.0.0.1:9/api/chat/", "http://127.0.0.1:9"],
    ["anthropic", "https://proxy.example/v1/messages", "https://proxy.example"],
    ["gemini", "https://proxy.example/v1beta/models", "https://proxy.example"],
    ["azure", "https://x.openai.azure.com/openai/v1", "https://x.openai.azure.com"],
    ["vllm", "http://127.0.0.1:9/v1/chat/completions", "http://127.0.0.1:9/v1"],
    ["deepseek", "https://proxy.example/v1", "https://proxy.example/v1"],
    ["responses", "https://proxy.example/v1/responses", "https://proxy.example/v1"],
  ])
    it(`for ${vendor} at ${written} has the address to which the gateway appends its path`, async () => {
      const args = ["--vendor", vendor!, "--models", "m", "--base-url", written!];
      const { code, file } = await init(...args);
      assert.deepEqual([code, read(file).providers[vendor!].base_url], [0, base]);
    });

  it("for groq sends gpt-oss no reasoning_format, which these models reject", async () => {
    const { file } = await init("--vendor", "groq");
    const env = { GROQ_API_KEY: "sk-groq", GATEWAY_KEY: "sk-client" };
    const { models } = checkConfig(read(file), env);
    assert.ok(models.has("openai/gpt-oss-120b"));
    for (const { traits } of models.values()) assert.deepEqual(traits.extra, {});
  });

  it("has the models of --models, with figures for known ones", async () => {
    const names = ["deepseek-v4-pro", "my-own"];
    const made = await init("--vendor", "deepseek", "--models", names.join());
    assert.equal(made.code, 0);
    assert.match(made.stdout, /^Without a price: my-own\. /m);
    const { models, aliases } = read(made.file);
    assert.deepEqual(Object.keys(models), names);
    assert.deepEqual(models["my-own"], { provider: "deepseek" });
    assert.equal(models["deepseek-v4-pro"].context_tokens, 1_000_000);
    assert.deepEqual(aliases["auto/chat"].models, names);
    assert.deepEqual(aliases["auto/reasoning"].models, ["deepseek-v4-pro"]);
  });
});

describe("init", () => {
  it("prints the date of the prices, where to compare them, and the next steps; writes no secret", async () => {
    const { code, stdout, file } = await init("--vendor", "deepseek");
    assert.equal(code, 0);
    const { as_of = "", prices = "" } = VENDOR_ROWS.get("deepseek")!;
    for (const text of [as_of, prices, "export DEEPSEEK_API_KEY=", "export GATEWAY_KEY="])
      assert.ok(stdout.includes(text), text);
    for (const command of ["check", "check --live", "serve"])
      assert.ok(stdout.includes(`${command} --config`));
    const { providers, keys } = read(file);
    assert.equal(providers.deepseek.api_key, "$DEEPSEEK_API_KEY");
    assert.deepEqual(keys, [{ account: "main", key: "$GATEWAY_KEY" }]);
  });

  it("writes a file's name in the commands to run next so that a shell takes it as one", async () => {
    const file = join(folder(), "it's mine.json");
    const { stdout } = await runHere(["init", "--vendor", "openai", "--config", file]);
    assert.ok(stdout.includes(`serve --config '${file.replace("'", "'\\''")}'\n`), stdout);
  });

  it("overwrites nothing: one line, exit 1, and an unchanged file", async () => {
    const file = newFile();
    writeFileSync(file, "mine");
    const end = await runHere(["init", "--vendor", "openai", "--config", file]);
    assertFails(end, 1, /gateway\.json is there already, and init never overwrites/);
    assert.equal(readFileSync(file, "utf8"), "mine");
  });

  it("says why a file cannot be written, and leaves no partial file on a full disk", async (t) => {
    const file = newFile();
    // Collecting coverage would fail for lack of space too, and print an error.
    const limited = 'unset NODE_V8_COVERAGE; ulimit -f 0; exec "$0" "$@"';
    const command = ["sh", "-c", limited, process.execPath];
    const program = { ...quickest(folder()), command };
    const end = await ended(t, ["init", "--vendor", "openai", "--config", file], { program });
    assertOneLine(end, /cannot write .*gateway\.json: EFBIG/);
    assert.deepEqual([end.code, existsSync(file)], [1, false]);
  });

  it("without a vendor lists the vendors on a terminal", async () => {
    const stdout = outputOf(await runHere(["init"], { isTerminal: true }));
    for (const vendor of VENDOR_ROWS.keys()) assert.ok(stdout.includes(vendor), vendor);
  });

  for (const [what, args, words] of [
    ["no vendor, in a script", [], /^chat-gateway: init needs --vendor; vendors: openai, /],
    ["a vendor that there is not", ["--vendor", "x"], /no vendor "x"; vendors: openai, /],
    ["no models of a server of one's own", ["--vendor", "vllm"], /vllm needs --models: /],
    ["no address", ["--vendor", "generic", "--models", "m"], /generic needs --base-url: /],
    ["a model twice", ["--vendor", "vllm", "--models", "m,m"], /--models must be names/],
    ["no address at all", ["--vendor", "vllm", "--base-url", "here"], /--base-url must be an http/],
  ] as const) {
    it(`with ${what}: one line, exit 2, and no file`, async () => {
      const end = await init(...args);
      assertOneLine(end, words);
      assert.deepEqual([end.code, existsSync(end.file)], [2, false]);
    });
  }
});

describe("init --from-litellm", () => {
  const entry = (litellm_params: object) => ({ model_name: "m", litellm_params });
  const listOf = (...model_list: readonly object[]) => ({ model_list });
  const convert = (json: unknown, ...options: readonly string[]) =>
    init("--from-litellm", configFile(json as object), ...options);

  it("says so if nothing was left out", async () => {
    const { stdout } = await convert(listOf(entry({ model: "deepseek/deepseek-v4-pro" })));
    assert.match(stdout, /^Every field of .*some\.json was carried over\.$/m);
    assert.doesNotMatch(stdout, /Without a price/);
  });

  const gpt = (api_key: unknown) => listOf(entry({ model: "gpt-4.1", api_key }));
  const model = String.raw`model_list\[0\]\.litellm_params\.model`;
  const apiKey = String.raw`model_list\[0\]\.litellm_params\.api_key: expected`;
  const unserved =
    /model_list: expected a model that this gateway can serve: model_list\[0\]: the manual's page "bedrock" has such a provider/;
  for (const [what, json, words] of [
    ["a list", [], /expected an object with a model_list/],
    ["no model_list", {}, /model_list: expected a list/],
    ["an empty model_list", listOf(), /model_list: expected a model that/],
    ["no model that can be served", listOf(entry({ model: "bedrock/x" })), unserved],
    ["an entry without a name", listOf({}), /model_list\[0\]\.model_name: expected a text/],
    [
      "an entry without a model",
      listOf({ model_name: "m" }),
      new RegExp(`${model}: expected a text`),
    ],
    ["a key that is not a string", gpt(7), new RegExp(`${apiKey} a text`)],
    ["a variable without a name", gpt("os.environ/"), new RegExp(`${apiKey} os\\.environ/NAME`)],
    ["a digit before its name", gpt("os.environ/1KEY"), new RegExp(`${apiKey} os\\.environ/NAME`)],
  ] as const)
    it(`with ${what}: one line, exit 1, and no file`, async () => {
      const end = await convert(json);
      assertOneLine(end, words);
      assert.deepEqual([end.code, existsSync(end.file)], [1, false]);
    });

  it("excludes other sources: exit 2", async () => {
    const end = await convert({}, "--vendor", "openai");
    assertFails(end, 2, /init takes either --from-litellm or --vendor/);
  });

  it("names the package that YAML needs, and where a file is invalid YAML, without quoting it", async (t) => {
    const secret = "sk-ant-a-secret-in-plain-text";
    const cwd = folder();
    writeFileSync(join(cwd, "config.yaml"), `key: ${secret}\n`);
    async function assertFault(words: RegExp): Promise<void> {
      const end = await ended(t, ["init", "--from-litellm", "config.yaml"], { cwd });
      assertFails(end, 1, words);
      assert.ok(!end.stderr.includes(secret));
    }
    await assertFault(/needs the package 'yaml': run 'npm install --save-optional yaml'/);
    const fault = `Object.assign(new Error("${secret}"), { linePos: [{ line: 3, col: 7 }] })`;
    mkdirSync(join(cwd, "node_modules/yaml"), { recursive: true });
    const file = join(cwd, "node_modules/yaml/index.js");
    writeFileSync(file, `exports.parse = () => { throw ${fault}; };`);
    await assertFault(
      /config\.yaml is not YAML that can be read: the fault is at line 3, column 7/,
    );
  });

  it("says why a file cannot be read", async () => {
    const end = await init("--from-litellm", join(folder(), "none.yaml"));
    assertFails(end, 1, /cannot read .*none\.yaml: ENOENT/);
  });
});
