// The models and aliases of gateway.json. LiteLLM lets several deployments have one name, and sends
// a request to the fallbacks of that name when all of them fail. Here a model's name never falls
// back; an alias does. So a name with one deployment and no fallbacks is a model, and any other is
// an alias, whose models are named after it and their provider.
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";
import type { Deployment } from "./deployment.ts";
import type { Fields, LeftOutList } from "./left-out.ts";

export interface Groups {
  readonly models: Fields;
  readonly aliases: Fields;
}

/** The sections that have fallbacks and further names, and where to list what is left out. */
export interface GroupSettings {
  readonly router: Fields;
  readonly library: Fields;
  readonly leftOut: LeftOutList;
}

/** Whether deployments have this name. If not, `path` is left out. */
type IsKnown = (name: unknown, path: string) => name is string;

/** What is read here and in convert.ts. */
const ROUTER_FIELDS = [
  ...["fallbacks", "model_group_alias", "num_retries", "allowed_fails", "cooldown_time"],
];
const LIBRARY_FIELDS = ["fallbacks", "num_retries"];

/** `providerOf` names the provider of a deployment. */
export function groupsOf(
  deployments: readonly Deployment[],
  providerOf: (deployment: Deployment) => string,
  { router, library, leftOut }: GroupSettings,
): Groups {
  const names = new Set(deployments.map(({ group }) => group));
  const isKnown: IsKnown = (name, path): name is string => {
    const isGroup = typeof name === "string" && names.has(name);
    if (!isGroup) leftOut.add(path, "no model of this name was carried over");
    return isGroup;
  };
  const fallbacks = new Map<string, readonly string[]>();
  const rows = [
    ...fallbacksIn(router["fallbacks"], "router_settings.fallbacks", isKnown, leftOut),
    ...fallbacksIn(library["fallbacks"], "litellm_settings.fallbacks", isKnown, leftOut),
  ];
  // As in LiteLLM, the first list counts.
  for (const { name, targets, place } of rows)
    if (fallbacks.has(name)) leftOut.add(place, "another list of fallbacks of this name counts");
    else fallbacks.set(name, targets);
  const members = new Map<string, string[]>([...names].map((name) => [name, []]));
  // Without a prototype, as a name may be __proto__.
  const models: Record<string, unknown> = Object.create(null);
  for (const deployment of deployments) {
    const { group, upstream, settings } = deployment;
    const provider = providerOf(deployment);
    const isAlone = deployments.filter((other) => other.group === group).length === 1;
    const wanted = isAlone && !fallbacks.has(group) ? group : `${group}/${provider}`;
    const isTaken = (name: string): boolean => Object.hasOwn(models, name) || names.has(name);
    const name = wanted === group ? group : freeName(wanted, isTaken);
    models[name] = {
      provider,
      ...(upstream !== name && { upstream_model: upstream }),
      ...settings,
    };
    members.get(group)!.push(name);
  }
  const candidates = (group: string): string[] => [
    ...new Set(reachable(group, fallbacks).flatMap((name) => members.get(name)!)),
  ];
  const aliases: Record<string, unknown> = Object.create(null);
  for (const name of names)
    if (!Object.hasOwn(models, name)) aliases[name] = { models: candidates(name) };
  for (const [name, group] of furtherNames(
    router["model_group_alias"],
    [...names, ...Object.keys(models)],
    isKnown,
    leftOut,
  ))
    aliases[name] = { models: candidates(group) };
  leftOut.addRest("router_settings", router, ROUTER_FIELDS);
  leftOut.addRest("litellm_settings", library, LIBRARY_FIELDS);
  return { models, aliases };
}

/** The name itself, or with a number, if a model or a group has it already. */
export function freeName(name: string, isTaken: (name: string) => boolean, joint = "-"): string {
  for (let count = 1; ; count += 1) {
    const free = count === 1 ? name : `${name}${joint}${count}`;
    if (!isTaken(free)) return free;
  }
}

/** The group and its fallbacks, and the fallbacks of these, each once. */
function reachable(group: string, fallbacks: ReadonlyMap<string, readonly string[]>): string[] {
  const found = [group];
  const visit = (name: string): void => {
    for (const next of fallbacks.get(name) ?? []) {
      if (found.includes(next)) continue;
      found.push(next);
      visit(next);
    }
  };
  visit(group);
  return found;
}

/** The fallbacks of a name, and where they stand. */
interface Fallbacks {
  readonly name: string;
  readonly targets: readonly string[];
  readonly place: string;
}

/** `[{"a": ["b", "c"]}]`. */
function fallbacksIn(
  value: unknown,
  path: string,
  isKnown: IsKnown,
  leftOut: LeftOutList,
): Fallbacks[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    leftOut.add(path, "expected a list");
    return [];
  }
  return value.flatMap((row, at) =>
    Object.entries(asObject(row)).flatMap(([name, listed]): Fallbacks[] => {
      const place = `${path}[${at}].${name}`;
      if (!isKnown(name, place)) return [];
      if (!Array.isArray(listed)) leftOut.add(place, "expected a list of model names");
      const isTarget = (target: unknown, index: number): target is string =>
        isKnown(target, `${place}[${index}]`);
      const targets = asArray(listed).filter(isTarget);
      return targets.length === 0 ? [] : [{ name, targets, place }];
    }),
  );
}

/** `{"name": "group"}` or `{"name": {"model": "group", "hidden": true}}`. */
function furtherNames(
  value: unknown,
  taken: readonly string[],
  isKnown: IsKnown,
  leftOut: LeftOutList,
): [string, string][] {
  return Object.entries(asObject(value)).flatMap(([name, target]): [string, string][] => {
    const path = `router_settings.model_group_alias.${name}`;
    const group = typeof target === "string" ? target : asObject(target)["model"];
    if (!isKnown(group, path)) return [];
    if (name === "" || taken.includes(name)) {
      leftOut.add(path, name === "" ? "expected a name" : "there is a model of this name already");
      return [];
    }
    leftOut.addRest(path, asObject(target), ["model"]);
    return [[name, group]];
  });
}
