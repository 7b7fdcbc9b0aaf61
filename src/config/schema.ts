// What an operator writes in gateway.json: every field, its bounds, and what its absence means. The JSON Schema of the file
// is derived from this. Secrets ("$NAME") are looked up in the environment while the file is checked, so that a missing
// one is a fault like any other, with its path.

import { createHash } from "node:crypto";
import { asArray, asObject } from "../protocol/foreign.ts";
import { THINKING_SWITCHES } from "../dialects/openai.ts";
import {
  array, boolean, CheckError, fail, literal, nullable, number, object, optional, record, refine, string, withDefault,
  type Check, type Fault, type Infer,
} from "../protocol/checker.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** What a request may need that not every model can do. */
export const CAPABILITIES = ["tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"] as const;
export type Capability = (typeof CAPABILITIES)[number];

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
const milliseconds = number({ min: 1, max: 86_400_000, integer: true });
const port = number({ min: 0, max: 65_535, integer: true });
const rpm = nullable(number({ min: 0, max: 1_000_000, integer: true }));
const url = refine(string({ min: 1 }), (text) => {
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) fail("invalid_value", "expected an http:// or https:// address");
  if (parsed.username || parsed.password) fail("invalid_value", "must not hold a user name or password; use api_key");
  if (parsed.search || parsed.hash) fail("invalid_value", "must not have a query or fragment");
  return parsed.href.replace(/\/+$/, "");
});

/**
 * Currency per million tokens. Money is counted in whole pico-units (1 per million = 1e6 pico-units a token), so more than
 * six decimals could not be billed exactly.
 */
const price = refine(number({ min: 0, max: 1_000_000 }), (value) =>
  Number(value.toFixed(6)) === value ? value : fail("invalid_value", `expected at most six decimals, got ${value}`),
);

const timeouts = {
  /** A new connection to the provider. */
  connect_ms: milliseconds,
  /** From the request's being sent to the first text, thinking or tool call; of a whole reply, to its first byte. */
  first_token_ms: milliseconds,
  /** Between two pieces of a reply. */
  idle_ms: milliseconds,
  /** The request altogether, all attempts included; in a provider: one attempt. */
  total_ms: milliseconds,
};
const DEFAULT_TIMEOUTS = { connect_ms: 5_000, first_token_ms: 60_000, idle_ms: 60_000, total_ms: 900_000 };

const retry = {
  max_retries: number({ min: 0, max: 10, integer: true }),
  backoff_ms: milliseconds,
  max_wait_ms: number({ min: 0, max: 86_400_000, integer: true }),
};
const DEFAULT_RETRY = { max_retries: 1, backoff_ms: 250, max_wait_ms: 3_000 };

type Fields = Record<string, Check<unknown>>;

/** An object that may be left out: all its fields have defaults. */
function section<F extends Fields>(fields: F) {
  const check = object(fields, { strict: true });
  return refine(optional(check), (value) => value ?? check({}), check.schema);
}

/** The same fields, each wrapped: with its default, or optional (where they override the general ones). */
type Numbers<F> = { readonly [K in keyof F]: Check<number> };
const withDefaults = <F extends Numbers<F>>(fields: F, defaults: { readonly [K in keyof F]: number }) =>
  section(Object.fromEntries(Object.entries<Check<number>>(fields).map(([name, check]) => [name, withDefault(check, defaults[name as keyof F])])) as F);
const overrides = <F extends Numbers<F>>(fields: F) =>
  optional(object(Object.fromEntries(Object.entries<Check<number>>(fields).map(([name, check]) => [name, optional(check)])) as Record<keyof F & string, Check<number | undefined>>, { strict: true }));

/** A string that may stand for an environment variable: `"$NAME"`, as a whole. Its value never shows in a message. */
function secret(env: Environment, needed = true): Check<string> {
  return refine(string({ min: 1, secret: true }), (text) => {
    const value = text.startsWith("$") ? lookUp(text.slice(1)) : text;
    // It travels in a header. A line end at the end of a file that was read into the environment is the usual mistake.
    return /^[\x21-\x7e]+$/.test(value) ? value : fail("invalid_value", "expected printable ASCII without spaces or line ends");
  });

  function lookUp(name: string): string {
    // What is no variable's name may be a secret itself, so it is not repeated.
    if (!/^[A-Za-z_]\w*$/.test(name)) fail("invalid_value", "expected the secret, or $ and the name of an environment variable");
    return (Object.hasOwn(env, name) && env[name]) || (!needed && "unset") || fail("invalid_value", `the environment variable ${name} is not set`);
  }
}

