// gateway.json: the default of each field, which values are rejected and with which path, where a
// configuration comes from, and that no message contains a secret.

import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { LoadOptions } from "../../src/config/load.ts";
import { configSchema } from "../../src/config/schema.ts";
import type { Environment } from "../../src/config/secrets.ts";
import type { Config } from "../../src/core/config.ts";
import { sha256 } from "../../src/core/hash.ts";
import { extensions as entries } from "../../src/extensions.ts";
import { checking, checkConfig, loadConfig, VENDORS, formats } from "../support/config.ts";
import { ValidationError, pathText } from "../../src/core/schema/checker.ts";
import { folder } from "../support/folder.ts";
import { merge } from "../support/gateway.ts";
import { thrownBy } from "../support/wait.ts";

/** The smallest valid configuration. */
const MINIMAL = { providers: {}, models: {} };

const LAB = {
  providers: { lab: { dialect: "openai", base_url: "http://127.0.0.1:8000/v1" } },
  models: { m: { provider: "lab" } },
  aliases: {},
};

const HEX = "0123456789abcdef".repeat(4);

/** The validation issues that `run` throws. */
const faultsOf = (run: () => unknown): { path: string; code: string; message: string }[] =>
  thrownBy(ValidationError, run).issues.map((issue) => ({ ...issue, path: pathText(issue.path) }));

const refusedConfig = (over: object, env: Environment = {}) =>
  faultsOf(() => checkConfig(merge(LAB, over), env));
const pathsOf = (over: object, env: Environment = {}) =>
  refusedConfig(over, env).map(({ path }) => path);
const accepted = (over: object, env: Environment = {}) => checkConfig(merge(LAB, over), env);
/** An object with the value at a dotted path. */
const nest = (path: string, value: unknown): object =>
  path
    .split(".")
    .reduceRight((inner, step) => (step === "" ? inner : { [step]: inner }), value) as object;

/** A configuration with nothing but defaults. */
const DEFAULTS = checkConfig(MINIMAL, {});

/** The fields of an account or key without a budget or a token limit. */
const NO_BUDGET = { budget: undefined, tokens_per_minute: undefined };

// test/manual.test.ts compares the defaults, types and bounds in the manual's page "Configuration"
// with the schema.
describe("defaults", () => {
  it("an empty section, an absent one and null mean the same", () => {
    const names = "aliases server limits spend usage timeouts retry breaker compat".split(" ");
    for (const value of [{}, null, undefined]) {
      const sections = Object.fromEntries(names.map((name) => [name, value]));
      assert.deepEqual(checkConfig({ ...MINIMAL, ...sections }, {}), DEFAULTS);
    }
  });

  it("setting one field leaves the others at their defaults", () => {
    const { timeouts, server } = accepted({ timeouts: { idle_ms: 1 }, server: { port: 0 } });
    assert.deepEqual(timeouts, { ...DEFAULTS.timeouts, idle_ms: 1 });
    assert.deepEqual(server, { ...DEFAULTS.server, port: 0 });
  });

  it("a key's text is dropped, its digest is kept", () =>
    assert.deepEqual(accepted({ keys: [{ account: "acme", key: "sk-secret" }] }).keys, [
      {
        account: "acme",
        rpm: undefined,
        models: undefined,
        ...NO_BUDGET,
        digest: sha256("sk-secret"),
      },
    ]));
});

