// Who calls: an API key to its account. SPEC.md "Authentication", the 401 rows of WIRE.md 4.2.
// Keys are compared by their SHA-256, so neither memory nor timing holds anything of the key itself. Those of the configuration, and those that
// `keys create` made: keys.json under data_dir, DESIGN.md "Files under data_dir".
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { failUnreadable, parseJsonFile, readJson, textIn } from "../config/json-file.ts";
import { replaceFile } from "../config/replace-file.ts";
import {
  MAX_KEYS_BYTES,
  readRegularFile,
  whyUnreadable,
  type FileContent,
} from "../config/regular-file.ts";
import type { Config } from "../config/schema.ts";
import { sha256 } from "../hash.ts";
import { watchFile, type Found } from "../config/watch.ts";
import {
  array,
  ValidationError,
  fail,
  nonEmpty,
  nullable,
  number,
  object,
  refine,
  string,
  type ValidationIssue,
  type Infer,
} from "../schema/checker.ts";
import { ApiError, type ErrorCode } from "../openai/errors.ts";
import type { AdmissionRequest } from "./limiter.ts";

/** Its limits are the account's over all its keys, and this key's own. `keyId` names the key in logs and books; derived from the digest one
 * way, it says nothing of the key. `models` are the names that it may send as `model`; undefined is all. From `validUntil` on it is refused,
 * in milliseconds of the wall clock: Infinity is never, 0 a key that was revoked. */
export interface Caller extends AdmissionRequest {
  readonly keyId: string;
  readonly models: ReadonlySet<string> | undefined;
  readonly validUntil: number;
}

export type Keyring = ReturnType<typeof createKeyring>;
export const keyIdOf = (digest: string): string => `key_${sha256(digest).slice(0, 16)}`;
/** The keys of the configuration, as those of keys.json are. */
export const fixedKeys = ({ keys }: Config) =>
  keys.map(({ digest, account, rpm = null, models = null }) => ({
    key_id: keyIdOf(digest),
    account,
    name: "(in the configuration)",
    sha256: digest,
    rpm,
    models,
    created: null,
    expires: null,
    revoked: null,
  }));

/** The keys of the configuration and those of keys.json; one that stands in both is the configuration's. `now`: wall clock. What a key may
 * do is worked out when it is first used: a new configuration must not cost the time of 100,000 keys. */
export function createKeyring(config: Config, stored: StoredKeys, now: () => number) {
  const fixed = new Map(fixedKeys(config).map((key) => [key.sha256, key]));
  const callers = new Map<string, Caller>();
  const rpmOf = (account: string): number | null => {
    const { rpm = config.limits.rpm } = config.accounts.get(account) ?? {}; // null is unlimited
    return rpm;
  };

  function callerOf(digest: string): Caller | undefined {
    const known = callers.get(digest);
    if (known) return known;
    const key = fixed.get(digest) ?? stored.byDigest.get(digest);
    if (!key) return undefined;
    const caller = createCaller(key);
    callers.set(digest, caller);
    return caller;
  }

  function createCaller({ key_id: keyId, account, rpm, models, revoked, expires }: KeyTerms) {
    const neverExpires = expires === null ? Infinity : Date.parse(expires);
    return {
      account,
      keyId,
      limits: [
        { name: `account ${account}`, rpm: rpmOf(account) },
        { name: `key ${keyId}`, rpm },
      ],
      maxInFlight: config.accounts.get(account)?.max_in_flight ?? null,
      models: models ? new Set(models) : undefined,
      validUntil: revoked === null ? neverExpires : 0,
    };
  }

  return {
    /** The caller behind an Authorization header; throws the ApiError for a missing, unknown, revoked or expired key. */
    authenticate(authorization: string | undefined): Caller {
      const key = authorization && /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
      if (!key)
        throw refusal(
          "missing_api_key",
          "No API key was given. Send it as 'Authorization: Bearer <API_KEY>'.",
          "Bearer",
        );
      // Header bytes beyond ASCII arrive as Latin-1: hash the bytes that were sent.
      const caller = callerOf(sha256(Buffer.from(key, "latin1")));
      if (!caller) throw refusal("invalid_api_key", "The API key is not valid.");
      if (!(caller.validUntil > now()))
        throw refusal("api_key_disabled", "The API key has been revoked or has expired.");
      return caller;
    },
    /** Every account that has a key, with its limit. */
    accounts: (): ReadonlyMap<string, number | null> => {
      const names = [...stored.accounts, ...config.keys.map(({ account }) => account)];
      return new Map(names.map((account) => [account, rpmOf(account)]));
    },
  };
}

const refusal = (
  code: ErrorCode,
  message: string,
  challenge = 'Bearer error="invalid_token"',
): ApiError => new ApiError(code, message, { headers: { "WWW-Authenticate": challenge } });

// ---- keys.json

const time = refine(nonEmpty, (given) =>
  Number.isNaN(Date.parse(given)) ? fail("invalid_value", "expected a time in ISO 8601") : given,
);
/** `rpm`: requests per minute of this key alone; null: only its account's limit. `models` null: all. Other nulls: no name, never, not. */
const storedKeys = array(
  object({
    key_id: nonEmpty,
    account: nonEmpty,
    name: nullable(string()),
    sha256: string({ pattern: /^[0-9a-f]{64}$/, secret: true }),
    rpm: nullable(number({ min: 0, integer: true })),
    models: nullable(array(nonEmpty)),
    created: time,
    expires: nullable(time),
    revoked: nullable(time),
  }),
);
export type StoredKey = Infer<typeof storedKeys>[number];
export const keyFile = (dataDir: string): string => join(dataDir, "keys.json");
/** Throws a ValidationError if there is something else in the file than this program writes; an absent file holds no keys. */
export const readKeys = (file: string): StoredKey[] => storedKeys(readJson(file, [], ABSENT), true);
const ABSENT = ["ENOENT", "ENOTDIR"];

