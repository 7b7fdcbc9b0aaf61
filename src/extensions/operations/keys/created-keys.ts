// Keys that `keys create` made: keys.json under data_dir. The manual's page security.md says how
// they are kept.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { keyIdOf, type CreatedKeys } from "../../../core/accounts/keyring.ts";
import { failUnreadable, parseJsonFile, textIn } from "../../../config/json-file.ts";
import {
  MAX_KEYS_BYTES,
  readRegularFile,
  whyUnreadable,
  type FileContent,
} from "../../../config/regular-file.ts";
import { replaceFile, watchFile, withLock, type Found } from "../../scale/data-files/index.ts";
import type { KeySource, KeySourceOptions } from "../../../core/extension/places.ts";
import { sha256 } from "../../../core/hash.ts";
import { nullable } from "../../../config/fields.ts";
import {
  array,
  fail,
  nonEmpty,
  literal,
  number,
  object,
  optional,
  refine,
  string,
} from "../../../core/schema/checker.ts";

const time = refine(nonEmpty, (text) =>
  Number.isNaN(Date.parse(text)) ? fail("invalid_value", "expected a time in ISO 8601") : text,
);

/** When a budget is renewed: each day, each month, never. */
const PERIODS = ["day", "month", "total"] as const;

/** A budget, as the extension that has budgets reads it. */
export interface KeyBudget {
  /** An exact decimal number. */
  amount: string;
  /** When it is renewed. */
  period: (typeof PERIODS)[number];
}

/** A key as keys.json has it. */
export interface CreatedKey {
  /** As keyIdOf() makes it of `sha256`. */
  key_id: string;
  /** The account that the key was issued for. */
  account: string;
  /** Null: it was not given one. */
  name: string | null;
  /** 64 lower-case hexadecimal digits. */
  sha256: string;
  /** Requests per minute of this key alone; null: only its account's limit. */
  rpm: number | null;
  /** The names that it may send as `model`; null: all. */
  models: string[] | null;
  /** The budget of this key alone. Absent: only its account's budget. */
  budget?: KeyBudget | undefined;
  /** Tokens per minute of this key alone. Absent: only its account's limit. */
  tokens_per_minute?: number | undefined;
  /** When `keys create` made it, in ISO 8601. */
  created: string;
  /** Null: never. */
  expires: string | null;
  /** Null: it was not. */
  revoked: string | null;
}

/** The budget of a key, as it is written. */
export const keyBudget = object(
  {
    amount: refine(string(), (text) =>
      /^\d{1,9}(\.\d{1,12})?$/.test(text)
        ? text
        : fail("invalid_value", "expected a decimal number such as 5.00"),
    ),
    period: literal(...PERIODS),
  },
  { strict: true },
);

const createdKeys = array<CreatedKey>(
  object({
    key_id: nonEmpty,
    account: nonEmpty,
    name: nullable(string()),
    sha256: string({ pattern: /^[0-9a-f]{64}$/, secret: true }),
    rpm: nullable(number({ min: 0, integer: true })),
    models: nullable(array(nonEmpty)),
    budget: optional(keyBudget),
    tokens_per_minute: optional(number({ min: 0, integer: true })),
    created: time,
    expires: nullable(time),
    revoked: nullable(time),
  }),
);

export const keyFile = (dataDir: string): string => join(dataDir, "keys.json");

/** Error codes of a file that is not there. */
const ABSENT = ["ENOENT", "ENOTDIR"];

interface LoadedKeys {
  readonly keys: CreatedKey[];
  /** Of the content of the file; null if there is no file. */
  readonly digest: string | null;
}