describe("ranges", () => {
  const MISS = { input_cache_miss: 1, output: 1 };
  const prices = {
    good: [0, 0.000001, 0.28, 1_000_000, 999_999.999999, 0.1],
    bad: [-0.01, 1_000_001, 0.0000001, 0.1234567, "0.28"],
  };
  for (const [path, good, bad, beside = {}] of [
    ["models.m.price.input_cache_miss", prices.good, prices.bad, { output: 1 }],
    ["models.m.price.input_cache_write", prices.good, prices.bad, MISS],
    ["models.m.price.input_cache_write_1h", prices.good, prices.bad, MISS],
    ["currency", ["USD", "EUR"], ["usd", "US", "EURO", "", "$", 1]],
    ["data_dir", ["./data"], ["", "./\ud800"]],
    [
      "server.host",
      ["0.0.0.0", "::1", "fe80::1%eth0", "gateway.internal", "localhost"],
      ["", 1, "http://x", "x:80", "x/y", "a b", "127.0.0.1:80", "[::1]"],
    ],
    [
      "providers.lab.path",
      ["/v1/x", "/{model}"],
      ["v1", "/{region}", "https://x/v1", "/{modle}", ""],
    ],
    ["providers.lab.rename.max_tokens", ["max_completion_tokens"], ["model", "seed", ""]],
    ["providers.lab.rename.messages", [], ["turns"]],
    ["providers.lab.headers.X-Team", ["search", ""], ["é", "a\nb"]],
    ["providers.lab.headers.Content-Length", [], ["0"]],
    ["providers.lab.headers.transfer-encoding", [], ["chunked"]],
    ["providers.lab.headers.accept-encoding", [], ["gzip"]],
    ["providers.lab.headers.authorization", [], ["Bearer x"]],
    ["models.m.tool_choice", ["any"], ["never"]],
    ["models.m.system_first", [true, false], ["yes"]],
    ["models.m.alternates", [true, false], ["yes"]],
    ["models.m.max_call_id", [32, 64], [31, 40.5, "40"]],
    ["models.m.max_temperature", [0, 2], [2.1]],
    ["models.m.min_top_p", [0, 0.01, 1], [-0.1, 1.1]],
    ["models.m.echo", ["none"], ["thoughts"]],
    ["models.m.stream_only", [true], ["yes"]],
    ["providers.lab.cache_header", ["x-session"], ["Host", "X-Api-Key", "a b", ""]],
    [
      "providers.lab.base_url",
      ["http://x", "https://api.x.com/v1", "http://[::1]:8000/v1"],
      [
        ...["", "x", "api.x.com/v1", "ftp://x/", "file:///etc/passwd", "http://user:pass@x/"],
        ...["http://user@x/", "http://x/?key=1", "http://x/#a", 1, true],
      ],
    ],
  ] as readonly (readonly [string, readonly unknown[], readonly unknown[], object?])[]) {
    it(`${path}: ${good.join(", ")}`, () => {
      const parent = path.slice(0, Math.max(0, path.lastIndexOf(".")));
      const over = (value: unknown) => merge(nest(parent, beside), nest(path, value)) as object;
      for (const value of good) assert.ok(accepted(over(value)), String(value));
      for (const value of bad) assert.deepEqual(pathsOf(over(value)), [path], String(value));
    });
  }

  it("a trailing slash of an address is dropped", () => {
    const { providers } = accepted(nest("providers.lab.base_url", "http://x/v1//"));
    assert.equal(providers.get("lab")?.base_url, "http://x/v1");
  });

  it("tls: both files or neither", () => {
    const tls = { cert_file: "c", key_file: "k" };
    assert.deepEqual(accepted({ server: { tls } }).server, { ...DEFAULTS.server, tls });
    assert.deepEqual(pathsOf({ server: { tls: { cert_file: "c" } } }), ["server.tls.key_file"]);
  });

  it("keys: a digest is 64 lower-case hexadecimal digits", () => {
    assert.equal(accepted({ keys: [{ account: "a", sha256: HEX }] }).keys[0]?.digest, HEX);
    for (const bad of [HEX.slice(1), `${HEX}0`, HEX.toUpperCase(), "", `${HEX.slice(1)}g`]) {
      assert.deepEqual(pathsOf({ keys: [{ account: "a", sha256: bad }] }), ["keys[0].sha256"]);
    }
  });
});