/** The keys of keys.json as requests look for them. */
export interface StoredKeys {
  readonly byDigest: ReadonlyMap<string, StoredKey>;
  readonly accounts: ReadonlySet<string>;
}
type KeyTerms = Pick<StoredKey, "key_id" | "account" | "rpm" | "models" | "revoked" | "expires">;
const STEP_KEYS = 2_000; // checked in one turn of the event loop: some 5 ms

/** Checks the keys of a parsed keys.json step by step: after each the event loop may do something else. Throws a ValidationError with all faults. */
function* indexKeys(json: unknown): Generator<void, StoredKeys> {
  const byDigest = new Map<string, StoredKey>();
  const accounts = new Set<string>();
  const faults: ValidationIssue[] = [];
  const count = Array.isArray(json) ? json.length : 1;
  for (let from = 0; from < count; from += STEP_KEYS) {
    try {
      const part = Array.isArray(json) ? json.slice(from, from + STEP_KEYS) : json;
      for (const key of storedKeys(part, true)) {
        byDigest.set(key.sha256, key);
        accounts.add(key.account);
      }
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      for (const fault of error.faults) faults.push(movedBy(from, fault));
    }
    yield;
  }
  if (faults.length > 0) throw new ValidationError(faults);
  return { byDigest, accounts };
}

const movedBy = (from: number, fault: ValidationIssue): ValidationIssue => {
  const [index, ...rest] = fault.path;
  return typeof index === "number" ? { ...fault, path: [from + index, ...rest] } : fault;
};

/** Reads keys.json at once, at start. `digest` is that of the content; null if there is no file. Throws as readKeys() does. */
function loadKeys(file: string): { keys: StoredKeys; digest: string | null } {
  let content: FileContent | undefined;
  try {
    content = readRegularFile(file, MAX_KEYS_BYTES);
  } catch (error) {
    if (!ABSENT.includes(whyUnreadable(error))) return failUnreadable(file, error);
  }
  const steps = indexKeys(content ? parseJsonFile(file, textIn(content.bytes)) : []);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return { keys: value, digest: content?.digest ?? null };
  }
}

/** The created keys of a data_dir at this moment. Throws as readKeys() does. */
export const storedKeysIn = (dataDir: string): StoredKeys => loadKeys(keyFile(dataDir)).keys;

/** The same from what a look at the file has found, without holding the event loop for longer than JSON.parse takes (70 ms for 30 MB). */
async function keysFound(file: string, found: Found): Promise<StoredKeys> {
  if ("error" in found) return failUnreadable(file, found.error);
  const text = textIn(found.bytes);
  await nextTurn();
  const steps = indexKeys(parseJsonFile(file, text));
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await nextTurn();
  }
}

/** The created keys as they are in the file at every moment. */
export interface KeyStore {
  readonly current: () => StoredKeys;
  readonly close: () => void;
}
/** Reads the keys, and again whenever the file changes: `changed` is called then, or `failed`, and the keys before it stay. Throws as
 * readKeys() does. */
export function createKeyStore(
  dataDir: string,
  changed: (keys: StoredKeys) => void,
  failed: (error: Error) => void,
): KeyStore {
  const file = keyFile(dataDir);
  const { keys, digest } = loadKeys(file);
  let current = keys;
  async function take(found: Found): Promise<void> {
    if ("error" in found && ABSENT.includes(whyUnreadable(found.error))) return;
    try {
      current = await keysFound(file, found);
      changed(current);
    } catch (error) {
      failed(error as Error);
    }
  }
  const watcher = watchFile(file, take, { maxBytes: MAX_KEYS_BYTES, seen: digest });
  return { current: () => current, close: watcher.close };
}

const writeKeys = (file: string, keys: readonly StoredKey[]) =>
  replaceFile(file, `${JSON.stringify(keys, null, 2)}\n`);

type NewKey = Pick<StoredKey, "account" | "name" | "rpm" | "models" | "expires">;
/** Makes a key and stores what is known of it; the key itself is in the result and nowhere else. The caller holds the keys. */
export async function createKey(
  file: string,
  { account, name, rpm, models, expires }: NewKey,
  now: number,
) {
  const key = `sk-${randomBytes(24).toString("base64url")}`;
  const digest = sha256(key);
  const stored = {
    key_id: keyIdOf(digest),
    account,
    name,
    sha256: digest,
    rpm,
    models,
    created: new Date(now).toISOString(),
    expires,
    revoked: null,
  };
  await writeKeys(file, [...readKeys(file), stored]);
  return { key, stored };
}

/** Revokes a key for good; undefined if there is none of this id. The caller holds the keys. */
export async function revokeKey(
  file: string,
  keyId: string,
  now: number,
): Promise<StoredKey | undefined> {
  const keys = readKeys(file);
  const key = keys.find(({ key_id }) => key_id === keyId);
  if (!key) return undefined;
  key.revoked ??= new Date(now).toISOString();
  await writeKeys(file, keys);
  return key;
}
