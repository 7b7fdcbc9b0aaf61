// What an operator writes in gateway.json: every field, its bounds, and what its absence means; its JSON Schema is derived
// from this. Secrets ("$NAME") are looked up in the environment meanwhile, so that a missing one is a fault like any other.
import { traitFields } from "../providers/traits.ts";
import { vendorPreset } from "../providers/vendors.ts";
import {
  array,
  boolean,
  ValidationError,
  fail,
  literal,
  nonEmpty,
  nullable,
  number,
  object,
  optional,
  partial,
  record,
  refine,
  string,
  withDefault,
  type Check,
  type ValidationIssue,
  type Fields,
  type Infer,
} from "../schema/checker.ts";
import { asArray, asObject } from "../schema/untrusted-json.ts";
import { sha256 } from "../hash.ts";
import { DIALECTS, dialectNamed, VENDORS } from "./dialects.ts";
import { ruleFaults } from "./rules.ts";

export type Environment = Readonly<Record<string, string | undefined>>;
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
const integer = (min: number, max: number) => number({ min, max, integer: true });
const positive = number({ min: 1, integer: true });
export const DAY_MS = 86_400_000;
/** Milliseconds, `value` where nothing is said. */
const ms = (value: number, min = 1) => withDefault(integer(min, DAY_MS), value);
const port = integer(0, 65_535);
const rpm = nullable(integer(0, 1_000_000));
/** Without the slashes at its end. */
function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}
const url = refine(nonEmpty, (text) => {
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    fail("invalid_value", "expected an http:// or https:// address");
  if (parsed.username || parsed.password)
    fail("invalid_value", "must not hold a user name or password; use api_key");
  if (parsed.search || parsed.hash) fail("invalid_value", "must not have a query or fragment");
  return withoutSlashes(parsed.href);
});

/** Currency per million tokens. Money is counted in pico-units (1 per million = 1e6 a token), so more decimals cannot be billed. */
const price = refine(number({ min: 0, max: 1_000_000 }), (value) =>
  Number(value.toFixed(6)) === value
    ? value
    : fail("invalid_value", `expected at most six decimals, got ${value}`),
);

/** Of a new connection; from the request's being sent to the first text, thinking or tool call (of a whole reply: to its first byte);
 * between two pieces of a reply; of the request altogether, all attempts included (in a provider: of one attempt); from the end of a
 * reply to its usage and the end of its stream; how long a stream that its client left is read on, so that its usage can still come. */
const timeouts = {
  connect_ms: ms(5_000),
  first_token_ms: ms(60_000),
  idle_ms: ms(60_000),
  total_ms: ms(900_000),
  closing_ms: ms(2_000),
  leave_ms: ms(1_000, 0),
};
const retry = {
  max_retries: withDefault(integer(0, 10), 1),
  backoff_ms: ms(250),
  max_wait_ms: ms(3_000, 0),
};
const traits = partial(traitFields(DIALECTS));
const strict = <F extends Fields>(fields: F) => object(fields, { strict: true });
const tls = optional(strict({ cert_file: nonEmpty, key_file: nonEmpty }));
/** May be left out: all its fields have defaults. */
const section = <F extends Fields>(fields: F) => withDefault(strict(fields), strict(fields)({}));

/** A string that may stand for an environment variable: `"$NAME"`, as a whole. Its value never shows in a message. */
const secret = (env: Environment, needed = true): Check<string> =>
  refine(string({ min: 1, secret: true }), (text) => {
    const name = text.startsWith("$") ? text.slice(1) : undefined;
    // What is no variable's name may be a secret itself, so it is not repeated.
    if (name !== undefined && !/^[A-Za-z_]\w*$/.test(name))
      fail("invalid_value", "expected the secret, or $ and the name of an environment variable");
    const value =
      name === undefined ? text : (Object.hasOwn(env, name) && env[name]) || (!needed && "unset");
    if (!value) fail("invalid_value", `the environment variable ${name} is not set`);
    // It travels in a header. A line end at the end of a file that was read into the environment is the usual mistake.
    return /^[\x21-\x7e]+$/.test(value)
      ? value
      : fail("invalid_value", "expected printable ASCII without spaces or line ends");
  });

