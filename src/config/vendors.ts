// The vendors, whose rows in vendors.json preset the address and traits of a provider. Also lists
// the vendors and wire formats that a configuration can name.
import { dialectsIn } from "../core/extension/places.ts";
import type { Installed } from "../core/extension/installer.ts";
import type { DialectDefinition } from "../core/providers/dialect.ts";
import { withOverrides } from "../core/routing/model.ts";
import type { TraitOverrides, Traits } from "../core/providers/traits.ts";
import vendorsJson from "./vendors.json" with { type: "json" };

export interface VendorPreset {
  /** The vendor's name, for people. */
  readonly title: string;
  /** The name of the wire format. */
  readonly dialect: string;
  /**
   * The address. `{region}` and the like stand for the provider's settings of these names.
   * Undefined: a provider of this vendor must state its address.
   */
  readonly base_url?: string | undefined;
  /** The addresses that replace base_url for certain values of the provider's `location`. */
  readonly hosts?: Readonly<Record<string, string>> | undefined;
  /** True for a hosted service that refuses requests without a key or credentials. */
  readonly needs_key?: boolean | undefined;
  /** The traits of models that do not think. */
  readonly traits: Traits;
  /** The traits of models that think. */
  readonly reasoningTraits: Traits;
  /** The traits that differ if the provider states api_version. Undefined: there is no version. */
  readonly versioned?: TraitOverrides | undefined;
  /** The presets for the vendor's other formats, by their names. */
  readonly variants: ReadonlyMap<string, VendorPreset>;
  /**
   * The formats of models that state none: the first pattern that matches the provider's name of
   * the model decides, and may have traits for it. Undefined: they have the provider's format.
   */
  readonly by_model?: readonly ModelRule[] | undefined;
}

type ModelRule = readonly [pattern: string, dialect: string, traits?: TraitOverrides];

/** How a provider names its vendor. A native format has one vendor, which need not be named. */
interface VendorReference {
  readonly vendor?: unknown;
  readonly dialect?: unknown;
}

/** The settings of a provider that templates of addresses and paths may name. */
export const URL_VARS = ["region", "project", "location", "api_version"] as const;

/** The values of URL_VARS in a provider. Absent: the provider does not state it. */
export type UrlVars = { readonly [K in (typeof URL_VARS)[number]]?: string | undefined };

/** A row of vendors.json, or a variant in one. Tests check all of them. */
interface VendorRow
  extends Omit<VendorPreset, "traits" | "reasoningTraits" | "variants" | "title"> {
  /** Absent in a variant, which has its vendor's title. */
  readonly title?: string;
  /** The vendor on whose traits this row is based. Absent: generic. */
  readonly like?: string;
  /** The traits that differ from those of `like`. Absent: none. */
  readonly traits?: TraitOverrides;
  /** The traits that differ for models that think. Absent: none. */
  readonly reasoning?: TraitOverrides;
  /** The vendor's other formats, by dialect. Absent: there are none. */
  readonly variants?: Readonly<Record<string, VendorRow>>;
}

const ROWS: ReadonlyMap<string, VendorRow> = new Map(
  Object.entries(vendorsJson as unknown as Readonly<Record<string, VendorRow>>),
);

/** The traits of a vendor whose row states none. The generic row has all but the undefined ones. */
const generic = {
  echo: undefined,
  done_without_finish: undefined,
  max_call_id: undefined,
  max_output_tokens: undefined,
  default_output_tokens: undefined,
  path: undefined,
  stream_path: undefined,
  cache_header: undefined,
  ...ROWS.get("generic")!.traits,
} as Traits;

function presetOf(row: VendorRow): VendorPreset {
  const { like, reasoning = {}, variants = {}, title = "", ...others } = row;
  const base: VendorRow | undefined = like === undefined ? undefined : ROWS.get(like);
  const { by_model } = row;
  const variant = (own: VendorRow): VendorPreset => presetOf({ ...own, title, by_model });
  return {
    ...others,
    title,
    // Computed on demand, because a configuration uses few of the vendors.
    get traits() {
      return withOverrides(withOverrides(generic, base?.traits), row.traits);
    },
    get reasoningTraits() {
      return withOverrides(withOverrides(this.traits, base?.reasoning), reasoning);
    },
    variants: new Map(Object.entries(variants).map(([name, own]) => [name, variant(own)])),
  };
}

/**
 * The presets of all vendors by their names, whether their formats are loaded or not: if a provider
 * names a format other than its vendor's main one, only that format is loaded.
 */
export const VENDOR_PRESETS: ReadonlyMap<string, VendorPreset> = new Map(
  [...ROWS].map(([name, row]) => [name, presetOf(row)]),
);

/** The wire formats and vendors that a configuration can name. */
export interface Formats {
  /** The core's own format, and those of the extensions that are loaded, by their names. */
  readonly dialects: ReadonlyMap<string, DialectDefinition>;
  /**
   * The values that `dialect` may have, including those whose extension is not loaded because
   * nothing names them.
   */
  readonly dialectNames: readonly string[];
  /** The values that `vendor` may have. */
  readonly vendorNames: readonly string[];
}

