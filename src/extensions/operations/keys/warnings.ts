// Accounts without a valid key: no request can be made for them.
import type { CreatedKeys } from "../../../core/accounts/keyring.ts";
import type { Config } from "../../../core/config.ts";
import type { Warning } from "../../../config/extension.ts";

/**
 * Accounts of the configuration that have no valid key. `now` is the wall clock, in milliseconds.
 */
export function keylessAccounts(
  { accounts, keys }: Config,
  created: CreatedKeys,
  now: number,
): Warning[] {
  const served = new Set(keys.map(({ account }) => account));
  for (const { account, revoked, expires } of created.byDigest.values())
    if (revoked === null && (expires === null || Date.parse(expires) > now)) served.add(account);
  return [...accounts.keys()]
    .filter((account) => !served.has(account))
    .map((account) => ({ path: ["accounts", account], message: "has no key that is valid" }));
}
