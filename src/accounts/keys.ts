// Who calls: an API key to its account. SPEC.md "Authentication", the 401 rows of WIRE.md 4.2.
// Keys are compared by their SHA-256, so neither memory nor timing holds anything of the key itself.

import { createHash } from "node:crypto";
import type { Config } from "../config/schema.ts";
import { sha256 } from "../config/schema.ts";
import { ApiError } from "../protocol/errors.ts";

export interface Caller {
  readonly account: string;
  /** Names the key in logs and books; derived from the digest one way, so it says nothing of the key. */
  readonly keyId: string;
  /** Requests per minute of the account over all its keys, and of this key alone; null is unlimited. */
  readonly accountRpm: number | null;
  readonly keyRpm: number | null;
  /** The names that this key may send as `model`; undefined is all. */
  readonly models: ReadonlySet<string> | undefined;
}

export interface Keyring {
  /** The caller behind an Authorization header; throws the ApiError for a missing or unknown key. */
  authenticate(authorization: string | undefined): Caller;
}

export function createKeyring(config: Config): Keyring {
  const callers = new Map<string, Caller>();
  for (const { digest, account, rpm, models } of config.keys) {
    const accountRpm = config.accounts.get(account)?.rpm;
    callers.set(digest, {
      account,
      keyId: `key_${sha256(digest).slice(0, 16)}`,
      accountRpm: accountRpm === undefined ? config.limits.rpm : accountRpm,
      keyRpm: rpm ?? null,
      models: models && new Set(models),
    });
  }
  return {
    authenticate(authorization) {
      const key = authorization && /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
      if (!key) {
        throw new ApiError("missing_api_key", "No API key was given. Send it as 'Authorization: Bearer <API_KEY>'.", {
          headers: { "WWW-Authenticate": "Bearer" },
        });
      }
      // Header bytes beyond ASCII arrive as Latin-1: hash the bytes that were sent.
      const caller = callers.get(createHash("sha256").update(key, "latin1").digest("hex"));
      if (caller) return caller;
      throw new ApiError("invalid_api_key", "The API key is not valid.", {
        headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' },
      });
    },
  };
}