it("unknown fields are rejected in every object, as the file's JSON Schema says", () => {
  type Schema = Record<string, any>;
  const { schema } = configSchema(checking, formats);
  const names: string[] = [];
  const visit = (path: string, { properties, additionalProperties, ...rest }: Schema): void => {
    if (properties) {
      assert.equal(additionalProperties, false, path);
      names.push(path);
    }
    const { items = [], anyOf = [] } = rest;
    for (const inner of [items, anyOf].flat()) visit(path, inner);
    const named = { ...properties, ...(additionalProperties && { "*": additionalProperties }) };
    for (const [name, inner] of Object.entries<Schema>(named)) visit(`${path}.${name}`, inner);
  };
  visit("", schema);
  for (const path of ["", ".keys", ".providers.*.retry", ".models.*.price", ".accounts.*"])
    assert.ok(names.includes(path), path);
  assert.deepEqual(schema["required"], ["providers", "models"]);
});

it("all issues are reported at once, each with its path, in the order of the file's sections", () =>
  assert.deepEqual(
    faultsOf(() =>
      checkConfig(
        {
          server: { port: "8080", drain_ms: -1 },
          providers: {
            a: { dialect: "carrier-pigeon", base_url: "nowhere" },
            "b c": { dialect: "openai", api_key: "$UNSET" },
          },
          models: { m: { provider: "", price: { output: -1 } } },
          aliases: { neither: {}, none: { models: [] } },
          keys: [{ account: "", key: "k" }],
          limits: { rpm: -1 },
          colour: "red",
        },
        {},
      ),
    ).map(({ path }) => path),
    [
      ...["server.port", "server.drain_ms", "providers.a.dialect", "providers.a.base_url"],
      ...['providers["b c"].api_key', "models.m.provider", "models.m.price.input_cache_miss"],
      ...["models.m.price.output", "aliases.neither", "aliases.none.models", "keys[0].account"],
      ...["limits.rpm", "colour", 'providers["b c"].base_url'],
    ],
  ));

it("issues across sections are reported too", () =>
  assert.deepEqual(
    pathsOf({
      providers: { far: { dialect: "openai" }, claude: { base_url: "https://x" } },
      models: { n: { provider: "nobody" } },
      aliases: { m: { policy: "value" }, a: { models: ["m", "ghost"] } },
      keys: [
        { account: "x", key: "k" },
        { account: "y", key: "k", models: ["m", "a", "ghost"] },
      ],
    }),
    [
      ...["providers.far.base_url", "providers.claude.dialect", "models.n.provider"],
      ...["aliases.m", "aliases.a.models[1]", "keys[1].models[2]", "keys[1]"],
    ],
  ));