/** With the JSON Schema of gateway.json. */
export function configSchema(env: Environment, secretsOptional = false) {
  const credential = optional(secret(env, !secretsOptional));
  return strict({
    server: section({
      host: withDefault(nonEmpty, "127.0.0.1"),
      port: withDefault(port, 8080),
      max_body_bytes: withDefault(integer(1, 500 * 1024 * 1024), 10_485_760), // V8's strings end soon after
      max_reply_bytes: withDefault(integer(1024, 500 * 1024 * 1024), 16_777_216), // of a provider's whole reply
      receive_ms: ms(120_000), // until a request has arrived whole; for its head a minute at the most
      /** An answer of which the client takes nothing for so long is broken off. */
      send_ms: ms(30_000),
      keep_alive_ms: ms(15_000), // of silence, after which a comment goes out on a stream (WIRE 3.2)
      drain_ms: ms(30_000, 0),
      max_in_flight: withDefault(positive, 10_000), // chat requests that a process has in hand at once; more are refused
      workers: withDefault(integer(1, 256), 1), // on the one port, each with connections, breakers and requests in flight of its own
      tls,
    }),
    /** Absent: 127.0.0.1:8081, and nothing if that port is taken. */
    admin: optional(
      refine(
        strict({
          host: withDefault(nonEmpty, "127.0.0.1"),
          port: withDefault(port, 8081),
          password: credential,
          tls,
        }),
        (admin) =>
          isLoopback(admin.host) || (admin.password && admin.tls)
            ? admin
            : fail(
                "invalid_value",
                "must be a loopback address, unless there are admin.password and admin.tls",
                ["host"],
              ),
      ),
    ),
    data_dir: withDefault(nonEmpty, "./data"),
    providers: record(
      refine(
        strict({
          /** `base_url` absent: the vendor's. `pace_ms` is only of the demo dialect: milliseconds between two tokens of a stream. */
          vendor: optional(literal(...VENDORS.keys())),
          dialect: optional(literal(...DIALECTS.map(({ name }) => name))),
          base_url: optional(url),
          api_key: credential,
          ...traits,
          timeouts: optional(strict(partial(timeouts))),
          retry: optional(strict(partial(retry))),
          pace_ms: withDefault(integer(0, 10_000), 20),
        }),
        (given) => {
          const { dialect, base_url = "" } = vendorPreset(VENDORS, given) ?? { dialect: "openai" }; // none: which is a fault already
          return { ...given, dialect, base_url: given.base_url ?? base_url };
        },
      ),
    ),
    models: record(
      strict({
        /** `upstream_model` absent: the model's own name. */
        provider: nonEmpty,
        upstream_model: optional(nonEmpty),
        reasoning: withDefault(boolean(), false),
        ...traits,
        context_tokens: optional(positive),
        reasoning_score: optional(number()),
        quality_score: optional(number()),
        price: optional(
          strict({ input_cache_hit: optional(price), input_cache_miss: price, output: price }),
        ),
      }),
    ),
    aliases: withDefault(
      record(
        refine(
          strict({
            policy: optional(literal("reasoning", "value")),
            models: optional(array(nonEmpty, { min: 1 })),
            enabled: withDefault(boolean(), true),
          }),
          (given) => exactlyOne(given, "policy", "models"),
        ),
      ),
      new Map(),
    ),
    /** `max_in_flight`: requests that an account has in hand at once; absent: any number. */
    accounts: withDefault(
      record(
        strict({ rpm: optional(rpm), max_in_flight: optional(nullable(integer(0, 1_000_000))) }),
      ),
      new Map(),
    ),
    keys: withDefault(
      array(
        refine(
          strict({
            account: nonEmpty,
            key: credential,
            sha256: optional(
              string({
                pattern: /^[0-9a-f]{64}$/,
                expected: "64 lower-case hexadecimal digits",
                secret: true,
              }),
            ),
            rpm: optional(rpm),
            models: optional(array(nonEmpty)),
          }),
          (given) => {
            const { key, sha256: digest = "", ...rest } = exactlyOne(given, "key", "sha256");
            return { ...rest, digest: key === undefined ? digest : sha256(key) };
          },
        ),
      ),
      [],
    ),
    limits: section({
      rpm: withDefault(rpm, 60),
      store: withDefault(
        secretsOptional ? secret(env, false) : refine(secret(env), limitStore),
        "memory",
      ),
      on_error: withDefault(literal("local", "refuse"), "local"), // while it cannot be asked: each gateway limits by itself, or refuses
    }),
    /** Segments that have been copied into the usage records are deleted after so many days; one of this size is followed by another. */
    spend: section({
      keep_days: withDefault(integer(1, 36_500), 400),
      segment_bytes: withDefault(integer(1024, 2 ** 30), 64 * 1024 ** 2),
    }),
    usage: section({
      store: withDefault(refine(secret(env), usageStore), "file"),
      sync_ms: ms(5_000),
    }),
    /** How providers are called: by this project's own pool of connections, at most so many to one origin (null: any number), or by Node's fetch. */
    upstream: section({
      client: withDefault(literal("pooled", "fetch"), "pooled"),
      max_connections: withDefault(nullable(positive), null),
    }),
    timeouts: section(timeouts),
    retry: section(retry),
    /** So many failures in a row open a model's breaker; for the cooldown it then lets nothing through. */
    breaker: section({ failures: withDefault(positive, 5), cooldown_ms: ms(15_000) }),
    compat: section({ tool_choice_default: withDefault(literal("none", "auto"), "none") }),
    currency: withDefault(
      string({ pattern: /^[A-Z]{3}$/, expected: "three capital letters such as USD" }),
      "USD",
    ),
  });
}

