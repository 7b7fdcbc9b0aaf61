// What is odd in a valid configuration: a gateway starts with it, but hardly as it is meant.
import type { Formats } from "../../config/formats.ts";
import { lacksKey, usesVendorsAddress } from "../config-checks/index.ts";
import type { Config } from "../../core/config.ts";
import type { Warning } from "../../config/extension.ts";
import { vendorPreset } from "../../config/vendors.ts";
import { rank } from "../../core/routing/policy.ts";
import type { ValidationIssue } from "../../core/schema/checker.ts";

/** `formats`: the vendors that the configuration can name. */
export const warningsOf = (config: Config, formats: Formats): Warning[] => [
  ...keylessProviders(config, formats),
  ...hopelessAliases(config),
  ...candidatesOfUnknownSize(config),
  ...deadlineWarnings(config),
];

function keylessProviders({ providers }: Config, { presets }: Formats): Warning[] {
  return [...providers].flatMap(([name, provider]) => {
    const preset = vendorPreset(presets, provider);
    if (!preset || !lacksKey(provider, preset) || usesVendorsAddress(provider, preset)) return [];
    const rule = `${preset.title} answers nobody without one, unless base_url adds it`;
    return [{ path: ["providers", name], message: `has no api_key: ${rule}` }];
  });
}

function hopelessAliases(config: Config): Warning[] {
  return [...config.aliases]
    .filter(([, alias]) => alias.enabled && rank(config, alias).every((each) => each.rank === null))
    .map(([name]) => ({
      path: ["aliases", name],
      message: "has no candidate: every request for it would get 503",
    }));
}

/**
 * Enabled aliases with several candidates, some of which do not say how long a prompt may be:
 * nobody can tell before it is sent whether a long one has room there, so after it was too long for
 * one model these are asked last.
 */
function candidatesOfUnknownSize(config: Config): Warning[] {
  const hasSize = (name: string) => config.models.get(name)?.context_tokens !== undefined;
  return [...config.aliases].flatMap(([alias, settings]) => {
    const ranked = settings.enabled ? rank(config, settings) : [];
    const candidates = ranked.filter((row) => row.rank !== null).map((row) => row.model);
    const unknown = candidates.filter((name) => !hasSize(name));
    if (unknown.length === 0 || candidates.length < 2) return [];
    const names = unknown.map((name) => `models.${name}`).join(", ");
    const message =
      `has candidates without context_tokens (${names}): ` +
      "a prompt that is too long for another one goes to them last";
    return [{ path: ["aliases", alias], message }];
  });
}

type Deadline =
  | "connect_ms"
  | "first_token_ms"
  | "idle_ms"
  | "closing_ms"
  | "leave_ms"
  | "total_ms";
/**
 * Each shorter deadline, and the longer one that ends the request before it could pass, if they are
 * in the wrong order.
 */
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
