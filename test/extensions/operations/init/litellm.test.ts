// `init --from-litellm`: typical LiteLLM files become configurations that `check` accepts, and each
// field without an equivalent is listed with a reason.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { configFile } from "../../../support/books.ts";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { runHere } from "../../../support/run-here.ts";
import { outputOf } from "../../../support/command.ts";

const SECRET = "sk-ant-a-secret-in-plain-text";

const chat = (model_name: string, litellm_params: object, more: object = {}) => ({
  model_name,
  litellm_params,
  ...more,
});

/** A company's file: load balancing, fallbacks, a local server, clouds, embeddings. */
const COMPANY = {
  model_list: [
    chat(
      "gpt-4o",
      { model: "openai/gpt-4.1", api_key: "os.environ/OPENAI_EU", rpm: 480, tpm: 100_000 },
      { model_info: { id: "eu", mode: "chat", supports_vision: true } },
    ),
    chat("gpt-4o", { model: "openai/gpt-4.1", api_key: "os.environ/OPENAI_US", timeout: 300 }),
    chat(
      "claude",
      { model: "anthropic/claude-sonnet-4-6", api_key: SECRET, temperature: 0.2 },
      {
        model_info: {
          input_cost_per_token: 0.000003,
          output_cost_per_token: "1.5e-05",
          cache_read_input_token_cost: 3e-7,
          cache_creation_input_token_cost: 3.75e-6,
          max_input_tokens: 200_000,
          max_output_tokens: 64_000,
        },
      },
    ),
    chat("local", { model: "hosted_vllm/Qwen/qwen3", api_base: "http://10.0.0.5:8000/v1/" }),
    chat(
      "small",
      { model: "ollama_chat/llama3.2", api_base: "http://localhost:11434" },
      { model_info: { supports_function_calling: false, max_output_tokens: "4k", max_tokens: 4 } },
    ),
    chat("sagemaker", { model: "sagemaker/gpt-4o", api_base: "https://x.example.com" }),
    chat("all", { model: "openai/*" }),
    chat("embed", { model: "openai/text-embedding" }, { model_info: { mode: "embedding" } }),
  ],
  router_settings: {
    routing_strategy: "least-busy",
    model_group_alias: { "gpt-4": "gpt-4o", old: { model: "claude", hidden: true } },
    fallbacks: [{ "gpt-4o": ["claude", "sagemaker"] }, { claude: ["local"] }],
    num_retries: 2,
    allowed_fails: 3,
    cooldown_time: 30,
  },
  litellm_settings: { drop_params: true, success_callback: ["langfuse"], num_retries: 5 },
  general_settings: { master_key: "os.environ/MASTER", database_url: "postgres://u:p@h/db" },
  environment_variables: { LANGFUSE_SECRET_KEY: SECRET },
};

/** The options that name a LiteLLM file and the output file. */
function written(value: object) {
  const file = join(folder(), "gateway.json");
  return { file, args: ["init", "--from-litellm", configFile(value), "--config", file] };
}

/** Converts, and runs `check` on the result, which must be valid without a structural warning. */
async function convert(value: object): Promise<{ config: any; result: any }> {
  const { file, args } = written(value);
  const stdout = outputOf(await runHere([...args, "--json"]));
  const result = JSON.parse(stdout);
  const text = readFileSync(file, "utf8");
  assert.ok(!text.includes(SECRET) && !stdout.includes(SECRET));
  const env = Object.fromEntries(result.variables.map((name: string) => [name, `sk-${name}`]));
  const config = JSON.parse(text);
  checkConfig(config, env);
  return { config, result };
}

/** The paths that were left out. */
const pathsOf = ({ result }: { readonly result: any }): string[] =>
  result.left_out.map(({ path }: { path: string }) => path);

