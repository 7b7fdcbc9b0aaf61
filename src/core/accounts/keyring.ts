// Authentication: from an API key to its account. contract.md "Authentication". Keys are compared
// by their SHA-256, so neither memory nor timing reveals the key.
import { sha256 } from "../hash.ts";
import { ApiError, type ErrorCode } from "../openai/errors.ts";
import { accountLimitName, keyLimitName, type AdmissionRequest } from "./limiter.ts";

/** The rights and limits of a known key. */
export interface Caller extends AdmissionRequest {
  /**
   * Names the key in logs and books. It is a one-way hash of the key's digest, so it reveals
   * nothing about the key.
   */
  readonly keyId: string;
  /** The names that it may send as `model`. Undefined: all. */
  readonly models: ReadonlySet<string> | undefined;
  /**
   * The key is refused from this time on, in milliseconds of the wall clock. Infinity: it never
   * expires. 0: it was revoked.
   */
  readonly validUntil: number;
  /** The facts about the key, with those that extensions have added. */
  readonly terms: KeyTerms;
}

/** The facts about a key. */
export interface KeyTerms {
  /** `key_` and 16 hexadecimal digits: as Caller.keyId. */
  readonly key_id: string;
  /** The account that the key was issued for. It pays. */
  readonly account: string;
  /** Requests per minute of this key alone; null: only its account's limit. */
  readonly rpm: number | null;
  /** The names that it may send as `model`; null: all. */
  readonly models: readonly string[] | null;
  /** When it expires, in ISO 8601; null: never. */
  readonly expires: string | null;
  /** When it was revoked, in ISO 8601; null: it was not. */
  readonly revoked: string | null;
}

/** The keys that are not in the configuration. */
export interface CreatedKeys {
  /** By the SHA-256 of the key in lower-case hexadecimal; revoked and expired ones too. */
  readonly byDigest: ReadonlyMap<string, KeyTerms>;
  /** The accounts of all these keys. */
  readonly accounts: ReadonlySet<string>;
}

export const NO_CREATED_KEYS: CreatedKeys = { byDigest: new Map(), accounts: new Set() };

/** The settings of accounts and keys that decide who may call. */
export interface AccountSettings {
  /**
   * Accounts with limits of their own, by name. `rpm` absent: as in `limits`; null: unlimited.
   * `max_in_flight` absent or null: any number.
   */
  readonly accounts: ReadonlyMap<
    string,
    { readonly rpm?: number | null | undefined; readonly max_in_flight?: number | null | undefined }
  >;
  /**
   * `digest` is the SHA-256 of the key in lower-case hexadecimal. `rpm` absent or null: only its
   * account's limit. `models` absent: all.
   */
  readonly keys: readonly {
    readonly account: string;
    readonly digest: string;
    readonly rpm?: number | null | undefined;
    readonly models?: readonly string[] | undefined;
  }[];
  /** `rpm` is the limit of accounts that have none of their own; null: unlimited. */
  readonly limits: { readonly rpm: number | null };
}

/** Accounts with their requests per minute; null: unlimited. */
export type AccountLimits = ReadonlyMap<string, number | null>;

export interface Keyring {
  /**
   * Finds the caller by an Authorization header. Calls `identified` for each known key, even if it
   * is refused. Throws the ApiError of a missing, unknown, revoked or expired key.
   */
  authenticate(authorization: string | undefined, identified?: (caller: Caller) => void): Caller;
  /** Every account that has a key. */
  accounts(): AccountLimits;
}

export const keyIdOf = (digest: string): string => `key_${sha256(digest).slice(0, 16)}`;

/** The keys of the configuration, by their digests. They never expire. */
export const configuredKeys = ({
  keys,
}: Pick<AccountSettings, "keys">): ReadonlyMap<string, KeyTerms> =>
  new Map(
    keys.map(({ digest, account, rpm = null, models = null, ...added }) => [
      digest,
      { ...added, key_id: keyIdOf(digest), account, rpm, models, expires: null, revoked: null },
    ]),
  );

/**
 * A key of the configuration takes precedence over the same key among the created ones. `now` is
 * the wall clock in milliseconds. Callers are created on first use, so that a reload with 100,000
 * keys is fast.
 */
export function createKeyring(
  settings: AccountSettings,
  created: CreatedKeys,
  now: () => number,
): Keyring {
  const configured = configuredKeys(settings);
  const callers = new Map<string, Caller>();
  const limitOf = (account: string): number | null => {
    const { rpm = settings.limits.rpm } = settings.accounts.get(account) ?? {};
    return rpm;
  };

  function callerOf(digest: string): Caller | undefined {
    const known = callers.get(digest);
    if (known) return known;
    const terms = configured.get(digest) ?? created.byDigest.get(digest);
    const caller = terms && createCaller(terms);
    if (caller) callers.set(digest, caller);
    return caller;
  }

  function createCaller(terms: KeyTerms): Caller {
    const { key_id: keyId, account, rpm, models, revoked, expires } = terms;
    const end = expires === null ? Infinity : Date.parse(expires);
    return {
      account,
      keyId,
      limits: [
        { name: accountLimitName(account), rpm: limitOf(account) },
        { name: keyLimitName(keyId), rpm },
      ],
      maxInFlight: settings.accounts.get(account)?.max_in_flight ?? null,
      models: models ? new Set(models) : undefined,
      validUntil: revoked === null ? end : 0,
      terms,
    };
  }

  return {
    authenticate(authorization, identified) {
      const key = authorization && /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
      if (!key) throw refusal("missing_api_key", NO_KEY, "Bearer");
      // Header bytes beyond ASCII arrive as Latin-1: hash the bytes that were sent.
      const caller = callerOf(sha256(Buffer.from(key, "latin1")));
      if (!caller) throw refusal("invalid_api_key", "The API key is not valid.");
      identified?.(caller);
      // Also refuses a date that cannot be read.
      if (!(caller.validUntil > now()))
        throw refusal("api_key_disabled", "The API key has been revoked or has expired.");
      return caller;
    },
    accounts() {
      const names = [...created.accounts, ...settings.keys.map(({ account }) => account)];
      return new Map(names.map((account) => [account, limitOf(account)]));
    },
  };
}

const NO_KEY = "No API key was given. Send it as 'Authorization: Bearer <API_KEY>'.";

const refusal = (
  code: ErrorCode,
  message: string,
  challenge = 'Bearer error="invalid_token"',
): ApiError => new ApiError(code, message, { headers: { "WWW-Authenticate": challenge } });
