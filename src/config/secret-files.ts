// Files that hold one secret each, as Docker, Kubernetes and systemd put them on a machine. Each is
// read once for a configuration, so all settings that name it get the same text. What was read is
// remembered, with the file of the configuration itself, so that a change can be noticed.
import { isAbsolute, resolve } from "node:path";
import { MAX_SECRET_BYTES, readRegularFile, stateOfFailed, whyUnreadable } from "./regular-file.ts";

/** A file that was read for a configuration. */
export interface ReadFile {
  readonly path: string;
  /**
   * By which a change of the file is noticed: the SHA-256 of its content, or why it could not be
   * read; null if there is no file.
   */
  readonly state: string | null;
}

/** What was found at the absolute path of a secret. It has either `text` or `fault`. */
export interface SecretFile extends ReadFile {
  /** The content without the line end at its end. Never empty. */
  readonly text?: string;
  /** Why there is no secret: `it is empty`. Nothing of the content. */
  readonly fault?: string;
}

/** The files of secrets that one configuration names. */
export interface SecretFiles {
  /** `path` as it is written: absolute, or relative to the folder of the configuration. */
  read(path: string): SecretFile;
  /** The configuration itself was read, or could not be read. */
  readConfig(file: ReadFile): void;
  /** All files that have been read so far. */
  all(): readonly ReadFile[];
}

/** `folder`: that of the configuration file. */
export function createSecretFiles(folder: string): SecretFiles {
  const files = new Map<string, SecretFile>();
  const configs: ReadFile[] = [];
  return {
    read(written) {
      const path = isAbsolute(written) ? written : resolve(folder, written);
      const file = files.get(path) ?? readSecretFile(path);
      files.set(path, file);
      return file;
    },
    readConfig: (file) => configs.push(file),
    all: () => [...configs, ...files.values()],
  };
}

function readSecretFile(path: string): SecretFile {
  try {
    const { bytes, digest } = readRegularFile(path, MAX_SECRET_BYTES);
    const text = bytes.toString("utf8").replace(/\r?\n$/, "");
    const found = text === "" ? { fault: "it is empty" } : { text };
    return { path, ...found, state: digest };
  } catch (error) {
    return { path, fault: whyUnreadable(error), state: stateOfFailed(error) };
  }
}