const exactlyOne = <T extends object>(row: T, a: keyof T & string, b: keyof T & string): T =>
  (row[a] === undefined) === (row[b] === undefined)
    ? fail("invalid_parameter_combination", `expected exactly one of ${a} and ${b}`)
    : row;

/** The address of a store may hold a password, so it is not repeated. */
const storeAt =
  (builtIn: string, scheme: RegExp, expected: string) =>
  (given: string): string =>
    given === builtIn || (scheme.test(given) && URL.canParse(given))
      ? given
      : fail("invalid_value", `expected "${builtIn}" or the address of ${expected}`);
const limitStore = storeAt("memory", /^rediss?:\/\/./, "a Redis or Valkey server (redis://...)");
const usageStore = storeAt(
  "file",
  /^postgres(ql)?:\/\/./,
  "a PostgreSQL database (postgres://...)",
);

export type Config = Infer<ReturnType<typeof configSchema>>;
export type ProviderConfig = Config["providers"] extends Map<string, infer P> ? P : never;
export type ModelConfig = Config["models"] extends Map<string, infer M> ? M : never;

/** Checks a parsed gateway.json: its shape, and what its parts say of each other. Throws one ValidationError with all faults. */
export function checkConfig(json: unknown, env: Environment, secretsOptional = false): Config {
  let faults = faultsBetween(json);
  if (!secretsOptional) faults.push(...ruleFaults(json));
  try {
    const config = configSchema(env, secretsOptional)(json, true);
    const again = repeated(config.keys.map(({ digest }) => digest)).map((at) =>
      invalid(["keys", at], "the same key stands here twice"),
    );
    if (!secretsOptional)
      faults = [...faults, ...again, ...demoKeyFaults(config, config.server.host)];
    if (faults.length === 0) return config;
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    faults = [...error.issues, ...faults];
  }
  throw new ValidationError(faults);
}

/** Where in a list something stands that stood before. */
const repeated = (list: readonly unknown[], seen = new Set<unknown>()): number[] =>
  list.flatMap((each, at) => (seen.size === seen.add(each).size ? [at] : []));

const invalid = (path: ValidationIssue["path"], message: string): ValidationIssue => ({
  path,
  code: "invalid_value",
  message,
});