/** `others`: the dialects of extensions that are not loaded. */
export function createFormats(installed: Installed, others: readonly string[] = []): Formats {
  const dialects = dialectsIn(installed);
  const dialectNames = [...new Set([...dialects.keys(), ...others])];
  const usable = [...VENDOR_PRESETS].filter(([, { dialect }]) => dialectNames.includes(dialect));
  return { dialects, dialectNames, vendorNames: usable.map(([name]) => name) };
}

/** The formats that a provider or a model may need: the one that it names, or all of its vendor. */
export function dialectNamesOf({ vendor, dialect }: VendorReference): readonly string[] {
  if (typeof dialect === "string") return [dialect];
  const preset = VENDOR_PRESETS.get(String(vendor));
  if (!preset) return [];
  return [preset.dialect, ...(preset.by_model ?? []).map(([, name]) => name)];
}

/**
 * The preset of a provider's vendor, for the provider's format if it names one. Undefined: there is
 * no such vendor.
 */
export function vendorPreset({ vendor, dialect }: VendorReference): VendorPreset | undefined {
  const preset = VENDOR_PRESETS.get(String(vendor ?? (dialect === "openai" ? "generic" : dialect)));
  return preset?.variants.get(String(dialect)) ?? preset;
}

/** The settings of a model on which its format depends. */
interface ModelReference {
  /** The provider's name of the model. */
  readonly upstreamModel: string;
  /** Absent: the provider or the vendor decides. */
  readonly dialect?: unknown;
}

/** The first rule of a vendor that matches the provider's name of a model. */
const ruleOf = (vendor: unknown, upstreamModel: string): ModelRule | undefined =>
  VENDOR_PRESETS.get(String(vendor))?.by_model?.find(([pattern]) =>
    new RegExp(pattern).test(upstreamModel),
  );

/** The format of a model. Undefined: it has its provider's format. */
export const modelDialect = (
  { vendor }: VendorReference,
  { upstreamModel, dialect }: ModelReference,
): string | undefined =>
  typeof dialect === "string" ? dialect : ruleOf(vendor, upstreamModel)?.[1];

/** The text with `{region}` and the like replaced by the provider's settings. */
const filledIn = (text: string, variables: UrlVars): string =>
  URL_VARS.reduce((url, name) => url.replaceAll(`{${name}}`, () => variables[name] ?? ""), text);

/** The vendor's address for a provider that states none. Empty: the provider must state one. */
export const vendorAddress = ({ base_url = "", hosts = {} }: VendorPreset, variables: UrlVars) =>
  filledIn(hosts[variables.location ?? ""] ?? base_url, variables);

/**
 * The address of a model, if the vendor serves it at another address than its other models.
 * Undefined: the model is at its provider's address.
 */
export function modelAddress(
  provider: VendorReference & UrlVars & { readonly base_url: string },
  dialect: string | undefined,
): string | undefined {
  const { vendor, base_url } = provider;
  const preset = VENDOR_PRESETS.get(String(vendor));
  const variant = preset?.variants.get(String(dialect));
  // If a provider states an address, all of its models are there.
  if (!preset || !variant?.base_url || base_url !== vendorAddress(preset, provider))
    return undefined;
  return vendorAddress(variant, provider);
}

/** Overrides traits. A `path` that is stated without a `stream_path` applies to streams, too. */
const withPaths = (general: Traits, { path, ...own }: TraitOverrides): Traits =>
  withOverrides(path === undefined ? general : { ...general, path, stream_path: path }, own);

/**
 * The traits of a model: those of its vendor, overridden by its provider's and then by its own.
 * Their headers and query parameters add up.
 */
export function traitsOf(
  provider: TraitOverrides & VendorReference & UrlVars,
  model: TraitOverrides & {
    readonly reasoning: boolean;
    readonly dialect?: string | undefined;
    /** The provider's name of the model. */
    readonly upstreamModel?: string;
  },
): Traits {
  const { vendor, dialect } = provider;
  const preset = vendorPreset({ vendor, dialect: model.dialect ?? dialect })!;
  const general = model.reasoning ? preset.reasoningTraits : preset.traits;
  const versioned = provider.api_version === undefined ? {} : preset.versioned;
  const rule = ruleOf(vendor, model.upstreamModel ?? "");
  const special = rule?.[1] === model.dialect ? rule?.[2] : undefined;
  const vendors = withPaths(withOverrides(general, versioned), special ?? {});
  const traits = withPaths(withPaths(vendors, provider), model);
  const filled = (text: string | undefined) => text && filledIn(text, provider);
  const query = { ...vendors.query, ...provider.query, ...model.query };
  return {
    ...traits,
    path: filled(traits.path),
    stream_path: filled(traits.stream_path),
    headers: { ...vendors.headers, ...provider.headers, ...model.headers },
    query: Object.fromEntries(
      Object.entries(query).map(([name, value]) => [name, filledIn(value, provider)]),
    ),
  };
}
