// Who calls: an API key to its account. SPEC.md "Authentication", the 401 rows of WIRE.md 4.2.
// Keys are compared by their SHA-256, so neither memory nor timing holds anything of the key itself.
import { sha256, type Config } from "../config/schema.ts";
import { ApiError, type ErrorCode } from "../protocol/errors.ts";
import type { StoredKey } from "./key-file.ts";
import type { Ask } from "./limiter.ts";

/** Its limits are the account's over all its keys, and this key's own. `keyId` names the key in logs and books; derived from the digest one
 * way, it says nothing of the key. `models` are the names that it may send as `model`; undefined is all. From `validUntil` on it is refused,
 * in milliseconds of the wall clock: Infinity is never, 0 a key that was revoked. */
export interface Caller extends Ask { readonly keyId: string; readonly models: ReadonlySet<string> | undefined; readonly validUntil: number }

export type Keyring = ReturnType<typeof createKeyring>;
export const keyIdOf = (digest: string): string => `key_${sha256(digest).slice(0, 16)}`;
/** The keys of the configuration, as those of keys.json are. */
export const fixedKeys = ({ keys }: Config) => keys.map(({ digest, account, rpm = null, models = null }) =>
  ({ key_id: keyIdOf(digest), account, name: "(in the configuration)", sha256: digest, rpm, models, created: null, expires: null, revoked: null }));

/** The keys of the configuration and those of keys.json; one that stands in both is the configuration's. `now`: wall clock. */
export function createKeyring(config: Config, stored: readonly StoredKey[], now: () => number) {
  const callers = new Map<string, Caller>();
  const accounts = new Map<string, number | null>();
  for (const { key_id: keyId, sha256: digest, account, rpm, models, revoked, expires } of [...stored, ...fixedKeys(config)]) {
    const { rpm: accountRpm = config.limits.rpm, max_in_flight: maxInFlight = null } = config.accounts.get(account) ?? {};
    const limits = [{ name: `account ${account}`, rpm: accountRpm }, { name: `key ${keyId}`, rpm }];
    const validUntil = revoked !== null ? 0 : expires === null ? Infinity : Date.parse(expires);
    accounts.set(account, accountRpm);
    callers.set(digest, { account, keyId, limits, maxInFlight, models: models ? new Set(models) : undefined, validUntil });
  }

  return {
    /** The caller behind an Authorization header; throws the ApiError for a missing, unknown, revoked or expired key. */
    authenticate(authorization: string | undefined): Caller {
      const key = authorization && /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
      if (!key) throw refusal("missing_api_key", "No API key was given. Send it as 'Authorization: Bearer <API_KEY>'.", "Bearer");
      // Header bytes beyond ASCII arrive as Latin-1: hash the bytes that were sent.
      const caller = callers.get(sha256(Buffer.from(key, "latin1")));
      if (!caller) throw refusal("invalid_api_key", "The API key is not valid.");
      if (!(caller.validUntil > now())) throw refusal("api_key_disabled", "The API key has been revoked or has expired.");
      return caller;
    },
    /** Every account that has a key, with its limit. */
    accounts: accounts as ReadonlyMap<string, number | null>,
  };
}

const refusal = (code: ErrorCode, message: string, challenge = 'Bearer error="invalid_token"'): ApiError => new ApiError(code, message, { headers: { "WWW-Authenticate": challenge } });
