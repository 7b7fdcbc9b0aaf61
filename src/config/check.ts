// Checks a parsed gateway.json: its shape, and the references between its parts.
import type { Config } from "../core/config.ts";
import { demoKeyIssues } from "./demo-key.ts";
import { ValidationError, type ValidationIssue } from "../core/schema/checker.ts";
import { createFormats, type Formats } from "./formats.ts";
import { configMoments, dialectsOf } from "./extension.ts";
import { install } from "../core/extension/install.ts";
import { traitsOf } from "./vendors.ts";
import type { AliasSettings, ModelSettings } from "../core/routing/model.ts";
import { rank } from "./policy.ts";
import { invalid, referenceIssues, repeatedIn } from "./references.ts";
import { configSchema, type SchemaOptions, type WrittenConfig } from "./schema.ts";
import { withSuggestions } from "./suggestions.ts";

/** Throws one ValidationError with all issues. */
export function checkConfig(json: unknown, options: SchemaOptions): Config {
  const { extensions = [], entries = [], secretsOptional = false } = options;
  const installed = install(extensions);
  const formats = createFormats(installed, dialectsOf(entries));
  const between = referenceIssues(json, formats);
  const rules = secretsOptional ? [] : installed.listeners(configMoments.issues);
  between.push(...rules.flatMap(({ call }) => call(json, formats)));
  const check = configSchema(options);
  try {
    const config = check(json, true);
    if (!secretsOptional) between.push(...keyIssues(config));
    if (between.length === 0) return complete(config, formats);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new ValidationError([...withSuggestions(error.issues, json, check.schema), ...between]);
  }
  throw new ValidationError(between);
}

/**
 * The configuration, each model with all of its traits, each alias with the order of its models.
 */
function complete(config: WrittenConfig, { presets }: Formats): Config {
  const models = new Map<string, ModelSettings>();
  for (const [name, model] of config.models) {
    const provider = config.providers.get(model.provider)!;
    models.set(name, { ...model, traits: traitsOf(presets, provider, model) });
  }
  const aliases = new Map<string, AliasSettings>();
  for (const [name, alias] of config.aliases)
    aliases.set(name, { ...alias, ranking: rank(config, alias) });
  return { ...config, models, aliases };
}

function keyIssues(config: WrittenConfig): ValidationIssue[] {
  const repeated = repeatedIn(config.keys.map(({ digest }) => digest));
  return [
    ...repeated.map((at) => invalid(["keys", at], "the same key stands here twice")),
    ...demoKeyIssues(config, config.server.host),
  ];
}
