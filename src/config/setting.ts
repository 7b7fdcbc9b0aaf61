// A setting that an extension adds to gateway.json: its path, its check, and how its value is read.
import { withDefault, type Check, type Fields } from "../core/schema/checker.ts";
import { asObject } from "../core/schema/untrusted-json.ts";
import type { Environment } from "./secrets.ts";

/** What the check of a setting may use. */
export interface CheckContext {
  /** The environment, for settings that vendors' own programs read from it. */
  readonly env: Environment;
  /**
   * Checks a secret: a text, `"$NAME"` for the environment variable NAME, or `"$file:PATH"` for the
   * content of a file. An unset variable and an unreadable file are issues. No message contains the
   * value.
   */
  readonly secret: Check<string>;
  /** The same, but commands that call no provider accept a missing variable or file. */
  readonly credential: Check<string>;
  /**
   * Reads the text of the file at a path: absolute, or relative to the folder of the configuration.
   * Throws a ValidationError if it cannot be read. For a command that calls no provider, returns
   * undefined instead.
   */
  fileText(path: string): string | undefined;
  /**
   * Accepts the word `builtIn`, or the address of a store that an extension offers for the setting
   * at `path`. The address may be a secret.
   */
  storeAddress(path: string, builtIn: string): Check<string>;
  /** The fields of the section at `path`, with those that extensions add to it. */
  extended<F extends Fields>(path: string, fields: F): F;
}

export interface Setting<T> {
  /** Dotted: `admin`, `server.tls`. A `*` stands for any name: `providers.*.pace_ms`. */
  readonly path: string;
  /** Creates the check of the field. Called for each configuration that is checked. */
  check(context: CheckContext): Check<T>;
  /**
   * Whether the setting is read only when the gateway starts: a change needs a restart, and is
   * reported. Absent: a reload applies it.
   */
  readonly fixed?: boolean;
  /**
   * The value in a checked configuration, or in the row that a `*` stands for. Returns the default
   * if the setting is absent, or if there is no such row (undefined).
   */
  of(parent: object | undefined): T;
}

/**
 * Returns a function that reads the value at a setting's path, in a configuration or in the row
 * that a `*` stands for. It returns undefined if there is no value.
 */
export function valueAt(path: string): (parent: object | undefined) => unknown {
  const steps = path.split(".*.").at(-1)!.split(".");
  return (parent) => steps.reduce<unknown>((value, step) => asObject(value)[step], parent);
}

/**
 * Defines a setting. `fallback`: its value if gateway.json does not have it. A check with a default
 * of its own, such as section(), keeps that.
 */
export function defineSetting<T, F extends T | undefined>(
  path: string,
  fallback: F,
  check: (context: CheckContext) => Check<T>,
  { fixed = false }: { readonly fixed?: boolean } = {},
): Setting<T | Extract<F, undefined>> {
  type Value = T | Extract<F, undefined>;
  const written = valueAt(path);
  return {
    path,
    check(context) {
      const present: Check<T | undefined> = check(context);
      return (present.optional ? present : withDefault(present, fallback)) as Check<Value>;
    },
    fixed,
    of(parent) {
      const value = written(parent);
      return (value === undefined ? fallback : value) as Value;
    },
  };
}
