// Checks a parsed gateway.json: its shape, and what its parts say of each other.
import type { Config } from "../core/config.ts";
import { demoKeyIssues } from "./demo-key.ts";
import { ValidationError, type ValidationIssue } from "../core/schema/checker.ts";
import { createFormats } from "../core/extension/formats.ts";
import { dialectsOf } from "./extension.ts";
import { invalid, referenceIssues, repeatedIn } from "./references.ts";
import { configSchema, type SchemaOptions } from "./schema.ts";

/** Throws one ValidationError with all issues. */
export function checkConfig(json: unknown, options: SchemaOptions): Config {
  const { extensions = [], entries = [], secretsOptional = false } = options;
  const formats = createFormats(extensions, dialectsOf(entries));
  const between = referenceIssues(json, formats);
  if (!secretsOptional)
    between.push(...extensions.flatMap(({ issues }) => issues?.(json, formats) ?? []));
  try {
    const config = configSchema(options)(json, true);
    if (!secretsOptional) between.push(...keyIssues(config));
    if (between.length === 0) return config;
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new ValidationError([...error.issues, ...between]);
  }
  throw new ValidationError(between);
}

function keyIssues(config: Config): ValidationIssue[] {
  const repeated = repeatedIn(config.keys.map(({ digest }) => digest));
  return [
    ...repeated.map((at) => invalid(["keys", at], "the same key stands here twice")),
    ...demoKeyIssues(config, config.server.host),
  ];
}
