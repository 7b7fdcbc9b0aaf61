// Secrets in gateway.json: as they are, as the name of an environment variable that holds them, or
// as the path of a file that does.
import { fail, refine, string, type Check } from "../core/schema/checker.ts";
import type { SecretFiles } from "./secret-files.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where the secrets are that a configuration names. */
export interface SecretSources {
  /** For `"$NAME"`. An empty variable counts as one that is not set. */
  readonly env: Environment;
  /** For `"$file:PATH"`. */
  readonly files: SecretFiles;
}

/** The placeholder of a secret that cannot be read where that is no fault. */
const UNSET = "unset";
/** The prefix of a reference to a secret in a file. */
const FILE = "$file:";
/** It travels in a header. */
const SENDABLE = /^[\x21-\x7e]+$/;

/**
 * A text that may be `"$NAME"`, as a whole, for an environment variable, or `"$file:PATH"` for the
 * content of a file without the line end at its end. The value never shows in a message. `needed`:
 * an unset variable, or a file without a secret, is a fault.
 */
export function secret({ env, files }: SecretSources, needed = true): Check<string> {
  return refine(string({ min: 1, secret: true }), (text) => {
    if (text.startsWith(FILE)) return valueInFile(text.slice(FILE.length), files, needed);
    const name = text.startsWith("$") ? text.slice(1) : undefined;
    // A text that is no variable's name may be a secret itself, so it is not repeated.
    if (name !== undefined && !/^[A-Za-z_]\w*$/.test(name))
      fail(
        "invalid_value",
        "expected the secret, or $ and the name of an environment variable, " +
          "or $file: and the path of a file",
      );
    const value = name === undefined ? text : environmentValue(name, env, needed);
    // A line end at the end of a file that was read into the environment is the usual mistake.
    if (SENDABLE.test(value)) return value;
    return fail("invalid_value", "expected printable ASCII without spaces or line ends");
  });
}

function environmentValue(name: string, env: Environment, needed: boolean): string {
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (value) return value;
  return needed ? fail("invalid_value", `the environment variable ${name} is not set`) : UNSET;
}

function valueInFile(written: string, files: SecretFiles, needed: boolean): string {
  if (written === "") return fail("invalid_value", "expected the path of a file after $file:");
  const { path, text, fault } = files.read(written);
  if (text === undefined)
    return needed ? fail("invalid_value", `no secret in the file ${path}: ${fault}`) : UNSET;
  if (SENDABLE.test(text)) return text;
  const expected = "expected printable ASCII without spaces, and one line end at most after it";
  return fail("invalid_value", `no secret in the file ${path}: ${expected}`);
}
