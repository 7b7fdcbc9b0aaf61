// Checks the references between the parts of a configuration: unknown names, duplicate names, and
// settings that a dialect cannot express. Reads the raw JSON, so that an issue of shape elsewhere
// hides none.
import {
  modelDialect,
  URL_VARS,
  vendorPreset,
  type Formats,
  type VendorPreset,
} from "./vendors.ts";
import type { ValidationIssue } from "../core/schema/checker.ts";
import { asArray, asObject } from "../core/schema/untrusted-json.ts";

type Path = ValidationIssue["path"];

export const invalid = (path: Path, message: string): ValidationIssue => ({
  path,
  code: "invalid_value",
  message,
});

/** The indexes at which a list repeats an earlier value. Undefined values do not count. */
export function repeatedIn(list: readonly unknown[]): number[] {
  const seen = new Set<unknown>();
  return list.flatMap((value, index) => {
    if (seen.has(value)) return [index];
    if (value !== undefined) seen.add(value);
    return [];
  });
}

export function referenceIssues(json: unknown, formats: Formats): ValidationIssue[] {
  const root = asObject(json);
  const providers = asObject(root["providers"]);
  const models = asObject(root["models"]);
  const aliases = asObject(root["aliases"]);
  return [
    ...Object.entries(providers).flatMap(([name, provider]) =>
      providerIssues(["providers", name], asObject(provider), formats),
    ),
    ...Object.entries(models).flatMap(([name, model]) =>
      modelIssues(["models", name], asObject(model), providers, formats),
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

/** One issue if none of the tables has the name. The schema reports a name of a wrong type. */
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

/** The preset of a provider's vendor. Undefined: the schema reports the vendor or its dialect. */
function knownPreset(
  provider: Record<string, unknown>,
  { dialectNames }: Formats,
): VendorPreset | undefined {
  const preset = vendorPreset(provider);
  return preset && dialectNames.includes(preset.dialect) ? preset : undefined;
}

function providerIssues(
  path: Path,
  provider: Record<string, unknown>,
  formats: Formats,
): ValidationIssue[] {
  const { dialect, base_url } = provider;
  const preset = knownPreset(provider, formats);
  const issues = vendorIssues(path, provider, formats);
  if (preset && (dialect ?? preset.dialect) !== preset.dialect)
    issues.push(invalid([...path, "dialect"], `this vendor uses "${preset.dialect}"`));
  const isByModel = preset?.by_model !== undefined;
  if (isByModel && dialect != null)
    issues.push(
      invalid([...path, "dialect"], "each model of this vendor has its own: set it there"),
    );
  else if (preset && (base_url ?? preset.base_url) === undefined)
    issues.push(invalid([...path, "base_url"], "is required"));
  if (preset) issues.push(...urlVarIssues(path, provider, preset));
  issues.push(...unfilledUrlVars(path, provider, provider));
  if (provider["auth"] === "none" && ["api_key", "api_keys"].some((name) => provider[name]))
    issues.push(invalid([...path, "auth"], "no request would carry the key"));
  if (isByModel) return issues;
  return [...issues, ...unsupportedTraits(path, provider, formats, preset?.dialect)];
}

/** Reports a provider without vendor and dialect, or with a dialect that needs a vendor. */
function vendorIssues(
  path: Path,
  provider: Record<string, unknown>,
  { dialectNames }: Formats,
): ValidationIssue[] {
  const { vendor, dialect } = provider;
  if (vendor != null) return [];
  if (dialect == null)
    return [invalid([...path, "dialect"], "is required where no vendor is named")];
  if (vendorPreset(provider) || !dialectNames.includes(String(dialect))) return [];
  return [invalid([...path, "vendor"], `is required for the dialect ${JSON.stringify(dialect)}`)];
}

/** Reports placeholders in the paths of a provider or a model that no setting fills. */
const unfilledUrlVars = (
  path: Path,
  row: Record<string, unknown>,
  provider: Record<string, unknown>,
): ValidationIssue[] =>
  ["path", "stream_path"].flatMap((field) =>
    URL_VARS.filter(
      (name) => provider[name] == null && String(row[field]).includes(`{${name}}`),
    ).map((name) => invalid([...path, field], `{${name}} needs the ${name} of the provider`)),
  );

/** Reports settings that the vendor's addresses need, and settings that they do not use. */
function urlVarIssues(
  path: Path,
  provider: Record<string, unknown>,
  preset: VendorPreset,
): ValidationIssue[] {
  const presets = [preset, ...preset.variants.values()];
  const addresses = presets.map(({ base_url }) => base_url);
  const paths = presets.map(({ traits: { path, stream_path } }) => [path, stream_path]);
  const others = [preset.versioned, provider["path"], provider["stream_path"]];
  return URL_VARS.flatMap((name) => {
    const isIn = (texts: unknown): boolean => JSON.stringify(texts).includes(`{${name}}`);
    const isStated = provider[name] != null;
    const isNeeded = isIn(paths) || (isIn(addresses) && provider["base_url"] == null);
    if (isNeeded && !isStated) return [invalid([...path, name], "is required by this vendor")];
    const isKnown = isNeeded || isIn(addresses) || isIn(others);
    if (isStated && !isKnown)
      return [invalid([...path, name], "this vendor's addresses do not use it")];
    return [];
  });
}

function modelIssues(
  path: Path,
  model: Record<string, unknown>,
  providers: Record<string, unknown>,
  formats: Formats,
): ValidationIssue[] {
  const name = String(model["provider"]);
  const provider = Object.hasOwn(providers, name) ? asObject(providers[name]) : {};
  const preset = knownPreset(provider, formats);
  const upstreamModel = String(model["upstream_model"] ?? path[1]);
  const dialect = modelDialect(provider, { ...model, upstreamModel }) ?? preset?.dialect;
  const isOffered = !preset || preset.dialect === dialect || preset.variants.has(String(dialect));
  return [
    ...unknownName([...path, "provider"], model["provider"], "provider", [providers]),
    ...(isOffered
      ? []
      : [
          invalid(
            [...path, "dialect"],
            `its provider's vendor has no API of the format ${dialect}`,
          ),
        ]),
    ...unfilledUrlVars(path, model, provider),
    ...unsupportedTraits(path, model, formats, dialect),
    // If each model has its own dialect, the traits of the provider must fit the model's dialect.
    ...((model["thinking"] ?? null) === null && preset?.by_model
      ? unsupportedTraits(["providers", name], provider, formats, dialect)
      : []),
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
    ...repeatedIn(list).map((at) => invalid([...path, "models", at], "is in the list twice")),
  ];
}

/**
 * Reports settings that the dialect of a provider or a model cannot express. The schema reports
 * values that no dialect knows.
 */
function unsupportedTraits(
  path: Path,
  { thinking, supports }: Record<string, unknown>,
  formats: Formats,
  dialect = "openai",
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  const own = formats.dialects.get(dialect);
  const known: readonly unknown[] = own?.thinkingSwitches ?? [];
  const unsupported: readonly unknown[] = own?.unsupported ?? [];
  const all: readonly unknown[] = [...formats.dialects.values()].flatMap(
    (definition) => definition.thinkingSwitches,
  );
  if (all.includes(thinking) && !known.includes(thinking))
    issues.push(invalid([...path, "thinking"], `the ${dialect} dialect knows ${known.join(", ")}`));
  for (const [at, name] of asArray(supports).entries())
    if (unsupported.includes(name))
      issues.push(invalid([...path, "supports", at], `the ${dialect} dialect does not know it`));
  return issues;
}
