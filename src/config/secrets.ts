// Secrets in gateway.json: as they are, as the name of an environment variable that holds them, or
// as the path of a file that does.
import { fail, refine, string, type Check } from "../core/schema/checker.ts";
import { MAX_SECRET_BYTES } from "./regular-file.ts";
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
export const UNREAD_SECRET = "unset";
/** The prefix of a reference to a secret in a file. */
const FILE = "$file:";
/** It travels in a header. */
const SENDABLE = /^[\x21-\x7e]+$/;

const EXPECTED = "expected printable ASCII without spaces";

/**
 * A text that may be `"$NAME"`, as a whole, for an environment variable, or `"$file:PATH"` for the
 * content of a file without the line end at its end. The value never shows in a message. `needed`:
 * an unset variable, or a file without a secret, is a fault.
 */
export const secret = (sources: SecretSources, needed = true): Check<string> =>
  refine(string({ min: 1, secret: true }), (text) => {
    const { value, fault } = lookUp(text, sources);
    if (value !== undefined && SENDABLE.test(value)) return value;
    return value === undefined && !needed ? UNREAD_SECRET : fail("invalid_value", fault);
  });

/** What stands for a secret, and what is wrong with it if it is none. */
function lookUp(
  text: string,
  { env, files }: SecretSources,
): { readonly value: string | undefined; readonly fault: string } {
  if (text.startsWith(FILE)) {
    if (text === FILE) return fail("invalid_value", `expected the path of a file after ${FILE}`);
    const file = files.read(text.slice(FILE.length), MAX_SECRET_BYTES);
    const { path, fault = `${EXPECTED}, and one line end at most after it` } = file;
    return { value: file.text, fault: `no secret in the file ${path}: ${fault}` };
  }
  const name = text.startsWith("$") ? text.slice(1) : undefined;
  // A line end at the end of a file that was read into the environment is the usual mistake.
  if (name === undefined) return { value: text, fault: `${EXPECTED} or line ends` };
  // A text that is no variable's name may be a secret itself, so it is not repeated.
  if (!/^[A-Za-z_]\w*$/.test(name))
    return fail(
      "invalid_value",
      "expected the secret, or $ and the name of an environment variable, " +
        "or $file: and the path of a file",
    );
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  const variable = `the environment variable ${name}`;
  if (value) return { value, fault: `${EXPECTED} or line ends in ${variable}` };
  return { value: undefined, fault: `${variable} is ${value === "" ? "empty" : "not set"}` };
}
