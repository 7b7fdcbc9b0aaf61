// Created keys: reads, watches and writes keys.json under data_dir. The manual's page security.md
// describes their storage.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { keyIdOf, type CreatedKeys } from "../../../core/accounts/keyring.ts";
import {
  failUnreadable,
  MAX_KEYS_BYTES,
  parseJsonFile,
  readRegularFile,
  textIn,
  whyUnreadable,
  type FileContent,
} from "../../../config/regular-file.ts";
import { replaceFile, watchFile, withLock, type ReadResult } from "../../scale/data-files/index.ts";
import type { KeySource, KeySourceOptions } from "../../../core/extension/places.ts";
import { sha256 } from "../../../core/hash.ts";
import { issueText, ValidationError } from "../../../core/schema/checker.ts";
import { createdKeys, type CreatedKey, type NewKey } from "./schema.ts";

export const keyFile = (dataDir: string): string => join(dataDir, "keys.json");

/** Error codes of an absent file. */
const ABSENT = ["ENOENT", "ENOTDIR"];

interface KeyFile {
  readonly keys: CreatedKey[];
  /** The same keys as they are written, with the fields of later versions and other programs. */
  readonly rows: CreatedKey[];
  /** Of the content. Null: there is no file. */
  readonly digest: string | null;
}

/** Reads the file synchronously. Throws a ValidationError if it is invalid. */
function loadKeys(file: string): KeyFile {
  let content: FileContent;
  try {
    content = readRegularFile(file, MAX_KEYS_BYTES);
  } catch (error) {
    if (ABSENT.includes(whyUnreadable(error))) return { keys: [], rows: [], digest: null };
    return failUnreadable(file, error);
  }
  const { bytes, digest } = content;
  const json = parseJsonFile(file, textIn(bytes));
  return { keys: keysOf(file, json), rows: json as CreatedKey[], digest };
}

/** Validates the JSON of a file. The message of each issue begins with the file's path. */
function keysOf(file: string, json: unknown): CreatedKey[] {
  try {
    return createdKeys(json, true);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const { issues } = error;
    throw new ValidationError(
      issues.map((issue) => ({ ...issue, path: [], message: `${file}: ${issueText(issue)}` })),
    );
  }
}

/** All keys of the file; none if it is absent. Throws as loadKeys() does. */
export const readKeys = (file: string): CreatedKey[] => loadKeys(file).keys;

/** Indexes keys for the authentication of requests. */
const indexed = (keys: readonly CreatedKey[]): CreatedKeys => ({
  byDigest: new Map(keys.map((key) => [key.sha256, key])),
  accounts: new Set(keys.map(({ account }) => account)),
});

/** The indexed keys of a data_dir. Throws as loadKeys() does. */
export const createdKeysIn = (dataDir: string): CreatedKeys => indexed(readKeys(keyFile(dataDir)));

/** Keys that are validated in one turn of the event loop: some 5 ms. */
const STEP_KEYS = 2_000;

/**
 * The indexed keys of a changed file. Validates in steps: only JSON.parse holds the event loop for
 * long (70 ms for 30 MB), unless the file is invalid.
 */
async function keysFound(file: string, found: ReadResult): Promise<CreatedKeys> {
  if ("error" in found) return failUnreadable(file, found.error);
  const text = textIn(found.bytes);
  await nextTurn();
  const json = parseJsonFile(file, text);
  if (!Array.isArray(json)) return indexed(keysOf(file, json));
  const keys: CreatedKey[] = [];
  try {
    for (let from = 0; from < json.length; from += STEP_KEYS) {
      await nextTurn();
      keys.push(...createdKeys(json.slice(from, from + STEP_KEYS), true));
    }
  } catch {
    keysOf(file, json); // throws the same with indices of the whole file
  }
  await nextTurn();
  return indexed(keys);
}

/** The most ids in a line of the log. */
const MAX_LOGGED = 20;

