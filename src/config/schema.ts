// The schema of gateway.json: the core's fields, their bounds and defaults. The JSON Schema of the
// file is derived from this. Extensions add their settings to it (setting.ts).
import type { Config } from "../core/config.ts";
import { configSlots, type ConfigExtension, type ExtensionEntry } from "./extension.ts";
import type { Installed } from "../core/extension/installer.ts";
import type { CheckContext } from "./setting.ts";
import type { ProviderSettings } from "../core/routing/model.ts";
import {
  modelCheck,
  providerCheck,
  retry,
  timeouts,
  type WrittenModel,
} from "./providers-and-models.ts";
import { sha256 } from "../core/hash.ts";
import type { Formats, UrlVars } from "./vendors.ts";
import {
  array,
  fail,
  literal,
  nonEmpty,
  object,
  optional,
  record,
  refine,
  string,
  withDefault,
  type Check,
} from "../core/schema/checker.ts";
import {
  exactlyOne,
  integer,
  ms,
  nullable,
  port,
  positive,
  section,
  wellFormed,
  strict,
  host,
} from "./fields.ts";
import { aliasCheck, type WrittenAlias } from "./policy.ts";
import { MAX_CERTIFICATE_BYTES } from "./regular-file.ts";
import { secret, type Environment, type SecretFiles } from "./secrets.ts";

/** The data that the check of a configuration needs. */
export interface SchemaOptions {
  /** The environment variables that `"$NAME"` refers to. */
  readonly env: Environment;
  /** Reads the secret files. */
  readonly secretFiles: SecretFiles;
  /** The extensions whose settings and dialects a configuration may use. */
  readonly extensions: readonly ConfigExtension[];
  /** What these extensions have installed. */
  readonly installed: Installed;
  /** The entries of all extensions: messages also name settings of those that are not loaded. */
  readonly entries: readonly ExtensionEntry[];
  /**
   * Whether a provider's or a client's key may be missing, because its environment variable is not
   * set or its file cannot be read. Absent: that is an issue.
   */
  readonly secretsOptional?: boolean;
}

const rpm = nullable(integer(0, 1_000_000));

/**
 * A checked configuration whose models do not yet have their vendors' traits, and whose aliases are
 * not yet ranked.
 */
export interface WrittenConfig extends Omit<Config, "providers" | "models" | "aliases"> {
  /** Providers by name, in the order of the file. */
  readonly providers: ReadonlyMap<string, ProviderSettings & UrlVars>;
  /** Models by canonical name, in the order of the file. */
  readonly models: ReadonlyMap<string, WrittenModel>;
  /** Aliases by name, in the order of the file. */
  readonly aliases: ReadonlyMap<string, WrittenAlias>;
}

/** The check of gateway.json, with its JSON Schema. */
export function configSchema(options: SchemaOptions, formats: Formats): Check<WrittenConfig> {
  const context = checkContext(options);
  const { extended } = context;
  return strict(
    extended("", {
      server: section(
        extended("server", {
          host: withDefault(host, "127.0.0.1"),
          port: withDefault(port, 8080),
          /** For a request's body. The longest string of V8 is little longer than the bound. */
          max_body_bytes: withDefault(integer(1, 500 * 1024 * 1024), 10_485_760),
          /** For a provider's whole reply. */
          max_reply_bytes: withDefault(integer(1024, 500 * 1024 * 1024), 16_777_216),
          /** For receiving a whole request. Its head must arrive within a minute at most. */
          receive_ms: ms(120_000),
          /** A response is aborted if the client reads nothing of it for this time. */
          send_ms: ms(30_000),
          /** After this time without output, a stream gets a comment (wire.md "Framing"). */
          keep_alive_ms: ms(15_000),
          drain_ms: ms(30_000, 0),
          /** Concurrent chat requests in one process. Further requests are refused. */
          max_in_flight: withDefault(positive, 10_000),
        }),
      ),
      data_dir: withDefault(wellFormed(1), "./data"),
      providers: record(providerCheck(context, formats)),
      models: record(modelCheck(context, formats)),
      aliases: withDefault(record(aliasCheck(context)), new Map()),
      accounts: withDefault(
        record(
          strict(
            extended("accounts.*", {
              rpm: optional(rpm),
              /** Concurrent requests of the account. Absent: any number. */
              max_in_flight: optional(nullable(integer(0, 1_000_000))),
            }),
          ),
        ),
        new Map(),
      ),
      keys: withDefault(array(keyCheck(context)), []),
      limits: section(
        extended("limits", {
          rpm: withDefault(rpm, 60),
          store: withDefault(context.storeAddress("limits.store", "memory"), "memory"),
        }),
      ),
      timeouts: section(timeouts),
      retry: section(extended("retry", retry)),
      /**
       * After `failures` failures in a row, a model's breaker opens, and lets no request through
       * for `cooldown_ms`.
       */
      breaker: section({ failures: withDefault(positive, 5), cooldown_ms: ms(15_000) }),
      compat: section({ tool_choice_default: withDefault(literal("none", "auto"), "none") }),
      currency: withDefault(
        string({ pattern: /^[A-Z]{3}$/, expected: "three capital letters such as USD" }),
        "USD",
      ),
    }),
  );
}

const keyCheck = ({ credential, extended }: CheckContext) =>
  refine(
    strict(
      extended("keys.*", {
        account: wellFormed(1),
        key: optional(credential),
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
    ),
    (entry) => {
      const { key, sha256: digest = "", ...rest } = exactlyOne(entry, "key", "sha256");
      return { ...rest, digest: key === undefined ? digest : sha256(key) };
    },
  );

function checkContext(options: SchemaOptions): CheckContext {
  const { env, secretFiles: files, secretsOptional = false, extensions, installed } = options;
  const sources = { env, files };
  const settings = [
    // No field has a setting of an extension that is not loaded: it would have loaded the
    // extension. Such settings are listed so that messages about unknown fields name them.
    ...options.entries.flatMap((entry) => entry.settings ?? []).map(notLoaded),
    ...extensions.flatMap((extension) => extension.settings ?? []),
  ].map((setting) => ({ setting, steps: setting.path.split(".") }));
  const context: CheckContext = {
    env,
    fileText(path) {
      const { text, fault = "", path: file } = files.read(path, MAX_CERTIFICATE_BYTES);
      if (text !== undefined || secretsOptional) return text;
      return fail("invalid_value", `cannot read the file ${file}: ${fault}`);
    },
    secret: secret(sources),
    credential: secret(sources, !secretsOptional),
    storeAddress(path, builtIn) {
      if (secretsOptional && path === "limits.store") return secret(sources, false);
      const store = installed.filled(configSlots.store(path));
      const other = store ? ` or the address of ${store.expected}` : "";
      return refine(secret(sources), (text) => {
        const isStore = store?.scheme.test(text) && URL.canParse(text);
        // The address may hold a password, so it is not repeated.
        return text === builtIn || isStore
          ? text
          : fail("invalid_value", `expected ${JSON.stringify(builtIn)}${other}`);
      });
    },
    extended(path, fields) {
      const added = settings
        .filter(({ steps }) => steps.slice(0, -1).join(".") === path)
        .map(({ setting, steps }) => [steps.at(-1), setting.check(context)]);
      return { ...fields, ...Object.fromEntries(added) };
    },
  };
  return context;
}

const notLoaded = (path: string) => ({ path, check: () => optional(object({})) });