describe("a company's LiteLLM configuration", () => {
  it("keeps names, deployments, fallbacks, providers and keys, and what LiteLLM does by default", async () => {
    const { config, result } = await convert(COMPANY);
    const { models, ...others } = config;
    const gpt = ["gpt-4o/openai", "gpt-4o/openai-2", "claude/anthropic", "local"];
    assert.deepEqual(others, {
      providers: {
        openai: { vendor: "openai", api_key: "$OPENAI_EU" },
        "openai-2": { vendor: "openai", api_key: "$OPENAI_US" },
        anthropic: { vendor: "anthropic", api_key: "$ANTHROPIC_KEY" },
        vllm: { vendor: "vllm", base_url: "http://10.0.0.5:8000/v1" },
        ollama: { vendor: "ollama", base_url: "http://localhost:11434" },
      },
      aliases: {
        "gpt-4o": { models: gpt },
        claude: { models: ["claude/anthropic", "local"] },
        "gpt-4": { models: gpt },
        old: { models: ["claude/anthropic", "local"] },
      },
      keys: [{ account: "main", key: "$MASTER" }],
      limits: { rpm: null },
      compat: { tool_choice_default: "auto" },
      apis: ["messages", "responses"],
      retry: { max_retries: 2 },
      breaker: { failures: 4, cooldown_ms: 30_000 },
    });
    assert.deepEqual(Object.keys(models), [...gpt, "small"]);
    assert.deepEqual([result.models, result.aliases], [models, config.aliases].map(Object.keys));
    assert.deepEqual(result.variables, ["OPENAI_EU", "OPENAI_US", "ANTHROPIC_KEY", "MASTER"]);
  });

  it("keeps models' prices, sizes and capabilities", async () => {
    const { models } = (await convert(COMPANY)).config;
    const { price, ...claude } = models["claude/anthropic"];
    const cache = { input_cache_hit: 0.3, input_cache_write: 3.75 };
    assert.deepEqual(price, { ...cache, input_cache_miss: 3, output: 15 });
    assert.deepEqual([claude.context_tokens, claude.max_output_tokens], [200_000, 64_000]);
    assert.equal(claude.upstream_model, "claude-sonnet-4-6");
    assert.ok(models["gpt-4o/openai"].supports.includes("images"));
    assert.deepEqual(models.local, { provider: "vllm", upstream_model: "Qwen/qwen3" });
    assert.ok(!models.small.supports.includes("tools"));
    assert.equal(models.small.max_output_tokens, 4);
  });

  it("lists every field without an equivalent once", async () => {
    const { result } = await convert(COMPANY);
    assert.deepEqual(pathsOf({ result }).sort(), [
      "environment_variables",
      "general_settings.database_url",
      "litellm_settings.drop_params",
      "litellm_settings.num_retries",
      "litellm_settings.success_callback",
      "model_list[0].litellm_params.rpm",
      "model_list[0].litellm_params.tpm",
      "model_list[0].model_info.id",
      "model_list[1].litellm_params.timeout",
      "model_list[2].litellm_params.api_key",
      "model_list[2].litellm_params.temperature",
      "model_list[4].model_info.max_output_tokens",
      "model_list[5]",
      "model_list[6]",
      "model_list[7]",
      "router_settings.fallbacks[0].gpt-4o[1]",
      "router_settings.model_group_alias.old.hidden",
      "router_settings.routing_strategy",
    ]);
    for (const { reason } of result.left_out) assert.match(reason, /^[a-z].{15}/);
    const ofId = result.left_out.find(({ path }: { path: string }) => path.endsWith(".id"));
    assert.match(ofId.reason, /usage records name model and provider/); // receipts name no provider
  });

  it("prints what was left out by reason, and the next steps", async () => {
    const { stdout } = await runHere(written(COMPANY).args);
    const limits =
      /set models.M.limits of what the provider can take, [^\n]+:\n {4}model_list\[0\]\.litellm_params\.rpm\n {4}model_list\[0\]\.litellm_params\.tpm\n/;
    assert.match(stdout, limits);
    assert.match(stdout, /Without a price: local, small\. /);
    assert.match(stdout, /export MASTER=\.\.\.\n/);
    assert.ok(!stdout.includes(SECRET));
  });
});

