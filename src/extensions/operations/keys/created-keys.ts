// Keys that `keys create` made: keys.json under data_dir. The manual's page security.md says how
// they are kept.
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
import { replaceFile, watchFile, withLock, type Found } from "../../scale/data-files/index.ts";
import type { KeySource, KeySourceOptions } from "../../../core/extension/places.ts";
import { sha256 } from "../../../core/hash.ts";
import { issueText, ValidationError } from "../../../core/schema/checker.ts";
import { createdKeys, type CreatedKey, type NewKey } from "./schema.ts";

export const keyFile = (dataDir: string): string => join(dataDir, "keys.json");

/** Error codes of a file that is not there. */
const ABSENT = ["ENOENT", "ENOTDIR"];

/**
 * Reads the file at once. `digest` is that of its content, null if there is no file. Throws a
 * ValidationError if it holds something else than keys.
 */
function loadKeys(file: string): { keys: CreatedKey[]; digest: string | null } {
  let content: FileContent;
  try {
    content = readRegularFile(file, MAX_KEYS_BYTES);
  } catch (error) {
    if (ABSENT.includes(whyUnreadable(error))) return { keys: [], digest: null };
    return failUnreadable(file, error);
  }
  const { bytes, digest } = content;
  return { keys: keysOf(file, parseJsonFile(file, textIn(bytes))), digest };
}

/** Checks what a file holds. The message of each fault begins with the file. */
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

/** The keys as requests look for them. */
const indexed = (keys: readonly CreatedKey[]): CreatedKeys => ({
  byDigest: new Map(keys.map((key) => [key.sha256, key])),
  accounts: new Set(keys.map(({ account }) => account)),
});

/** The keys of a data_dir as requests look for them. Throws as loadKeys() does. */
export const createdKeysIn = (dataDir: string): CreatedKeys => indexed(readKeys(keyFile(dataDir)));

/** Keys that are checked in one turn of the event loop: some 5 ms. */
const STEP_KEYS = 2_000;

/**
 * The keys in what a look at the file has found. It never holds the event loop for longer than
 * JSON.parse takes (70 ms for 30 MB), unless there is a fault.
 */
async function keysFound(file: string, found: Found): Promise<CreatedKeys> {
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

/** Ids of a line of the log. */
const MAX_LOGGED = 20;

/** The ids of keys that were made (or revoked, if `isRevoked`) between two readings. */
const changedIds = (before: CreatedKeys, after: CreatedKeys, isRevoked: boolean): string[] =>
  [...after.byDigest]
    .filter(([, { revoked }]) => (revoked !== null) === isRevoked)
    .filter(([digest, { revoked }]) => before.byDigest.get(digest)?.revoked !== revoked)
    .slice(0, MAX_LOGGED)
    .map(([, { key_id }]) => key_id);

/** Why a file of keys could not be read again, by its path. Those that can be are not in it. */
const faults = new Map<string, string>();

/** Why the keys of before stay in force; null: keys.json was read, or there is none. */
export const keysFault = (dataDir: string): string | null => faults.get(keyFile(dataDir)) ?? null;

/**
 * Reads the keys, and again whenever the file changes. While it cannot be read the keys before it
 * stay in force.
 */
export function watchKeys({ dataDir, changed, diagnose }: KeySourceOptions): KeySource {
  const file = keyFile(dataDir);
  const { keys, digest } = loadKeys(file);
  let current = indexed(keys);

  async function take(found: Found): Promise<void> {
    const isAbsent = "error" in found && ABSENT.includes(whyUnreadable(found.error));
    if (isAbsent && current.byDigest.size === 0) return;
    try {
      const before = current;
      current = await keysFound(file, found);
      faults.delete(file);
      changed();
      const created = changedIds(before, current, false);
      const revoked = changedIds(before, current, true);
      diagnose({ event: "keys_changed", level: "info", created, revoked });
    } catch (error) {
      const { message } = error as Error;
      faults.set(file, message);
      const detail = `the keys before it stay in force: ${message}`;
      diagnose({ event: "keys_unreadable", level: "error", detail });
    }
  }

  const watcher = watchFile(file, take, { maxBytes: MAX_KEYS_BYTES, seen: digest });
  return {
    current: () => current,
    close() {
      watcher.close();
      faults.delete(file);
    },
  };
}

/**
 * Changes keys.json, while no other process does. `change` returns the keys to write, or undefined
 * to leave the file as it is.
 */
function updateKeys(
  dataDir: string,
  change: (keys: CreatedKey[]) => CreatedKey[] | undefined,
): Promise<void> {
  const file = keyFile(dataDir);
  return withLock({ dir: join(dataDir, "spend"), name: "keys" }, async () => {
    const keys = change(readKeys(file));
    if (keys) await replaceFile(file, `${JSON.stringify(keys, null, 2)}\n`);
  });
}

/**
 * Makes a key and stores what is known of it. The key itself is in the result and nowhere else.
 * `now`: milliseconds since 1970.
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
 * Revokes a key for good, in all rows that somebody may have made of it by hand; undefined if there
 * is none of this id. `now`: as above.
 */
export async function revokeKey(
  dataDir: string,
  keyId: string,
  now: number,
): Promise<CreatedKey | undefined> {
  const isOfId = (stored: CreatedKey): boolean => stored.key_id === keyId;
  // Before the lock, whose folder would be made for nothing.
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