describe("references", () => {
  const x = (provider: object) => ({ providers: { x: provider } });
  const openai = (more: object) => x({ dialect: "openai", base_url: "https://x", ...more });
  const of = (vendor: string, more: object = {}) => x({ vendor, api_key: "k", ...more });
  const keys = (...keys: readonly object[]) => ({ keys });
  const k = { account: "a", key: "k" };
  const a = (alias: object) => ({ aliases: { a: alias, b: { policy: "value" } } });
  const store = (url: string) => nest("limits.store", url);
  const REDIS = /"memory" or the address of a Redis or Valkey server \(redis:\/\/\.\.\.\)/;
  const credentials = { type: "command", run: ["x"], ttl_s: 60 };
  const one = { key: "a" };
  const rename = { seed: "n", stop: "n" };
  const logprobs = { supports: ["tools", "logprobs"] };
  const THINKING = /the anthropic dialect knows adaptive, budget, none/;
  for (const [path, words, over] of [
    ["models.n.provider", /"nobody"/, nest("models.n.provider", "nobody")],
    ["models.n.provider", /"toString"/, nest("models.n.provider", "toString")],
    ["aliases.a.models[1]", /ghost/, a({ models: ["m", "ghost"] })],
    ["aliases.a.models[1]", /twice/, a({ models: ["m", "m"] })],
    ["aliases.a.models[0]", /no model named "b"/, a({ models: ["b"] })],
    ["aliases.m", /same name/, nest("aliases.m.policy", "value")],
    ["aliases.a", /exactly one of policy and models/, a({ policy: "value", models: ["m"] })],
    ["aliases.a", /exactly one of policy and models/, a({})],
    ["keys[0].models[0]", /no model or alias named "ghost"/, keys({ ...k, models: ["ghost"] })],
    ["keys[0]", /exactly one of key and sha256/, keys({ ...k, sha256: HEX })],
    ["keys[0]", /exactly one of key and sha256/, keys({ account: "a" })],
    ["keys[1]", /twice/, keys(k, { ...k, account: "b" })],
    ["keys[0].account", /half of a character/, keys({ ...k, account: "a\ud800" })],
    ["models.m.upstream_model", /half of a character/, nest("models.m.upstream_model", "\ud800")],
    ["providers.x.path", /\{region\} needs the region of the p/, openai({ path: "/{region}" })],
    ["models.m.stream_path", /\{project\} needs/, nest("models.m.stream_path", "/{project}")],
    ["providers.x.path", /must not have a fragment/, openai({ path: "/x#y" })],
    ["providers.x.path", /half of a character/, openai({ path: "/\ud800" })],
    ["providers.x.query.a", /half of a character/, openai({ query: { a: "\ud800" } })],
    ["keys[1]", /twice/, keys(k, { account: "b", sha256: sha256("k") })],
    ["providers.x.base_url", /required/, x({ dialect: "openai" })],
    ["providers.x.base_url", /required/, x({ vendor: "llama.cpp" })],
    ["providers.x.dialect", /required where no vendor/, x({ base_url: "https://x" })],
    ["providers.x.dialect", /this vendor uses "gemini"/, of("gemini", { dialect: "openai" })],
    ["providers.x.dialect", /expected one of/, openai({ dialect: "morse" })],
    ["providers.x.vendor", /expected one of/, of("acme", { base_url: "https://x" })],
    ["providers.x.vendor", /required for the dialect "converse"/, openai({ dialect: "converse" })],
    ["providers.x.thinking", THINKING, of("anthropic", { thinking: "level" })],
    ["models.m.thinking", /the openai dialect knows/, nest("models.m.thinking", "adaptive")],
    [
      "providers.x.supports[1]",
      /the anthropic dialect does not know it/,
      of("anthropic", logprobs),
    ],
    // A model's own dialect takes precedence.
    [
      "providers.x.thinking",
      THINKING,
      {
        ...of("vertex", { thinking: "level", project: "p", location: "l" }),
        models: { m: { provider: "x", upstream_model: "claude-opus-4-5", thinking: null } },
      },
    ],
    ["providers.x.auth", /no request would carry the key/, openai({ auth: "none", api_key: "k" })],
    [
      "providers.x.auth",
      /cannot be used with credentials/,
      openai({ auth: "bearer", credentials }),
    ],
    ["providers.x.api_keys[1].key", /is in the list twice/, openai({ api_keys: [one, one] })],
    ["providers.x.rename.stop", /is the name of another field/, openai({ rename })],
    ["providers.x.headers.A", /is set twice/, openai({ headers: { a: "x", A: "y" } })],
    ["models.m.supports[0]", /expected one of/, nest("models.m.supports", ["x"])],
    ["models.m.omit[0]", /expected one of/, nest("models.m.omit", ["messages"])],
    ["models.m.efforts[0]", /a string that is not empty/, nest("models.m.efforts", [""])],
    [
      "providers.lab.api_key",
      /^expected the path of a file after \$file:$/,
      nest("providers.lab.api_key", "$file:"),
    ],
    ["limits.store", REDIS, store("http://127.0.0.1")],
    ["limits.store", REDIS, store("redis://")],
    ["limits.store", REDIS, store("redis://:a%zz@h:1")],
    ["limits.store", REDIS, store("redis://h:1/db")],
    ["limits.store", REDIS, store("redis://h?db=3")],
    ["upstream.proxy", /a % that encodes nothing/, nest("upstream.proxy", "http://u:p%zz@h:1")],
    ["limits.on_error", /"local".*"refuse"/, nest("limits.on_error", "ignore")],
    ["usage.store", /"file" or the address of a Post/, nest("usage.store", "mysql://127.0.0.1")],
    ["usage.store", /sslmode/, nest("usage.store", "postgres://127.0.0.1/db?ssl=require")],
  ] as readonly (readonly [string, RegExp, object])[]) {
    it(`${path}: ${words.source}, in ${JSON.stringify(over)}`, () => {
      const [fault, ...others] = refusedConfig(over);
      assert.deepEqual([fault?.path, others], [path, []]);
      assert.match(fault?.message ?? "", words);
    });
  }

  it("keys of a provider that are not objects: each is named once", () =>
    assert.deepEqual(
      pathsOf(openai({ api_keys: ["a", "b"] })),
      [0, 1].map((at) => `providers.x.api_keys[${at}]`),
    ));

  it("references to existing names are valid", () => {
    const config = accepted({
      aliases: { a: { models: ["m"] }, off: { policy: "reasoning", enabled: false } },
      keys: [{ account: "new", key: "k", models: ["m", "a", "off"] }],
    });
    assert.deepEqual(config.keys[0]?.models, ["m", "a", "off"]);
  });
});

