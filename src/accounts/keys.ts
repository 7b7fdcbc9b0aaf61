// Who calls: an API key to its account. SPEC.md "Authentication", the 401 rows of WIRE.md 4.2.
// Keys are compared by their SHA-256, so neither memory nor timing holds anything of the key itself. Those of the configuration, and those that
// `keys create` made: keys.json under data_dir, DESIGN.md "Files under data_dir".
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { readJson, replaceFile } from "../accounting/files.ts";
import { sha256, type Config } from "../config/schema.ts";
import {
  array,
  fail,
  nonEmpty,
  nullable,
  number,
  object,
  refine,
  string,
  type Infer,
} from "../protocol/checker.ts";
import { ApiError, type ErrorCode } from "../protocol/errors.ts";
import type { Ask } from "./limiter.ts";

/** Its limits are the account's over all its keys, and this key's own. `keyId` names the key in logs and books; derived from the digest one
 * way, it says nothing of the key. `models` are the names that it may send as `model`; undefined is all. From `validUntil` on it is refused,
 * in milliseconds of the wall clock: Infinity is never, 0 a key that was revoked. */
export interface Caller extends Ask {
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

/** The keys of the configuration and those of keys.json; one that stands in both is the configuration's. `now`: wall clock. */
export function createKeyring(config: Config, stored: readonly StoredKey[], now: () => number) {
  const callers = new Map<string, Caller>();
  const accounts = new Map<string, number | null>();
  for (const { key_id: keyId, sha256: digest, account, rpm, models, revoked, expires } of [
    ...stored,
    ...fixedKeys(config),
  ]) {
    const { rpm: accountRpm = config.limits.rpm, max_in_flight: maxInFlight = null } =
      config.accounts.get(account) ?? {};
    const limits = [
      { name: `account ${account}`, rpm: accountRpm },
      { name: `key ${keyId}`, rpm },
    ];
    const validUntil = revoked !== null ? 0 : expires === null ? Infinity : Date.parse(expires);
    accounts.set(account, accountRpm);
    callers.set(digest, {
      account,
      keyId,
      limits,
      maxInFlight,
      models: models ? new Set(models) : undefined,
      validUntil,
    });
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
      const caller = callers.get(sha256(Buffer.from(key, "latin1")));
      if (!caller) throw refusal("invalid_api_key", "The API key is not valid.");
      if (!(caller.validUntil > now()))
        throw refusal("api_key_disabled", "The API key has been revoked or has expired.");
      return caller;
    },
    /** Every account that has a key, with its limit. */
    accounts: accounts as ReadonlyMap<string, number | null>,
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
/** Throws a CheckError if there is something else in the file than this program writes; an absent file holds no keys. */
export const readKeys = (file: string): StoredKey[] =>
  storedKeys(readJson(file, [], ["ENOENT", "ENOTDIR"]), true);
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
