// What is odd in a valid configuration: a gateway starts with it, but hardly as it is meant.
import type { Formats } from "../../../config/formats.ts";
import { lacksKey, usesVendorsAddress } from "../config-checks/index.ts";
import type { Config } from "../../../core/config.ts";
import type { Warning } from "../../../config/extension.ts";
import { vendorPreset } from "../../../config/vendors.ts";
import { blendedPrice, scoreOf, type WrittenAlias } from "../../../config/policy.ts";
import type { ValidationIssue } from "../../../core/schema/checker.ts";

/** `formats`: the vendors that the configuration can name. */
export const warningsOf = (config: Config, formats: Formats): Warning[] => [
  ...keylessProviders(config, formats),
  ...hopelessAliases(config),
  ...candidatesOfUnknownSize(config),
  ...incomparableCandidates(config),
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
    .filter(([, alias]) => alias.enabled && alias.ranking.every((each) => each.rank === null))
    .map(([name]) => ({
      path: ["aliases", name],
      message: "has no candidate: every request for it would get 503",
    }));
}

/**
 * Enabled aliases with several candidates, some of which have no `context_tokens`: whether a long
 * prompt has room there is unknown before it is sent, so after it was too long for one model these
 * are asked last.
 */
function candidatesOfUnknownSize(config: Config): Warning[] {
  const hasSize = (name: string) => config.models.get(name)?.context_tokens !== undefined;
  return [...config.aliases].flatMap(([alias, settings]) => {
    const ranked = settings.enabled ? settings.ranking : [];
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

/**
 * Enabled aliases whose last candidate is far from the first: a request that falls back may cost
 * ten times as much, or get a much weaker answer, and no bound says that it may.
 */
function incomparableCandidates(config: Config): Warning[] {
  return [...config.aliases].flatMap(([name, alias]) => {
    const ranked = alias.ranking.filter((row) => row.rank !== null);
    const first = ranked[0]?.model;
    const last = ranked.at(-1)?.model;
    if (!alias.enabled || !alias.policy || first === last) return [];
    const [best, worst] = [first!, last!].map((model) => config.models.get(model)!);
    const prices = [best!, worst!].map(({ price }) => blendedPrice(price)) as [number, number];
    const scores = [best!, worst!].map((model) => scoreOf(config, alias, model).score);
    const { max_price, min_score }: WrittenAlias = alias;
    const isDear = max_price === undefined && prices[1] > 10 * prices[0];
    const isWeak = min_score === undefined && scores[1]! < scores[0]! / 2;
    if (!isDear && !isWeak) return [];
    const message = `falls back as far as ${last}, which ${difference(isDear, isWeak)} ${first}`;
    return [{ path: ["aliases", name], message: `${message}: max_price and min_score bound that` }];
  });
}

const difference = (isDear: boolean, isWeak: boolean): string =>
  [isDear && "costs more than ten times as much as", isWeak && "scores less than half of"]
    .filter(Boolean)
    .join(" and ");

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
  const ofProviders = [...providers].flatMap(([name, { timeouts: stated }]) =>
    stated
      ? misordered(["providers", name, "timeouts"], { ...timeouts, ...definedIn(stated) })
      : [],
  );
  return [...misordered(["timeouts"], timeouts), ...ofProviders];
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

const definedIn = (stated: Partial<Readonly<Record<Deadline, number | undefined>>>) =>
  Object.fromEntries(Object.entries(stated).filter(([, value]) => value !== undefined));