describe("secrets", () => {
  const lab = (provider: object) => ({ providers: { lab: provider } });
  const WRONG =
    "expected printable ASCII without spaces or line ends in the environment variable K";
  for (const query of [
    "ssl=true",
    "ssl=no-verify",
    "ssl=require&sslmode=require",
    "sslmode=x&ssl=on",
  ])
    it(`a database's address may have ${query}`, () => {
      const store = `postgres://127.0.0.1/db?${query}`;
      const { usage } = accepted(nest("usage.store", store)) as unknown as {
        usage: Record<string, unknown>;
      };
      assert.equal(usage["store"], store);
    });

  for (const [place, over, found] of [
    [
      "providers.lab.api_key",
      (api_key: string) => lab({ api_key }),
      ({ providers }: Config) => providers.get("lab")?.api_key,
    ],
    [
      "keys[0].key",
      (key: string) => ({ keys: [{ account: "a", key }] }),
      ({ keys }: Config) => keys[0]?.digest,
    ],
  ] as const) {
    for (const [text, env, secret] of [
      ["$K", { K: "sk-1" }, "sk-1"],
      ["sk-literal", {}, "sk-literal"],
      ["sk-$K", { K: "only as a whole string" }, "sk-$K"],
      ["$K", { K: "$OTHER", OTHER: "looked up once" }, "$OTHER"],
    ] as const)
      it(`${place}: ${text} is ${secret} where ${JSON.stringify(env)}`, () => {
        const expected = place.startsWith("keys") ? sha256(secret) : secret;
        assert.equal(found(accepted(over(text), env)), expected);
      });

    for (const [env, message] of [
      [{}, "the environment variable K is not set"],
      [{ K: undefined }, "the environment variable K is not set"],
      [{ K: "" }, "the environment variable K is empty"],
      [{ K: "sk-a\n" }, WRONG],
      [{ K: "sk a" }, WRONG],
      [{ K: "sk-\u00e9" }, WRONG],
      [{ K: '"sk-a"' }, "expected no quotes around the secret in the environment variable K"],
    ] as const)
      it(`${place}: $K is a fault where ${JSON.stringify(env)}`, () =>
        assert.deepEqual(refusedConfig(over("$K"), env), [
          { path: place, code: "invalid_value", message },
        ]));

    it(`${place}: a variable as LiteLLM names it is no secret, but a fault that says how`, () =>
      assert.match(refusedConfig(over("os.environ/K"), { K: "k" })[0]!.message, /\$ and the name/));

    for (const text of ["", "$constructor", "$__proto__", "$toString"])
      it(`${place}: ${JSON.stringify(text)} is no secret, although objects inherit the name`, () =>
        assert.deepEqual(pathsOf(over(text)), [place]));
  }

  const C = "CANARY";
  const twice = (key: string) => ({ keys: ["a", "b"].map((account) => ({ account, key })) });
  for (const [place, over, env] of [
    ["a key that is listed twice", twice(C), {}],
    ["a key that begins with $ and is no variable's name", lab({ api_key: `$2b$10$${C}` }), {}],
    ["a key beside a digest", { keys: [{ account: "a", key: C, sha256: HEX }] }, {}],
    ["a key in the digest's place", { keys: [{ account: "a", sha256: C }] }, {}],
    ["a key in a list", { keys: [{ account: "a", key: [C] }] }, {}],
    ["keys as an object", { keys: { [C]: C } }, {}],
    ["a key without an account", { keys: [{ key: C }] }, {}],
    ["a misspelt field that holds a key", { keys: [{ account: "a", key: "k", kee: C }] }, {}],
    ["a provider's key in a misspelt field", lab({ apikey: C }), {}],
    ["one from the environment beside a fault", lab({ api_key: "$K", thinking: "x" }), { K: C }],
    ["a password in an address", lab({ base_url: `http://user:${C}@x/` }), {}],
    ["a key in an address's query", lab({ base_url: `http://x/?key=${C}` }), {}],
    ["a broken address with a password", lab({ base_url: `http://user:${C}@` }), {}],
    ["a store's password", nest("limits.store", `mysql://:${C}@x`), {}],
  ] as const) {
    it(`${place} does not appear in messages`, () => {
      const faults = refusedConfig(over, env);
      assert.ok(faults.length > 0);
      assert.doesNotMatch(JSON.stringify(faults), /CANARY/);
      assert.throws(
        () => checkConfig(merge(LAB, over), env),
        (error) => !/CANARY/.test(`${(error as Error).message}${(error as Error).stack}`),
      );
    });
  }
});

