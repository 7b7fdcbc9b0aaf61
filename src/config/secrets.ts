// Secrets in gateway.json: as they are, or as the name of an environment variable that holds them.
import { fail, refine, string, type Check } from "../core/schema/checker.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What an unset variable stands for where that is no fault. */
const UNSET = "unset";

/**
 * A text that may be `"$NAME"`, as a whole, for an environment variable. Its value never shows in a
 * message. `needed`: an unset variable is a fault.
 */
export function secret(env: Environment, needed = true): Check<string> {
  return refine(string({ min: 1, secret: true }), (text) => {
    const name = text.startsWith("$") ? text.slice(1) : undefined;
    // A text that is no variable's name may be a secret itself, so it is not repeated.
    if (name !== undefined && !/^[A-Za-z_]\w*$/.test(name))
      fail("invalid_value", "expected the secret, or $ and the name of an environment variable");
    const value = name === undefined ? text : environmentValue(name, env, needed);
    // It travels in a header. A line end at the end of a file that was read into the environment is
    // the usual mistake.
    if (/^[\x21-\x7e]+$/.test(value)) return value;
    return fail("invalid_value", "expected printable ASCII without spaces or line ends");
  });
}

function environmentValue(name: string, env: Environment, needed: boolean): string {
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (value) return value;
  return needed ? fail("invalid_value", `the environment variable ${name} is not set`) : UNSET;
}