function schema(env: Environment, secretsOptional = false) {
  const key = secret(env, !secretsOptional);
  return object(
    {
      server: section({
        host: withDefault(string({ min: 1 }), "127.0.0.1"),
        port: withDefault(port, 8080),
        max_body_bytes: withDefault(number({ min: 1, max: 500 * 1024 * 1024, integer: true }), 10_485_760), // V8's strings end soon after
        /** A request must have arrived whole within this time, its head within a minute at the most. */
        receive_ms: withDefault(milliseconds, 120_000),
        /** A comment goes out when a stream has been silent for this long (WIRE 3.2). */
        keep_alive_ms: withDefault(milliseconds, 15_000),
        drain_ms: withDefault(number({ min: 0, max: 86_400_000, integer: true }), 30_000),
        tls: optional(object({ cert_file: string({ min: 1 }), key_file: string({ min: 1 }) }, { strict: true })),
      }),
      /** Absent: 127.0.0.1:8081, and nothing if that port is taken. */
      admin: optional(
        object(
          {
            host: refine(withDefault(string({ min: 1 }), "127.0.0.1"), (host) => (isLoopback(host) ? host : fail("invalid_value", "must be a loopback address"))),
            port: withDefault(port, 8081),
          },
          { strict: true },
        ),
      ),
      data_dir: withDefault(string({ min: 1 }), "./data"),
      providers: record(
        object(
          {
            dialect: literal("openai", "anthropic", "gemini", "demo"),
            base_url: optional(url),
            api_key: optional(key),
            thinking: withDefault(literal(...THINKING_SWITCHES), "none"),
            timeouts: overrides(timeouts),
            retry: overrides(retry),
            /** Only of the demo dialect: milliseconds between two tokens of a stream. */
            pace_ms: withDefault(number({ min: 0, max: 10_000, integer: true }), 20),
          },
          { strict: true },
        ),
      ),
      models: record(
        object(
          {
            provider: string({ min: 1 }),
            /** Absent: the model's own name. */
            upstream_model: optional(string({ min: 1 })),
            reasoning: withDefault(boolean(), false),
            supports: withDefault(array(literal(...CAPABILITIES)), ["tools", "json_object", "json_schema", "logprobs"]),
            context_tokens: optional(number({ min: 1, integer: true })),
            max_output_tokens: optional(number({ min: 1, integer: true })),
            reasoning_score: optional(number()),
            quality_score: optional(number()),
            price: optional(object({ input_cache_hit: optional(price), input_cache_miss: price, output: price }, { strict: true })),
          },
          { strict: true },
        ),
      ),
      aliases: record(
        refine(
          object(
            {
              policy: optional(literal("reasoning", "value")),
              models: optional(array(string({ min: 1 }), { min: 1 })),
              enabled: withDefault(boolean(), true),
            },
            { strict: true },
          ),
          (alias) => exactlyOne(alias, "policy", "models"),
        ),
      ),
      accounts: withDefault(record(object({ rpm: optional(rpm) }, { strict: true })), new Map()),
      keys: withDefault(
        array(
          refine(
            object(
              {
                account: string({ min: 1 }),
                key: optional(key),
                sha256: optional(string({ pattern: /^[0-9a-f]{64}$/, expected: "64 lower-case hexadecimal digits", secret: true })),
                rpm: optional(rpm),
                models: optional(array(string({ min: 1 }))),
              },
              { strict: true },
            ),
            (given) => {
              const { key, sha256: digest, ...rest } = exactlyOne(given, "key", "sha256");
              return { ...rest, digest: key === undefined ? (digest ?? "") : sha256(key) };
            },
          ),
        ),
        [],
      ),
      limits: section({
        rpm: withDefault(rpm, 60),
        store: withDefault(refine(secret(env), (store) => only(store, "memory")), "memory"),
      }),
      spend: section({
        /** Segments that have been copied into the usage records are deleted after so many days. */
        keep_days: withDefault(number({ min: 1, max: 36_500, integer: true }), 400),
        /** A segment of this size is followed by another. */
        segment_bytes: withDefault(number({ min: 1_024, integer: true }), 64 * 1024 * 1024),
      }),
      usage: section({
        store: withDefault(refine(secret(env), usageStore), "file"),
        sync_ms: withDefault(milliseconds, 5_000),
      }),
      timeouts: withDefaults(timeouts, DEFAULT_TIMEOUTS),
      retry: withDefaults(retry, DEFAULT_RETRY),
      breaker: section({ failures: withDefault(number({ min: 1, integer: true }), 5), cooldown_ms: withDefault(milliseconds, 15_000) }),
      compat: section({ tool_choice_default: withDefault(literal("none", "auto"), "none") }),
      currency: withDefault(string({ pattern: /^[A-Z]{3}$/, expected: "three capital letters such as USD" }), "USD"),
    },
    { strict: true },
  );
}