/** Reads the file at once. Throws a ValidationError if it holds something else than keys. */
function loadKeys(file: string): LoadedKeys {
  let content: FileContent;
  try {
    content = readRegularFile(file, MAX_KEYS_BYTES);
  } catch (error) {
    if (ABSENT.includes(whyUnreadable(error))) return { keys: [], digest: null };
    return failUnreadable(file, error);
  }
  const { bytes, digest } = content;
  return { keys: createdKeys(parseJsonFile(file, textIn(bytes)), true), digest };
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
  if (!Array.isArray(json)) return indexed(createdKeys(json, true));
  const keys: CreatedKey[] = [];
  try {
    for (let from = 0; from < json.length; from += STEP_KEYS) {
      await nextTurn();
      keys.push(...createdKeys(json.slice(from, from + STEP_KEYS), true));
    }
  } catch {
    createdKeys(json, true); // throws the same with indices of the whole file
  }
  await nextTurn();
  return indexed(keys);
}

/** Ids of a line of the log; of further ones only the number. */
const MAX_LOGGED = 20;

/** The ids of the keys that have come, and of those that were revoked, by whatever program. */
function changeOf(before: CreatedKeys, after: CreatedKeys): object {
  const changed = [...after.byDigest].filter(
    ([digest, { revoked }]) => before.byDigest.get(digest)?.revoked !== revoked,
  );
  const ids = (isRevoked: boolean) =>
    changed
      .filter(([, { revoked }]) => (revoked !== null) === isRevoked)
      .map(([, { key_id }]) => key_id);
  const [created, revoked] = [ids(false), ids(true)];
  const counts = { created_count: created.length, revoked_count: revoked.length };
  return {
    created: created.slice(0, MAX_LOGGED),
    revoked: revoked.slice(0, MAX_LOGGED),
    ...counts,
  };
}

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
    if ("error" in found && ABSENT.includes(whyUnreadable(found.error))) return;
    try {
      const before = current;
      current = await keysFound(file, found);
      faults.delete(file);
      changed();
      diagnose({ event: "keys_changed", level: "info", ...changeOf(before, current) });
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

const writeKeys = (file: string, keys: readonly CreatedKey[]): Promise<void> =>
  replaceFile(file, `${JSON.stringify(keys, null, 2)}\n`);

/** The terms of a key before it is made. */
export type NewKey = Pick<
  CreatedKey,
  "account" | "name" | "rpm" | "models" | "budget" | "tokens_per_minute" | "expires"
>;

/** Keeps other processes from writing keys.json. */
const withKeys = <T>(dataDir: string, write: (file: string) => Promise<T>): Promise<T> =>
  withLock({ dir: join(dataDir, "spend"), name: "keys" }, () => write(keyFile(dataDir)));

/**
 * Makes a key and stores what is known of it. The key itself is in the result and nowhere else.
 * `now`: milliseconds since 1970.
 */
export function createKey(
  dataDir: string,
  terms: NewKey,
  now: number,
): Promise<{ readonly key: string; readonly stored: CreatedKey }> {
  const key = `sk-${randomBytes(24).toString("base64url")}`;
  const digest = sha256(key);
  const stored: CreatedKey = {
    key_id: keyIdOf(digest),
    account: terms.account,
    name: terms.name,
    sha256: digest,
    rpm: terms.rpm,
    models: terms.models,
    ...(terms.budget && { budget: terms.budget }),
    ...(terms.tokens_per_minute !== undefined && { tokens_per_minute: terms.tokens_per_minute }),
    created: new Date(now).toISOString(),
    expires: terms.expires,
    revoked: null,
  };
  return withKeys(dataDir, async (file) => {
    await writeKeys(file, [...readKeys(file), stored]);
    return { key, stored };
  });
}

/** Revokes a key for good; undefined if there is none of this id. `now`: as above. */
export const revokeKey = (
  dataDir: string,
  keyId: string,
  now: number,
): Promise<CreatedKey | undefined> =>
  withKeys(dataDir, async (file) => {
    const keys = readKeys(file);
    const key = keys.find(({ key_id }) => key_id === keyId);
    if (!key) return undefined;
    key.revoked ??= new Date(now).toISOString();
    await writeKeys(file, keys);
    return key;
  });