describe("single fields of a LiteLLM configuration", () => {
  const one = (litellm_params: object, model_info: object = {}, more: object = {}) => ({
    model_list: [chat("m", litellm_params, { model_info })],
    ...more,
  });
  const withKey = (vendor: string, api_key: string) => ({ vendor, api_key });

  const AZURE: Record<string, string> = { "azure/responses/gpt-x": "https://x.azure.example/" };
  const atAddress = { model: "openai/m", api_base: "http://h/v1/chat/completions" };
  const custom = { model: "org/m", custom_llm_provider: "openai", base_url: "http://h/v1" };
  const elsewhere = { vendor: "generic", base_url: "http://h/v1" };
  for (const [what, params, provider, upstream] of [
    ["a name without a prefix", { model: "gpt-x" }, withKey("openai", "$OPENAI_API_KEY"), "gpt-x"],
    ["a route", { model: "openai/responses/gpt-x" }, withKey("openai", "$OPENAI_API_KEY"), "gpt-x"],
    ["a Claude", { model: "claude-x" }, withKey("anthropic", "$ANTHROPIC_API_KEY"), "claude-x"],
    ["openai/ at another address", atAddress, elsewhere, undefined],
    ["custom_llm_provider", custom, elsewhere, "org/m"],
    ["another name", { model: "dashscope/q" }, withKey("qwen", "$DASHSCOPE_API_KEY"), "q"],
    ["Gemini", { model: "gemini/g", api_key: "os.environ/G" }, withKey("gemini", "$G"), "g"],
    [
      "an empty key",
      { model: "openai/m", api_key: "", api_base: "http://h/v1" },
      elsewhere,
      undefined,
    ],
  ] as const)
    it(`${what} finds its vendor`, async () => {
      const { config } = await convert(one(params));
      assert.deepEqual(Object.values(config.providers), [provider]);
      assert.equal(config.models.m.upstream_model, upstream);
    });

  for (const [model, mode, dialect] of [
    ["openai/responses/gpt-x", undefined, "responses"],
    ["openai/gpt-x", "responses", "responses"],
    ["azure/responses/gpt-x", undefined, "responses"],
    ["openai/gpt-x", "chat", undefined],
    ["groq/responses/x", undefined, undefined],
  ] as const)
    it(`${model} of the mode ${mode} is called by the API ${dialect}`, async () => {
      const { config } = await convert(one({ model, api_base: AZURE[model] }, { mode }));
      assert.equal(config.models.m.dialect, dialect);
    });

  it("an address loses the path that the gateway appends, and Azure's version stays", async () => {
    const azure = { model: "azure/gpt", api_base: "https://x.azure.example/", api_key: SECRET };
    const made = await convert({
      model_list: [
        chat("claude", { model: "anthropic/claude-sonnet-4-6", api_base: "https://p.example/v1/" }),
        chat("g", { model: "gemini/g", api_base: "https://g.example/v1beta/models/g" }),
        chat("one", { ...azure, api_version: "2024-10-21" }),
        chat("two", { ...azure, api_version: "2025-01-01" }),
      ],
    });
    const { anthropic, gemini, azure: one, "azure-2": two } = made.config.providers;
    assert.equal(gemini.base_url, "https://g.example");
    assert.equal(anthropic.base_url, "https://p.example");
    assert.equal(one.base_url, "https://x.azure.example");
    assert.deepEqual([one.api_version, two.api_version], ["2024-10-21", "2025-01-01"]);
    assert.ok(!pathsOf(made).some((path: string) => path.includes("api_version")));
  });

  it("an invalid entry, or text in a variable, does not affect the others", async () => {
    const azure = { model: "azure/x", api_base: "https://x.example" };
    const { config, result } = await convert({
      model_list: [
        chat("none", {}),
        chat("hidden", { model: "openai/x", api_base: "os.environ/BASE" }),
        chat("azure", { ...azure, api_version: "os.environ/VERSION" }),
        chat("one", { model: "openai/gpt-4.1" }),
        chat("nowhere", { model: "openai_like/x" }),
        chat("query", { model: "openai/x", api_base: "https://h/?api-version=2024-10-21" }),
        chat("picture", { ...azure, model: "azure/" }),
        chat("variable", { model: "os.environ/MODEL", custom_llm_provider: "openai" }),
        chat("express", { model: "gemini/g", api_base: "https://h/v1/publishers/google" }),
        chat("flash", { model: "gemini-2.5-flash" }),
        chat("vectors", { model: "openai/text-embedding-3-small" }),
        chat("open vectors", {
          model: "hosted_vllm/Qwen/Qwen3-Embedding-8B",
          api_base: "http://h",
        }),
      ],
    });
    assert.deepEqual(Object.keys(config.models), ["one"]);
    const inVariable = "is in a variable: only keys may be, so write the text itself";
    assert.deepEqual(result.left_out, [
      { path: "model_list[0].litellm_params.model", reason: "expected a text with a model's name" },
      { path: "model_list[1]", reason: `its api_base ${inVariable}` },
      { path: "model_list[2]", reason: `its api_version ${inVariable}` },
      { path: "model_list[4]", reason: "it has no api_base, and there is no usual one" },
      {
        path: "model_list[5]",
        reason: "its api_base is not an http:// or https:// address without credentials or query",
      },
      { path: "model_list[6].litellm_params.model", reason: "expected a text with a model's name" },
      { path: "model_list[7]", reason: `its model ${inVariable}` },
      {
        path: "model_list[8]",
        reason: "this gateway calls /v1beta of Gemini, and its api_base is /v1",
      },
      { path: "model_list[9]", reason: 'the manual\'s page "vertex" has such a provider' },
      { path: "model_list[10]", reason: "this gateway serves chat only" },
      { path: "model_list[11]", reason: "this gateway serves chat only" },
    ]);
  });

  it("a name may be one that objects inherit", async () => {
    for (const name of ["__proto__", "constructor"]) {
      const params = { model: "openai/x" };
      const single = await convert({ model_list: [chat(name, params)] });
      assert.ok(Object.hasOwn(single.config.models, name));
      const double = await convert({ model_list: [chat(name, params), chat(name, params)] });
      assert.ok(Object.hasOwn(double.config.aliases, name));
    }
  });

  it("a price that cannot be billed exactly, or is incomplete, is left out", async () => {
    const full = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 };
    for (const info of [
      { ...full, cache_creation_input_token_cost: 1e-13 },
      { ...full, cache_read_input_token_cost: -1e-6 },
      { ...full, input_cost_per_token: 1.1 },
      { input_cost_per_token: 1e-13, output_cost_per_token: 1e-6 },
      { input_cost_per_token: 1e-6 },
      { input_cost_per_token: "free", output_cost_per_token: 1e-6 },
    ]) {
      const made = await convert(one({ model: "openai/x" }, info));
      assert.equal(made.config.models.m.price, undefined);
      assert.deepEqual(made.result.unpriced, ["m"]);
      const paths = Object.keys(info).map((name) => `model_list[0].model_info.${name}`);
      assert.deepEqual(pathsOf(made), paths);
    }
  });

  it("a price for long prompts comes from the vendor unless the file sets prices", async () => {
    const info = { input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 };
    const known = await convert(one({ model: "openai/gpt-5.5" }));
    assert.equal(known.config.models.m.long_prompts[0].above_tokens, 272_000);
    const above = {
      input_cost_per_token_above_272k_tokens: 2e-6,
      cache_creation_input_token_cost_above_200k_tokens: 2e-6,
    };
    const perImage = { input_cost_per_image_above_128k_tokens: 2e-6 };
    const ofAll = { ...info, ...above, ...perImage };
    const made = await convert(one({ model: "openai/gpt-5.5" }, ofAll));
    assert.deepEqual(made.config.models.m.price, { input_cache_miss: 1, output: 2 });
    assert.equal(made.config.models.m.long_prompts, undefined);
    const reason = "set models.M.long_prompts";
    const paths = Object.keys(above).map((name) => `model_list[0].model_info.${name}`);
    const leftOut = paths.map((path) => ({ path, reason }));
    const path = "model_list[0].model_info.input_cost_per_image_above_128k_tokens";
    leftOut.push({ path, reason: "this gateway has no such setting" });
    assert.deepEqual(made.result.left_out, leftOut);
  });

  it("for each vendor, a capability that its API lacks is left out", async () => {
    const names = "function_calling response_schema vision audio_input pdf_input".split(" ");
    const abilities = Object.fromEntries(names.map((name) => [`supports_${name}`, true]));
    const place = { api_base: "https://h.example", api_version: "2024-10-21" };
    for (const vendor of ["openai", "gemini", "cohere", "anthropic", "foundry", "ollama"]) {
      const made = await convert(one({ model: `${vendor}/x`, ...place }, abilities));
      const lacks = ["supports_audio_input", "supports_pdf_input"].filter((name) =>
        pathsOf(made).includes(`model_list[0].model_info.${name}`),
      );
      assert.equal(lacks.length, { anthropic: 1, foundry: 1, ollama: 2 }[vendor] ?? 0, vendor);
    }
  });

  it("sections and figures with a wrong type or out of range are left out", async () => {
    const price = { input_cost_per_token: true, output_cost_per_token: true };
    for (const router_settings of [
      { allowed_fails: "two", cooldown_time: -1, num_retries: 11 },
      { allowed_fails: 0.5, cooldown_time: true, num_retries: 0.5 },
      { allowed_fails: "", cooldown_time: " ", num_retries: "" },
    ]) {
      const more = { router_settings, litellm_settings: [] };
      const made = await convert(one({ model: "openai/x", ...price }, {}, more));
      const { retry, breaker, models } = made.config;
      assert.deepEqual([retry, breaker, models.m.price], [undefined, undefined, undefined]);
      assert.deepEqual(pathsOf(made).sort(), [
        "litellm_settings",
        ...Object.keys(price).map((name) => `model_list[0].litellm_params.${name}`),
        ...Object.keys(router_settings).map((name) => `router_settings.${name}`),
      ]);
    }
  });

  it("a figure of the router counts before the library's, and is named by what is here", async () => {
    const library = { num_retries: 3, allowed_fails: 4, cooldown_time: 5 };
    const params = { model: "openai/x", num_retries: 1, extra_headers: { a: "b" }, top_k: 5 };
    const more = { router_settings: { allowed_fails: 0 }, litellm_settings: library };
    const { config, result } = await convert(one(params, {}, more));
    assert.deepEqual(config.retry, { max_retries: 3 });
    assert.deepEqual(config.breaker, { failures: 1, cooldown_ms: 5000 });
    assert.deepEqual(
      result.left_out.map(({ path, reason }: any) => `${path}: ${reason}`),
      [
        "model_list[0].litellm_params.num_retries: retry.max_retries, also of a provider, is an integer from 0 to 10",
        "model_list[0].litellm_params.extra_headers: set headers of a provider or model",
        "model_list[0].litellm_params.top_k: clients send it; models.M.extra sends it in every request, in place of theirs",
        "litellm_settings.allowed_fails: router_settings has it, too",
      ],
    );
  });

  it("the vendor's usual variable is one key, whether it is stated or not", async () => {
    const stated = { model: "openai/gpt-4.1-mini", api_key: "os.environ/OPENAI_API_KEY" };
    const model_list = [chat("a", { model: "openai/gpt-4.1" }), chat("b", stated)];
    const { config } = await convert({ model_list });
    assert.deepEqual(Object.keys(config.providers), ["openai"]);
  });

  it("a plain-text secret never gets a variable that the file uses for another secret", async () => {
    const model_list = ["os.environ/OPENAI_2_KEY", SECRET].map((api_key, at) =>
      chat(`m${at}`, { model: "openai/x", api_key }),
    );
    const { config } = await convert({ model_list, general_settings: { master_key: SECRET } });
    assert.equal(config.providers.openai.api_key, "$OPENAI_2_KEY");
    assert.equal(config.providers["openai-2"].api_key, "$OPENAI_2_KEY_2");
    assert.equal(config.keys[0].key, "$GATEWAY_KEY");
  });

  it("circular fallbacks end", async () => {
    const model_list = ["a", "b"].map((name) => chat(name, { model: `openai/${name}` }));
    const router_settings = { fallbacks: [{ a: ["b"] }, { b: ["a"] }] };
    const { a, b } = (await convert({ model_list, router_settings })).config.aliases;
    assert.deepEqual([a.models, b.models.toReversed()], Array(2).fill(["a/openai", "b/openai"]));
  });

  it("fallbacks and aliases of an unknown model are left out", async () => {
    const router_settings = {
      fallbacks: [{ gone: ["m"], m: "gone" }],
      model_group_alias: { old: "gone", older: { model: 5 }, m: "m" },
    };
    const litellm_settings = { fallbacks: { m: ["m"] } };
    const settings = { router_settings, litellm_settings };
    const made = await convert(one({ model: "openai/x" }, {}, settings));
    assert.deepEqual([Object.keys(made.config.models), made.config.aliases], [["m"], {}]);
    assert.deepEqual(pathsOf(made).sort(), [
      "litellm_settings.fallbacks",
      "router_settings.fallbacks[0].gone",
      "router_settings.fallbacks[0].m",
      "router_settings.model_group_alias.m",
      "router_settings.model_group_alias.old",
      "router_settings.model_group_alias.older",
    ]);
  });

  it("a text where an object belongs is left out, and listed", async () => {
    const router_settings = { fallbacks: ["m"], model_group_alias: "m" };
    const made = await convert({
      ...one({ model: "openai/x" }, {}, { router_settings, general_settings: "m" }),
      model_list: [{ ...chat("m", { model: "openai/x" }), model_info: "m" }],
    });
    assert.deepEqual(pathsOf(made), [
      "model_list[0].model_info",
      "router_settings.fallbacks[0]",
      "router_settings.model_group_alias",
      "general_settings",
    ]);
  });

  it("an alias that is empty or a model's name here is left out", async () => {
    const model_list = ["a", "b"].map((name) => chat("m", { model: `openai/${name}` }));
    const model_group_alias = { "m/openai": "m", "": "m", old: "m" };
    const made = await convert({ model_list, router_settings: { model_group_alias } });
    const numbered = ["m/openai", "m/openai-2"];
    assert.deepEqual(made.config.aliases, { m: { models: numbered }, old: { models: numbered } });
    assert.equal(made.config.models["m/openai-2"].upstream_model, "b");
    assert.deepEqual(pathsOf(made), [
      "router_settings.model_group_alias.m/openai",
      "router_settings.model_group_alias.",
    ]);
  });

  it("of several fallback lists for one name the first applies, as in LiteLLM", async () => {
    const model_list = ["a", "b", "c"].map((name) => chat(name, { model: `openai/${name}` }));
    const router_settings = { fallbacks: [{ a: ["b"] }, { a: ["c"] }] };
    const litellm_settings = { fallbacks: [{ a: ["c"] }, { b: ["c"] }] };
    const made = await convert({ model_list, router_settings, litellm_settings });
    assert.deepEqual(made.config.aliases.a.models, ["a/openai", "b/openai", "c"]);
    const leftOut = pathsOf(made);
    assert.deepEqual(leftOut, [
      "router_settings.fallbacks[1].a",
      "litellm_settings.fallbacks[0].a",
    ]);
  });
});
