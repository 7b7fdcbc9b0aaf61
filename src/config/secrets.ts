// Secrets in gateway.json: as they are, as the name of an environment variable that holds them, or
// as the path of a file that does, as Docker, Kubernetes and systemd put them on a machine. Such a
// file is read once for a configuration, so all settings that name it get the same text. What was
// read is remembered, with the file of the configuration itself, so that a change can be noticed.
import { isAbsolute, resolve } from "node:path";
import { fail, refine, string, type Check } from "../core/schema/checker.ts";
import {
  MAX_CONFIG_BYTES,
  MAX_SECRET_BYTES,
  readRegularFile,
  unreadableState,
  whyUnreadable,
} from "./regular-file.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The sources of the secrets that a configuration names. */
export interface SecretSources {
  /** For `"$NAME"`. An empty variable counts as one that is not set. */
  readonly env: Environment;
  /** For `"$file:PATH"`. */
  readonly files: SecretFiles;
}

/** The value of a secret that cannot be read, if that is not a fault. */
export const UNREAD_SECRET = "unset";
/** The prefix of a reference to a secret in a file. */
const FILE = "$file:";
/** The characters of a secret, which is sent in a header. */
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

/** The secret that a text gives or names, and the fault to report if it cannot be used. */
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
  // As LiteLLM writes a variable: otherwise this text would be sent as the secret.
  const isForeign = text.startsWith("os.environ/");
  // A line end at the end of a file that was read into the environment is the usual mistake.
  if (name === undefined && !isForeign) return { value: text, fault: `${EXPECTED} or line ends` };
  // A text that is no variable's name may be a secret itself, so it is not repeated.
  if (name === undefined || !/^[A-Za-z_]\w*$/.test(name))
    return fail(
      "invalid_value",
      "expected the secret, or $ and the name of an environment variable, " +
        "or $file: and the path of a file",
    );
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  const variable = `the environment variable ${name}`;
  // `docker run --env-file` keeps the quotes around a value.
  if (value && /^(["']).*\1$/.test(value))
    return fail("invalid_value", `expected no quotes around the secret in ${variable}`);
  if (value) return { value, fault: `${EXPECTED} or line ends in ${variable}` };
  return { value: undefined, fault: `${variable} is ${value === "" ? "empty" : "not set"}` };
}

/** A file that was read for a configuration. */
export interface FileState {
  readonly path: string;
  /**
   * The state by which a change of the file is detected: the SHA-256 of its content, or why it
   * could not be read. Null: there is no file.
   */
  readonly state: string | null;
}

/** What was found at the absolute path of a secret. It has either `text` or `fault`. */
export interface SecretFile extends FileState {
  /** The content without the line end at its end. Never empty. */
  readonly text?: string;
  /** Why there is no secret: `it is empty`. Nothing of the content. */
  readonly fault?: string;
}

/** The files of secrets that one configuration names. */
export interface SecretFiles {
  /**
   * `path` as it is written: absolute, or relative to the folder of the configuration. A text of
   * more than `maxBytes` is a fault.
   */
  read(path: string, maxBytes: number): SecretFile;
  /** The configuration itself was read, or could not be read. */
  readConfig(file: FileState): void;
  /** All files that have been read so far. */
  all(): readonly FileState[];
}

/** `folder`: the folder of the configuration file. */
export function createSecretFiles(folder: string): SecretFiles {
  const files = new Map<string, SecretFile>();
  const configs: FileState[] = [];
  return {
    read(written, maxBytes) {
      const path = isAbsolute(written) ? written : resolve(folder, written);
      const file = files.get(path) ?? readSecretFile(path);
      files.set(path, file);
      if (Buffer.byteLength(file.text ?? "") <= maxBytes) return file;
      return { path, fault: `it has more than ${maxBytes} bytes`, state: file.state };
    },
    readConfig: (file) => configs.push(file),
    all: () => [...configs, ...files.values()],
  };
}

/** Reads as much as watchFile() does: otherwise a file in between would be a change each time. */
function readSecretFile(path: string): SecretFile {
  try {
    const { bytes, digest } = readRegularFile(path, MAX_CONFIG_BYTES);
    const text = bytes.toString("utf8").replace(/\r?\n$/, "");
    const found = text === "" ? { fault: "it is empty" } : { text };
    return { path, ...found, state: digest };
  } catch (error) {
    return { path, fault: whyUnreadable(error), state: unreadableState(error) };
  }
}
