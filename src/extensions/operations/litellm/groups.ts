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
  /** `router_settings`. */
  readonly router: Fields;
  /** `litellm_settings`. */
  readonly library: Fields;
  readonly leftOut: LeftOutList;
}

/** Whether deployments have this name. If not, `path` is left out. */
type IsGroup = (name: unknown, path: string) => name is string;

/** The fields of both sections that this file or convert.ts carries over. */
const ROUTER_FIELDS = [
  ...["fallbacks", "model_group_alias", "num_retries", "allowed_fails", "cooldown_time"],
];
const LIBRARY_FIELDS = ["fallbacks", "num_retries", "allowed_fails", "cooldown_time"];

/** `providerOf` returns the name of a deployment's provider. */
export function convertGroups(
  deployments: readonly Deployment[],
  providerOf: (deployment: Deployment) => string,
  { router, library, leftOut }: GroupSettings,
): Groups {
  const groups = new Set(deployments.map(({ group }) => group));
  const isGroup: IsGroup = (name, path): name is string => {
    const isKnown = typeof name === "string" && groups.has(name);
    if (!isKnown) leftOut.add(path, "no model of this name was carried over");
    return isKnown;
  };
  const fallbacks = new Map<string, readonly string[]>();
  const lists = [
    ...fallbacksIn(router["fallbacks"], "router_settings.fallbacks", isGroup, leftOut),
    ...fallbacksIn(library["fallbacks"], "litellm_settings.fallbacks", isGroup, leftOut),
  ];
  // As in LiteLLM, the first list counts.
  for (const { name, targets, path } of lists)
    if (fallbacks.has(name)) leftOut.add(path, "another list of fallbacks of this name counts");
    else fallbacks.set(name, targets);
  const { models, namesByGroup } = modelsOf(deployments, providerOf, fallbacks);
  const candidates = (group: string): string[] => [
    ...new Set(reachable(group, fallbacks).flatMap((name) => namesByGroup.get(name)!)),
  ];
  const aliases: Record<string, unknown> = Object.create(null);
  for (const group of groups)
    if (!Object.hasOwn(models, group)) aliases[group] = { models: candidates(group) };
  const taken = [...groups, ...Object.keys(models)];
  for (const [name, group] of furtherNames(router["model_group_alias"], taken, isGroup, leftOut))
    aliases[name] = { models: candidates(group) };
  leftOut.addRest("router_settings", router, ROUTER_FIELDS);
  leftOut.addRest("litellm_settings", library, LIBRARY_FIELDS);
  return { models, aliases };
}

/** The models, and the names of each group's models. */
function modelsOf(
  deployments: readonly Deployment[],
  providerOf: (deployment: Deployment) => string,
  fallbacks: ReadonlyMap<string, readonly string[]>,
) {
  // Without a prototype, as a name may be __proto__.
  const models: Record<string, unknown> = Object.create(null);
  const namesByGroup = new Map<string, string[]>(deployments.map(({ group }) => [group, []]));
  const isTaken = (name: string): boolean => Object.hasOwn(models, name) || namesByGroup.has(name);
  for (const deployment of deployments) {
    const { group, upstream, settings } = deployment;
    const provider = providerOf(deployment);
    const isOnly = deployments.filter((other) => other.group === group).length === 1;
    const hasOwnName = isOnly && !fallbacks.has(group);
    const name = hasOwnName ? group : freeName(`${group}/${provider}`, isTaken);
    models[name] = {
      provider,
      ...(upstream !== name && { upstream_model: upstream }),
      ...settings,
    };
    namesByGroup.get(group)!.push(name);
  }
  return { models, namesByGroup };
}

/** The name itself, or with a number if it is taken. */
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

/** The list of a name's fallbacks, and its path in the file. */
interface Fallbacks {
  readonly name: string;
  readonly targets: readonly string[];
  readonly path: string;
}

/** The lists in `value`, which looks like `[{"a": ["b", "c"]}]`. */
function fallbacksIn(
  value: unknown,
  path: string,
  isGroup: IsGroup,
  leftOut: LeftOutList,
): Fallbacks[] {
  if (!Array.isArray(value ?? [])) leftOut.add(path, "expected a list");
  return asArray(value).flatMap((row, at) => {
    const rowPath = `${path}[${at}]`;
    const lists = Object.entries(leftOut.objectAt(rowPath, row));
    return lists.flatMap(([name, listed]): Fallbacks[] => {
      const listPath = `${rowPath}.${name}`;
      if (!isGroup(name, listPath)) return [];
      if (!Array.isArray(listed)) leftOut.add(listPath, "expected a list of model names");
      const isTarget = (target: unknown, index: number): target is string =>
        isGroup(target, `${listPath}[${index}]`);
      const targets = asArray(listed).filter(isTarget);
      return targets.length === 0 ? [] : [{ name, targets, path: listPath }];
    });
  });
}

/**
 * Pairs of a further name and its group. `value` has the form `{"name": "group"}` or
 * `{"name": {"model": "group", "hidden": true}}`.
 */
function furtherNames(
  value: unknown,
  taken: readonly string[],
  isGroup: IsGroup,
  leftOut: LeftOutList,
): [string, string][] {
  const listPath = "router_settings.model_group_alias";
  const names = Object.entries(leftOut.objectAt(listPath, value));
  return names.flatMap(([name, target]): [string, string][] => {
    const path = `${listPath}.${name}`;
    const group = typeof target === "string" ? target : asObject(target)["model"];
    if (!isGroup(group, path)) return [];
    if (name === "" || taken.includes(name)) {
      leftOut.add(path, name === "" ? "expected a name" : "there is a model of this name already");
      return [];
    }
    leftOut.addRest(path, asObject(target), ["model"]);
    return [[name, group]];
  });
}