/** The ids of keys that were created (or revoked, if `isRevoked`) between two versions. */
const changedIds = (before: CreatedKeys, after: CreatedKeys, isRevoked: boolean): string[] =>
  [...after.byDigest]
    .filter(([, { revoked }]) => (revoked !== null) === isRevoked)
    .filter(([digest, { revoked }]) => before.byDigest.get(digest)?.revoked !== revoked)
    .slice(0, MAX_LOGGED)
    .map(([, { key_id }]) => key_id);

/** Why a keys.json could not be reloaded, by path. A file without a fault has no entry. */
const faults = new Map<string, string>();

/** Why the last reload failed and the previous keys stay active; null: it did not fail. */
export const keysFault = (dataDir: string): string | null => faults.get(keyFile(dataDir)) ?? null;

/**
 * Loads the keys, and reloads them whenever the file changes. If that fails, the previous keys stay
 * active.
 */
export function watchKeys({ dataDir, changed, diagnose }: KeySourceOptions): KeySource {
  const file = keyFile(dataDir);
  const { keys, digest } = loadKeys(file);
  let current = indexed(keys);

  async function reload(found: ReadResult): Promise<void> {
    const isAbsent = "error" in found && ABSENT.includes(whyUnreadable(found.error));
    const before = current;
    try {
      if (!isAbsent || before.byDigest.size > 0) current = await keysFound(file, found);
      faults.delete(file);
      changed();
      const created = changedIds(before, current, false);
      const revoked = changedIds(before, current, true);
      diagnose({ event: "keys_changed", level: "info", created, revoked });
    } catch (error) {
      const { message } = error as Error;
      faults.set(file, message);
      const detail = `the previous keys stay in force: ${message}`;
      diagnose({ event: "keys_unreadable", level: "error", detail });
    }
  }

  const watcher = watchFile(file, reload, { maxBytes: MAX_KEYS_BYTES, knownState: digest });
  return {
    current: () => current,
    close() {
      watcher.close();
      faults.delete(file);
    },
  };
}

/**
 * Changes keys.json under a lock. `change` returns the keys to write, or undefined to leave the
 * file unchanged.
 */
function updateKeys(
  dataDir: string,
  change: (keys: CreatedKey[]) => CreatedKey[] | undefined,
): Promise<void> {
  const file = keyFile(dataDir);
  return withLock({ dir: join(dataDir, "spend"), name: "keys" }, async () => {
    const keys = change(loadKeys(file).rows);
    if (keys) await replaceFile(file, `${JSON.stringify(keys, null, 2)}\n`);
  });
}

/**
 * Creates a key and stores its digest and terms. The key itself is only in the result. `now`:
 * milliseconds since 1970.
 */
export async function createKey(
  dataDir: string,
  { account, name, rpm, models, expires, ...limits }: NewKey,
  now: number,
): Promise<{ readonly key: string; readonly stored: CreatedKey }> {
  const key = `sk-${randomBytes(24).toString("base64url")}`;
  const digest = sha256(key);
  const created = new Date(now).toISOString();
  const id = { key_id: keyIdOf(digest), account, name, sha256: digest };
  const stored = { ...id, rpm, models, ...limits, created, expires, revoked: null };
  await updateKeys(dataDir, (keys) => [...keys, stored]);
  return { key, stored };
}

/**
 * Revokes a key for good, in all rows with this id, in case somebody copied one by hand. Undefined:
 * there is no such key. `now`: as above.
 */
export async function revokeKey(
  dataDir: string,
  keyId: string,
  now: number,
): Promise<CreatedKey | undefined> {
  const isOfId = (stored: CreatedKey): boolean => stored.key_id === keyId;
  // Checked before taking the lock, which would create its folder in vain.
  if (!readKeys(keyFile(dataDir)).some(isOfId)) return undefined;
  let key: CreatedKey | undefined;
  await updateKeys(dataDir, (keys) => {
    const rows = keys.filter(isOfId);
    for (const row of rows) row.revoked ??= new Date(now).toISOString();
    [key] = rows;
    return key && keys;
  });
  return key;
}
