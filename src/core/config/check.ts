// Checks a parsed gateway.json: its shape, and what its parts say of each other.
import { sha256 } from "../hash.ts";
import { ValidationError, type ValidationIssue } from "../schema/checker.ts";
import { isLoopback } from "./fields.ts";
import { createFormats } from "./formats.ts";
import { invalid, referenceIssues, repeatedIn } from "./references.ts";
import { configSchema, type Config, type SchemaOptions } from "./schema.ts";

/** Throws one ValidationError with all issues. */
export function checkConfig(json: unknown, options: SchemaOptions): Config {
  const { extensions = [], entries = [], secretsOptional = false } = options;
  const formats = createFormats(extensions, entries);
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

/** Whether the demo key, which everybody knows, is valid. */
export const hasDemoKey = ({ keys }: Config): boolean =>
  keys.some(({ digest }) => digest === sha256("sk-demo"));

/** The demo key is for loopback only. `host` is where the gateway listens, or is to listen. */
export const demoKeyIssues = (config: Config, host: string): ValidationIssue[] =>
  isLoopback(host) || !hasDemoKey(config)
    ? []
    : [
        invalid(
          ["server", "host"],
          "must be a loopback address while the demo key, which everybody knows, is valid",
        ),
      ];
