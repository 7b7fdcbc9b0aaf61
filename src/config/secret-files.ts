// Files that hold one secret each, as Docker, Kubernetes and systemd put them on a machine. Each is
// read once for a configuration, so all settings that name it get the same text.
import { isAbsolute, resolve } from "node:path";
import { MAX_SECRET_BYTES, readRegularFile, whyUnreadable } from "./regular-file.ts";

/** What was found at the path of a secret. It has either `text` or `fault`. */
export interface SecretFile {
  /** Absolute. */
  readonly path: string;
  /** The content without the line end at its end. Never empty. */
  readonly text?: string;
  /** Why there is no secret: `it is empty`. Nothing of the content. */
  readonly fault?: string;
  /**
   * By which a change of the file is noticed: the SHA-256 of its content, or why it could not be
   * read; null if there is no file.
   */
  readonly state: string | null;
}

/** The files of secrets that one configuration names. */
export interface SecretFiles {
  /** `path` as it is written: absolute, or relative to the folder of the configuration. */
  read(path: string): SecretFile;
  /** The files that have been read so far. */
  all(): readonly SecretFile[];
}

/** `folder`: that of the configuration file. */
export function createSecretFiles(folder: string): SecretFiles {
  const files = new Map<string, SecretFile>();
  return {
    read(written) {
      const path = isAbsolute(written) ? written : resolve(folder, written);
      const file = files.get(path) ?? readSecretFile(path);
      files.set(path, file);
      return file;
    },
    all: () => [...files.values()],
  };
}

function readSecretFile(path: string): SecretFile {
  try {
    const { bytes, digest } = readRegularFile(path, MAX_SECRET_BYTES);
    const text = bytes.toString("utf8").replace(/\r?\n$/, "");
    const found = text === "" ? { fault: "it is empty" } : { text };
    return { path, ...found, state: digest };
  } catch (error) {
    const why = whyUnreadable(error);
    return { path, fault: why, state: why === "ENOENT" ? null : why };
  }
}