const demoKey = { account: "x", key: "sk-demo" };
const BEYOND = [
  ...["0.0.0.0", "::", "192.168.1.5", "gateway.internal", "127.0.0.1.evil.com"],
  ...["localhost.evil.com", "::ffff:0.0.0.0"],
];
for (const [what, key, env] of [
  ["as text", demoKey, {}],
  ["from the environment", { ...demoKey, key: "$K" }, { K: "sk-demo" }],
  ["as a digest", { account: "x", sha256: sha256("sk-demo") }, {}],
] as const) {
  it(`the demo key, ${what}, is valid on loopback only`, () => {
    for (const host of ["127.0.0.1", "127.255.0.9", "::1", "localhost"])
      assert.ok(accepted({ server: { host }, keys: [key] }, env), host);
    for (const host of BEYOND) {
      const [fault, ...others] = refusedConfig({ server: { host }, keys: [key] }, env);
      assert.equal(fault?.path, "server.host", host);
      assert.match(fault?.message ?? "", /loopback/);
      assert.deepEqual(others, []);
    }
  });
}

describe("where a configuration comes from", () => {
  /** A new folder, which is the working directory until the test ends. */
  function directory(t: TestContext): string {
    const path = folder();
    const before = process.cwd();
    process.chdir(path);
    t.after(() => process.chdir(before));
    return path;
  }

  function written(t: TestContext, text: string, name = "some.json"): string {
    const file = join(directory(t), name);
    writeFileSync(file, text);
    return file;
  }

  const load = (options: Partial<LoadOptions> = {}) => loadConfig({ env: {}, ...options });
  /** The issues with which loading fails. */
  const rejectedWith = (options: Partial<LoadOptions> = {}) =>
    load(options).then(
      () => [],
      (error) =>
        faultsOf(() => {
          throw error;
        }),
    );

  it("a file that is invalid, missing or a folder is an error, and does not fall back to the demo", async (t) => {
    const messageOf = async (options: Partial<LoadOptions> = {}) =>
      (await rejectedWith(options))[0]?.message ?? "";
    written(t, "{", "gateway.json");
    assert.match(await messageOf(), /^gateway\.json is not JSON/);
    assert.equal(await messageOf({ file: "nowhere.json" }), "cannot read nowhere.json: ENOENT");
    rmSync("gateway.json");
    mkdirSync("gateway.json");
    assert.equal(await messageOf(), "cannot read gateway.json: EISDIR");
  });

  const PLACES: Readonly<Record<string, object>> = {
    bedrock: { region: "r" },
    vertex: { project: "p", location: "l" },
  };
  // A provider or a model may use a format other than its vendor's own, which determines the
  // extensions that are loaded.
  for (const [vendor, { dialect, variants, by_model = [] }] of VENDORS) {
    const formats = [dialect, ...variants.keys(), ...by_model.map(([, name]) => name)];
    for (const format of new Set(formats))
      for (const place of by_model.length > 0 ? ["model"] : ["provider", "model"])
        it(`${vendor} in the format ${format} of the ${place}, with the extensions that it needs`, async (t) => {
          const own = { dialect: format };
          const provider = { vendor, base_url: "http://127.0.0.1:1", api_key: "k" };
          const json = {
            providers: { p: { ...provider, ...PLACES[vendor], ...(place === "provider" && own) } },
            models: { m: { provider: "p", ...(place === "model" && own) } },
          };
          const { config, extensions } = await load({ file: written(t, JSON.stringify(json)) });
          assert.ok(config.models.get("m"));
          const { name } = entries.find(({ dialects = [] }) => dialects.includes(format))!;
          assert.ok(
            extensions.some((each) => each.name === name),
            name,
          );
        });
  }

  it("a BOM is ignored at the start of the file and kept elsewhere", async (t) => {
    const file = written(t, `\ufeff${JSON.stringify(LAB).replace('"m"', '"\ufeff"')}`);
    assert.deepEqual([...(await load({ file })).config.models.keys()], ["\ufeff"]);
  });

  for (const [what, text, line, column] of [
    ["a missing comma", '{\n  "a": 1\n  "b": 2\n}', 3, 3],
    ["a trailing comma", '{\n  "a": 1,\n}', 3, 1],
    ["a missing colon", '{"a" 1}', 1, 6],
    ["something after the end", "{}\n\n{}", 3, 1],
    ["a cut end", '{\n  "a": 1', 2, 9],
    ["nothing", "", 1, 1],
    ["a bare word", '{\n  "a": xyz\n}\n', 2, 8],
    ["a bare word that begins like another", '{"a": trie}', 1, 9],
    ["a trailing comma in a list", '{\n  "a": [\n    1,\n  ]\n}', 4, 3],
    ["a character of two units", '{"a": "b",\n "c": \u{1f600}}', 2, 7],
    ["a token that another place has, too", '{"position 3": ["]", ]}', 1, 22],
    ["a line end in a string", '{"a": "b\n"}', 1, 9],
    ["another quotation mark", "['b']", 1, 2],
    ["a missing comma after a BOM", '\ufeff{\n  "a": 1\n  "b": 2\n}', 3, 3],
  ] as const) {
    it(`${what} is reported with its line and column`, async (t) => {
      const file = written(t, text);
      const place = `the fault is at line ${line}, column ${column}`;
      assert.deepEqual(await rejectedWith({ file }), [
        { path: "", code: "invalid_value", message: `${file} is not JSON: ${place}` },
      ]);
    });
  }

  it("for a bare word in a large file only the first character is reported: V8 states no position", async (t) => {
    const file = written(t, `{"a": ${" ".repeat(1_000_000)} xyz}`);
    const message = `${file} is not JSON: Unexpected token 'x'`;
    assert.equal((await rejectedWith({ file }))[0]?.message, message);
  });

  it("host and port of the command line do not hide an invalid host or port in the file", async (t) => {
    const file = written(t, "");
    for (const [server, path] of [
      ["x", "server"],
      [[1], "server"],
      [{ prot: 1 }, "server.prot"],
    ] as const) {
      writeFileSync(file, JSON.stringify({ ...LAB, server }));
      const faults = await rejectedWith({ file, port: 3 });
      assert.deepEqual(
        faults.map((fault) => fault.path),
        [path],
      );
    }
    writeFileSync(file, "[]");
    const [fault] = await rejectedWith({ file, port: 3 });
    assert.equal(fault?.message, `expected an object in ${file}`);
  });
});