function exactlyOne<T extends object>(value: T, a: keyof T & string, b: keyof T & string): T {
  const given = [value[a], value[b]].filter((field) => field !== undefined).length;
  return given === 1 ? value : fail("invalid_parameter_combination", `expected exactly one of ${a} and ${b}`);
}

/** The address may hold a password, so it is not repeated. */
function usageStore(store: string): string {
  const known = store === "file" || (/^postgres(ql)?:\/\//.test(store) && URL.canParse(store));
  return known ? store : fail("invalid_value", 'expected "file" or the address of a PostgreSQL database (postgres://...)');
}

/** A store that this version has; the address of another may hold a password, so it is not repeated. */
function only(store: string, known: string): string {
  return store === known ? store : fail("unsupported_value", `only "${known}" is available in this version`);
}

export type Config = Infer<ReturnType<typeof schema>>;
export type ProviderConfig = Config["providers"] extends Map<string, infer P> ? P : never;
export type ModelConfig = Config["models"] extends Map<string, infer M> ? M : never;

/** The JSON Schema of gateway.json. */
export const configSchema = () => schema({}).schema;

const DEMO_KEY_DIGEST = sha256("sk-demo");

/** Checks a parsed gateway.json: its shape, and what its parts say of each other. Throws one CheckError with all faults. */
export function checkConfig(json: unknown, env: Environment, secretsOptional = false): Config {
  const faults = danglingNames(json);
  try {
    const config = schema(env, secretsOptional)(json, true);
    faults.push(...(secretsOptional ? [] : keyFaults(config)));
    if (faults.length === 0) return config;
  } catch (error) {
    if (!(error instanceof CheckError)) throw error;
    faults.unshift(...error.faults);
  }
  throw new CheckError(faults);
}

const invalid = (path: Fault["path"], message: string): Fault => ({ path, code: "invalid_value", message });

/** Names that stand for something that is not there. Looks at the raw JSON, so that a fault of shape elsewhere hides none. */
function danglingNames(json: unknown): Fault[] {
  const faults: Fault[] = [];
  const [providers, models, aliases] = ["providers", "models", "aliases"].map((field) => asObject(asObject(json)[field])) as [object, object, object];
  const refer = (path: Fault["path"], name: unknown, noun: string, ...tables: object[]) => {
    if (typeof name !== "string" || name === "" || tables.some((table) => Object.hasOwn(table, name))) return;
    faults.push(invalid(path, `there is no ${noun} named ${JSON.stringify(name)}`));
  };
  for (const [name, provider] of Object.entries(providers)) {
    const { dialect, base_url } = asObject(provider);
    if (dialect === "anthropic" || dialect === "gemini") {
      faults.push(invalid(["providers", name, "dialect"], `"${dialect}" is not available in this version; available: "openai", "demo"`));
    } else if (dialect === "openai" && base_url === undefined) faults.push(invalid(["providers", name, "base_url"], "is required"));
  }
  for (const [name, model] of Object.entries(models)) refer(["models", name, "provider"], asObject(model)["provider"], "provider", providers);
  for (const [name, alias] of Object.entries(aliases)) {
    if (Object.hasOwn(models, name)) faults.push(invalid(["aliases", name], "a model has the same name"));
    asArray(asObject(alias)["models"]).forEach((model, at, all) => {
      refer(["aliases", name, "models", at], model, "model", models);
      if (all.indexOf(model) < at) faults.push(invalid(["aliases", name, "models", at], "stands in the list twice"));
    });
  }
  asArray(asObject(json)["keys"]).forEach((key, index) => {
    asArray(asObject(key)["models"]).forEach((name, at) => refer(["keys", index, "models", at], name, "model or alias", models, aliases));
  });
  return faults;
}

function keyFaults(config: Config): Fault[] {
  const digests = config.keys.map((key) => key.digest);
  const faults = digests.flatMap((digest, index) => (digests.indexOf(digest) < index ? [invalid(["keys", index], "the same key stands here twice")] : []));
  return [...faults, ...demoKeyFaults(config, config.server.host)];
}

/** The demo key, which everybody knows, is for loopback only. `host` is where the gateway listens, or is to listen. */
export function demoKeyFaults(config: Config, host: string): Fault[] {
  if (isLoopback(host) || !config.keys.some(({ digest }) => digest === DEMO_KEY_DIGEST)) return [];
  return [invalid(["server", "host"], "must be a loopback address while the demo key, which everybody knows, is valid")];
}
