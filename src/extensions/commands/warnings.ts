// What is odd in a valid configuration: a gateway starts with it, but hardly as it is meant. `check` tells it.
import type { StoredKeys } from "../../core/accounts/keys.ts";
import { VENDORS } from "../../core/config/dialects.ts";
import { vendorPreset } from "../../core/providers/vendors.ts";
import type { ValidationIssue } from "../../core/schema/checker.ts";
import { rank } from "../../core/routing/policy.ts";
import { lacksKey, sharePort, usesVendorsAddress } from "../../core/config/rules.ts";
import type { Config } from "../../core/config/schema.ts";

export interface Warning {
  readonly path: ValidationIssue["path"];
  readonly message: string;
}

/** `stored`: the created keys. `now`: the wall clock, in milliseconds. */
export const warningsOf = (config: Config, stored: StoredKeys, now: number): Warning[] => [
  ...adminWarnings(config),
  ...keylessProviders(config),
  ...hopelessAliases(config),
  ...candidatesOfUnknownSize(config),
  ...keylessAccounts(config, stored, now),
  ...deadlineWarnings(config),
];

function adminWarnings({ server, admin }: Config): Warning[] {
  if (admin || !sharePort(server, { host: "127.0.0.1", port: 8081 })) return [];
  const message =
    "is the port of the admin listener where no admin section says another: there will be none";
  return [{ path: ["server", "port"], message }];
}

function keylessProviders({ providers }: Config): Warning[] {
  return [...providers]
    .filter(([, provider]) => lacksKey(provider) && !usesVendorsAddress(provider))
    .map(([name, provider]) => ({
      path: ["providers", name],
      message: `has no api_key: ${vendorPreset(VENDORS, provider)?.title ?? name} answers nobody without one, unless base_url adds it`,
    }));
}

function hopelessAliases(config: Config): Warning[] {
  return [...config.aliases]
    .filter(([, alias]) => alias.enabled && rank(config, alias).every((each) => each.rank === null))
    .map(([name]) => ({
      path: ["aliases", name],
      message: "has no candidate: every request for it would get 503",
    }));
}

/** Enabled aliases with several candidates, some of which do not say how long a prompt may be: nobody can tell before it is sent
 * whether a long one has room there, so after it was too long for one model these are asked last. */
function candidatesOfUnknownSize(config: Config): Warning[] {
  const hasSize = (name: string) => config.models.get(name)?.context_tokens !== undefined;
  return [...config.aliases].flatMap(([alias, settings]) => {
    const ranked = settings.enabled ? rank(config, settings) : [];
    const candidates = ranked.filter((row) => row.rank !== null).map((row) => row.model);
    const unknown = candidates.filter((name) => !hasSize(name));
    if (unknown.length === 0 || candidates.length < 2) return [];
    const names = unknown.map((name) => `models.${name}`).join(", ");
    const message = `has candidates without context_tokens (${names}): a prompt that is too long for another one goes to them last`;
    return [{ path: ["aliases", alias], message }];
  });
}

/** Accounts of the configuration for which nobody can make a request. */
function keylessAccounts({ accounts, keys }: Config, stored: StoredKeys, now: number): Warning[] {
  const served = new Set(keys.map(({ account }) => account));
  for (const { account, revoked, expires } of stored.byDigest.values())
    if (revoked === null && (expires === null || Date.parse(expires) > now)) served.add(account);
  return [...accounts.keys()]
    .filter((account) => !served.has(account))
    .map((account) => ({ path: ["accounts", account], message: "has no key that is valid" }));
}

type Deadline =
  | "connect_ms"
  | "first_token_ms"
  | "idle_ms"
  | "closing_ms"
  | "leave_ms"
  | "total_ms";
/** Each shorter deadline, and the longer one that ends the request before it could pass, if they are in the wrong order. */
const ORDER: readonly (readonly [shorter: Deadline, longer: Deadline])[] = [
  ["connect_ms", "first_token_ms"],
  ["first_token_ms", "total_ms"],
  ["idle_ms", "total_ms"],
  ["closing_ms", "total_ms"],
  ["leave_ms", "total_ms"],
];

function deadlineWarnings({ timeouts, providers }: Config): Warning[] {
  const own = [...providers].flatMap(([name, { timeouts: given }]) =>
    given ? misordered(["providers", name, "timeouts"], { ...timeouts, ...definedIn(given) }) : [],
  );
  return [...misordered(["timeouts"], timeouts), ...own];
}

const misordered = (
  path: ValidationIssue["path"],
  timeouts: Readonly<Record<Deadline, number>>,
): Warning[] =>
  ORDER.filter(([shorter, longer]) => timeouts[shorter] > timeouts[longer]).map(
    ([shorter, longer]) => ({
      path: [...path, shorter],
      message: `is ${timeouts[shorter]}, longer than ${longer}, which is ${timeouts[longer]}`,
    }),
  );

const definedIn = (given: Partial<Readonly<Record<Deadline, number | undefined>>>) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
