// What the parts of a configuration say of each other: names that nothing has, names that two things have, and what a dialect has no
// words for. It looks at the raw JSON, so that an issue of shape elsewhere hides none.
import {
  DIALECTS,
  THINKING_SWITCHES,
  vendorPreset,
  type DialectName,
} from "../providers/traits.ts";
import type { ValidationIssue } from "../schema/checker.ts";
import { asArray, asObject } from "../schema/untrusted-json.ts";

type Path = ValidationIssue["path"];

export const invalid = (path: Path, message: string): ValidationIssue => ({
  path,
  code: "invalid_value",
  message,
});

/** The indexes at which a list has a value for the second time. */
export function repeatedIn(list: readonly unknown[]): number[] {
  const seen = new Set<unknown>();
  return list.flatMap((value, index) => {
    if (seen.has(value)) return [index];
    seen.add(value);
    return [];
  });
}

export function referenceIssues(json: unknown): ValidationIssue[] {
  const root = asObject(json);
  const providers = asObject(root["providers"]);
  const models = asObject(root["models"]);
  const aliases = asObject(root["aliases"]);
  return [
    ...Object.entries(providers).flatMap(([name, provider]) =>
      providerIssues(["providers", name], asObject(provider)),
    ),
    ...Object.entries(models).flatMap(([name, model]) =>
      modelIssues(["models", name], asObject(model), providers),
    ),
    ...Object.entries(aliases).flatMap(([name, alias]) =>
      aliasIssues(name, asObject(alias), models),
    ),
    ...asArray(root["keys"]).flatMap((key, index) =>
      asArray(asObject(key)["models"]).flatMap((name, at) =>
        unknownName(["keys", index, "models", at], name, "model or alias", [models, aliases]),
      ),
    ),
  ];
}

/** One issue if none of the tables has the name. A name of a wrong type is an issue already. */
function unknownName(
  path: Path,
  name: unknown,
  noun: string,
  tables: readonly object[],
): ValidationIssue[] {
  if (typeof name !== "string" || name === "") return [];
  if (tables.some((table) => Object.hasOwn(table, name))) return [];
  return [invalid(path, `there is no ${noun} named ${JSON.stringify(name)}`)];
}

function providerIssues(path: Path, provider: Record<string, unknown>): ValidationIssue[] {
  const { vendor, dialect, base_url } = provider;
  const preset = vendorPreset({ vendor, dialect });
  const issues: ValidationIssue[] = [];
  if ((dialect ?? vendor ?? undefined) === undefined)
    issues.push(invalid([...path, "dialect"], "is required where no vendor is named"));
  if (preset && (dialect ?? preset.dialect) !== preset.dialect)
    issues.push(invalid([...path, "dialect"], `this vendor's is "${preset.dialect}"`));
  if (preset && (base_url ?? preset.base_url) === undefined)
    issues.push(invalid([...path, "base_url"], "is required"));
  return [...issues, ...unsupportedTraits(path, provider, preset?.dialect)];
}

function modelIssues(
  path: Path,
  model: Record<string, unknown>,
  providers: Record<string, unknown>,
): ValidationIssue[] {
  const name = String(model["provider"]);
  const provider = Object.hasOwn(providers, name) ? asObject(providers[name]) : {};
  return [
    ...unknownName([...path, "provider"], model["provider"], "provider", [providers]),
    ...unsupportedTraits(path, model, vendorPreset(provider)?.dialect),
  ];
}

function aliasIssues(
  name: string,
  alias: Record<string, unknown>,
  models: Record<string, unknown>,
): ValidationIssue[] {
  const list = asArray(alias["models"]);
  const path = ["aliases", name];
  return [
    ...(Object.hasOwn(models, name) ? [invalid(path, "a model has the same name")] : []),
    ...list.flatMap((model, at) => unknownName([...path, "models", at], model, "model", [models])),
    ...repeatedIn(list).map((at) => invalid([...path, "models", at], "stands in the list twice")),
  ];
}

/** What a provider's or a model's dialect has no words for. A value that no dialect knows is an issue already. */
function unsupportedTraits(
  path: Path,
  { thinking, supports }: Record<string, unknown>,
  dialect: DialectName = "openai",
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  const knows = (name: DialectName): boolean =>
    THINKING_SWITCHES[name].some((known) => known === thinking);
  if (DIALECTS.some(knows) && !knows(dialect)) {
    const known = THINKING_SWITCHES[dialect].join(", ");
    issues.push(invalid([...path, "thinking"], `the ${dialect} dialect knows ${known}`));
  }
  const unsupported =
    dialect === "anthropic"
      ? asArray(supports).findIndex((name) => name === "logprobs" || name === "audio")
      : -1;
  if (unsupported !== -1) {
    const at = [...path, "supports", unsupported];
    issues.push(invalid(at, `the ${dialect} dialect does not know it`));
  }
  return issues;
}