/** What the parts say of each other, or that is not there. Looks at the raw JSON, so that a fault of shape elsewhere hides none. */
function faultsBetween(json: unknown): ValidationIssue[] {
  const faults: ValidationIssue[] = [];
  const root = asObject(json);
  const [providers, models, aliases] = [
    asObject(root["providers"]),
    asObject(root["models"]),
    asObject(root["aliases"]),
  ];
  const refer = (
    path: ValidationIssue["path"],
    name: unknown,
    noun: string,
    ...tables: object[]
  ) => {
    if (
      typeof name !== "string" ||
      name === "" ||
      tables.some((table) => Object.hasOwn(table, name))
    )
      return;
    faults.push(invalid(path, `there is no ${noun} named ${JSON.stringify(name)}`));
  };
  /** What a dialect cannot express. */
  const unfit = (
    at: ValidationIssue["path"],
    { thinking, supports }: Record<string, unknown>,
    dialect = "openai",
  ) => {
    const { thinkingSwitches = [], unsupported = [] } = dialectNamed(dialect) ?? {};
    const switchedBy = (switches: readonly string[]) => switches.some((name) => name === thinking);
    // A value that no dialect knows is an issue of the field itself.
    const isKnown = DIALECTS.some((definition) => switchedBy(definition.thinkingSwitches));
    if (isKnown && !switchedBy(thinkingSwitches))
      faults.push(
        invalid([...at, "thinking"], `the ${dialect} dialect knows ${thinkingSwitches.join(", ")}`),
      );
    const isUnsupported = (name: unknown) => unsupported.some((capability) => capability === name);
    const index = asArray(supports).findIndex(isUnsupported);
    if (index !== -1)
      faults.push(invalid([...at, "supports", index], `the ${dialect} dialect does not know it`));
  };
  for (const [name, provider] of Object.entries(providers)) {
    const { vendor, dialect, base_url } = asObject(provider);
    const row = vendorPreset(VENDORS, { vendor, dialect });
    if ((dialect ?? vendor ?? undefined) === undefined)
      faults.push(invalid(["providers", name, "dialect"], "is required where no vendor is named"));
    if (row && (dialect ?? row.dialect) !== row.dialect)
      faults.push(invalid(["providers", name, "dialect"], `this vendor's is "${row.dialect}"`));
    if (row && (base_url ?? row.base_url) === undefined)
      faults.push(invalid(["providers", name, "base_url"], "is required"));
    unfit(["providers", name], asObject(provider), row?.dialect);
  }
  const providersByName = new Map(Object.entries(providers));
  for (const [name, model] of Object.entries(models)) {
    const { provider } = asObject(model);
    refer(["models", name, "provider"], provider, "provider", providers);
    const vendor = vendorPreset(VENDORS, asObject(providersByName.get(String(provider))));
    unfit(["models", name], asObject(model), vendor?.dialect);
  }
  for (const [name, alias] of Object.entries(aliases)) {
    if (Object.hasOwn(models, name))
      faults.push(invalid(["aliases", name], "a model has the same name"));
    const list = asArray(asObject(alias)["models"]);
    list.forEach((model, at) => {
      refer(["aliases", name, "models", at], model, "model", models);
    });
    for (const at of repeated(list))
      faults.push(invalid(["aliases", name, "models", at], "stands in the list twice"));
  }
  asArray(root["keys"]).forEach((key, index) => {
    asArray(asObject(key)["models"]).forEach((name, at) => {
      refer(["keys", index, "models", at], name, "model or alias", models, aliases);
    });
  });
  return faults;
}

export const hasDemoKey = ({ keys }: Config): boolean =>
  keys.some(({ digest }) => digest === sha256("sk-demo"));
/** The demo key, which everybody knows, is for loopback only. `host` is where the gateway listens, or is to listen. */
export const demoKeyFaults = (config: Config, host: string): ValidationIssue[] =>
  isLoopback(host) || !hasDemoKey(config)
    ? []
    : [
        invalid(
          ["server", "host"],
          "must be a loopback address while the demo key, which everybody knows, is valid",
        ),
      ];
