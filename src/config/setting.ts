// A setting that an extension adds to gateway.json: its place, what it must look like, and
// how its value is read.
import { withDefault, type Check, type Fields } from "../core/schema/checker.ts";
import { asObject } from "../core/schema/untrusted-json.ts";
import type { Environment } from "./secrets.ts";

/** Data on which the check of a setting may depend. */
export interface CheckContext {
  /** The environment, for settings that a vendor's own programs take from there. */
  readonly env: Environment;
  /**
   * A text, `"$NAME"` for the environment variable NAME, or `"$file:PATH"` for the content of a
   * file. An unset variable and a file that cannot be read are faults. The value never shows in a
   * message.
   */
  readonly secret: Check<string>;
  /** The same, but commands that call no provider accept that it is not there. */
  readonly credential: Check<string>;
  /**
   * Reads the text of the file at a path: absolute, or relative to the folder of the configuration.
   * Throws a ValidationError. Undefined: it cannot be read, which is no issue for a command that
   * calls no provider.
   */
  fileText(path: string): string | undefined;
  /**
   * The word `builtIn`, or the address of a store that an extension offers for this setting. It may
   * be a secret.
   */
  storeAddress(path: string, builtIn: string): Check<string>;
  /** The fields of the section at `path`, with those that extensions add to it. */
  extended<F extends Fields>(path: string, fields: F): F;
}

export interface Setting<T> {
  /** Dotted: `admin`, `server.tls`. A `*` stands for any name: `providers.*.pace_ms`. */
  readonly path: string;
  /** Makes the check of the field. Called for each configuration that is checked. */
  check(context: CheckContext): Check<T>;
  /**
   * It is read when the gateway starts: a change needs a restart, and is reported. Absent: a reload
   * puts it in force.
   */
  readonly fixed?: boolean;
  /**
   * Its value in a checked configuration, or in the row that a `*` stands for; its default where it
   * is absent. Undefined: there is no such row.
   */
  of(parent: object | undefined): T;
}

/**
 * Returns what reads the value at a setting's path: below an object, or below the row that a `*`
 * stands for. Undefined: there is none.
 */
export function valueAt(path: string): (parent: object | undefined) => unknown {
  const steps = path.split(".*.").at(-1)!.split(".");
  return (parent) => steps.reduce<unknown>((value, step) => asObject(value)[step], parent);
}

/**
 * Defines a setting. `fallback` is its value where gateway.json does not have it; a check that has
 * a default itself, such as that of a section, keeps it.
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
