// Checks a parsed gateway.json: its shape, the references between its parts, and whether it can
// replace the configuration with which a gateway was started.
import type { Config } from "../core/config.ts";
import { sha256 } from "../core/hash.ts";
import { isLoopback } from "./fields.ts";
import { ValidationError, type ValidationIssue } from "../core/schema/checker.ts";
import { configHooks, dialectsOf } from "./extension.ts";
import { createFormats, modelAddress, modelDialect, traitsOf } from "./vendors.ts";
import type { AliasSettings, ModelSettings } from "../core/routing/model.ts";
import { rank } from "./policy.ts";
import { invalid, referenceIssues, repeatedIn } from "./references.ts";
import { configSchema, type SchemaOptions, type WrittenConfig } from "./schema.ts";

export interface CheckOptions extends SchemaOptions {
  /** The text from which `json` was parsed. Absent: there is none to check. */
  readonly text?: string;
  /** As in LoadOptions.forThisHost. */
  readonly forThisHost?: boolean | undefined;
}

/** Throws one ValidationError with all issues. */
export function checkConfig(json: unknown, options: CheckOptions): Config {
  const { installed, entries, secretsOptional, text = "", forThisHost } = options;
  const { listeners } = installed;
  const formats = createFormats(installed, dialectsOf(entries));
  const rules = secretsOptional ? [] : listeners(configHooks.issues);
  const hostRules = forThisHost ? listeners(configHooks.hostIssues) : [];
  const issues = [
    ...referenceIssues(json, formats),
    ...rules.flatMap(({ call }) => call(json, formats)),
    ...listeners(configHooks.textIssues).flatMap(({ call }) => call(text)),
    ...hostRules.flatMap(({ call }) => call(json)),
  ];
  const check = configSchema(options, formats);
  try {
    const config = check(json, true);
    if (!secretsOptional) issues.push(...keyIssues(config));
    if (issues.length === 0) return complete(config);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    issues.unshift(...error.issues);
  }
  throw new ValidationError(issues);
}

/**
 * Completes the configuration: each model with its dialect, address and traits, each alias with the
 * ranking of its models.
 */
function complete(config: WrittenConfig): Config {
  const models = new Map<string, ModelSettings>();
  for (const [name, written] of config.models) {
    const provider = config.providers.get(written.provider)!;
    const upstreamModel = written.upstream_model ?? name;
    const dialect = modelDialect(provider, { ...written, upstreamModel });
    const model = { ...written, dialect };
    const base_url = modelAddress(provider, dialect);
    const traits = traitsOf(provider, { ...model, upstreamModel });
    models.set(name, { ...model, base_url, traits });
  }
  const aliases = new Map<string, AliasSettings>();
  for (const [name, alias] of config.aliases)
    aliases.set(name, { ...alias, ranking: rank(config, alias) });
  return { ...config, models, aliases };
}

function keyIssues(config: WrittenConfig): ValidationIssue[] {
  const repeated = repeatedIn(config.keys.map(({ digest }) => digest));
  return [
    ...repeated.map((at) => invalid(["keys", at], "the same key is listed twice")),
    ...demoKeyIssues(config, config.server.host),
  ];
}

/**
 * Throws a ValidationError if a configuration cannot replace `initial`, on whose address the
 * gateway listens, and in whose currency it counts spending.
 */
export function assertFits(config: Config, { server, currency }: Config): void {
  const issues: ValidationIssue[] = [...demoKeyIssues(config, server.host)];
  const isAnother = `must stay ${currency} while the gateway runs, which counts in it: restart it`;
  if (config.currency !== currency) issues.push(invalid(["currency"], isAnother));
  if (issues.length > 0) throw new ValidationError(issues);
}

const MUST_BE_LOOPBACK =
  "must be a loopback address while the demo key, which everybody knows, is valid";
const DEMO_DIGEST = sha256("sk-demo");

/** Whether the demo key, which everybody knows, is valid. */
export const hasDemoKey = ({ keys }: Pick<Config, "keys">): boolean =>
  keys.some(({ digest }) => digest === DEMO_DIGEST);

/** The issue of a demo key beyond loopback. `host`: where the gateway listens, or will listen. */
const demoKeyIssues = (config: Pick<Config, "keys">, host: string): readonly ValidationIssue[] =>
  isLoopback(host) || !hasDemoKey(config) ? [] : [invalid(["server", "host"], MUST_BE_LOOPBACK)];
