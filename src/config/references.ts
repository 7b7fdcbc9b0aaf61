// References between the parts of a configuration: names that nothing has, names that two things
// have, and settings that a dialect cannot express. It looks at the raw JSON, so that an issue of
// shape elsewhere hides none.
import { modelDialect, PLACES, vendorPreset, type Formats, type VendorPreset } from "./vendors.ts";
import type { ValidationIssue } from "../core/schema/checker.ts";
import { asArray, asObject } from "../core/schema/untrusted-json.ts";

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

/** The preset of a provider's vendor, unless the vendor or its format is an issue of shape. */
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
    issues.push(invalid([...path, "dialect"], `this vendor's is "${preset.dialect}"`));
  const isByModel = preset?.by_model !== undefined;
  if (isByModel && dialect != null)
    issues.push(
      invalid([...path, "dialect"], "each model of this vendor has its own: state it there"),
    );
  else if (preset && (base_url ?? preset.base_url) === undefined)
    issues.push(invalid([...path, "base_url"], "is required"));
  if (preset) issues.push(...placeIssues(path, provider, preset));
  issues.push(...unfilledPlaces(path, provider, provider));
  if (provider["auth"] === "none" && ["api_key", "api_keys"].some((name) => provider[name]))
    issues.push(invalid([...path, "auth"], "no request would carry the key"));
  if (isByModel) return issues;
  return [...issues, ...unsupportedTraits(path, provider, formats, preset?.dialect)];
}

/** Neither a vendor nor a format, or a format that is only one of a vendor's. */
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

/** Placeholders in the paths that a provider or a model states, without a setting to fill them. */
const unfilledPlaces = (
  path: Path,
  row: Record<string, unknown>,
  provider: Record<string, unknown>,
): ValidationIssue[] =>
  ["path", "stream_path"].flatMap((field) =>
    PLACES.filter((name) => provider[name] == null && String(row[field]).includes(`{${name}}`)).map(
      (name) => invalid([...path, field], `{${name}} needs the ${name} of the provider`),
    ),
  );

/** Parts of the vendor's addresses that are missing, or that they do not have. */
function placeIssues(
  path: Path,
  provider: Record<string, unknown>,
  preset: VendorPreset,
): ValidationIssue[] {
  const presets = [preset, ...preset.variants.values()];
  const addresses = presets.map(({ base_url }) => base_url);
  const paths = presets.map(({ traits: { path, stream_path } }) => [path, stream_path]);
  const others = [preset.versioned, provider["path"], provider["stream_path"]];
  return PLACES.flatMap((name) => {
    const isIn = (texts: unknown): boolean => JSON.stringify(texts).includes(`{${name}}`);
    const isStated = provider[name] != null;
    const isNeeded = isIn(paths) || (isIn(addresses) && provider["base_url"] == null);
    if (isNeeded && !isStated) return [invalid([...path, name], "is required by this vendor")];
    const isKnown = isNeeded || isIn(addresses) || isIn(others);
    if (isStated && !isKnown)
      return [invalid([...path, name], "this vendor's addresses have none")];
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
  const isSpoken = !preset || preset.dialect === dialect || preset.variants.has(String(dialect));
  return [
    ...unknownName([...path, "provider"], model["provider"], "provider", [providers]),
    ...(isSpoken
      ? []
      : [
          invalid(
            [...path, "dialect"],
            `its provider's vendor has no API of the format ${dialect}`,
          ),
        ]),
    ...unfilledPlaces(path, model, provider),
    ...unsupportedTraits(path, model, formats, dialect),
    // Where each model has its own format, what the provider states must fit all of them.
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
 * Settings that a provider's or a model's dialect cannot express. A value that no dialect knows is
 * an issue of the field itself.
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
