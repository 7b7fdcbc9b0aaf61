// The vendors whose rows in vendors.json preset a provider's address and traits.
import { withOverrides } from "../core/routing/model.ts";
import type { DialectDefinition } from "../core/providers/dialect.ts";
import type { TraitOverrides, Traits } from "../core/providers/traits.ts";
import vendorsJson from "./vendors.json" with { type: "json" };

export interface VendorPreset {
  /** The vendor's name, for people. */
  readonly title: string;
  /** The name of the wire format. */
  readonly dialect: string;
  /** Undefined: a provider of this vendor must state it. */
  readonly base_url?: string | undefined;
  /** True for a hosted service that refuses requests without a key. */
  readonly needs_key?: boolean | undefined;
  /** A note for operators, in Markdown. */
  readonly note: string;
  /** The traits of models that do not think. */
  readonly traits: Traits;
  /** The traits of models that think. */
  readonly reasoningTraits: Traits;
}

/** By the vendor's name. */
export type VendorPresets = ReadonlyMap<string, VendorPreset>;

/** How a provider names its vendor. A native format has one vendor, which need not be named. */
interface VendorReference {
  readonly vendor?: unknown;
  readonly dialect?: unknown;
}

/** A row of vendors.json. Tests check all of them. */
interface VendorRow {
  readonly title: string;
  readonly dialect: string;
  readonly base_url?: string;
  readonly needs_key?: boolean;
  readonly note: string;
  readonly traits: TraitsJson;
  /** The differences of models that think. */
  readonly reasoning?: TraitsJson;
}

/** Traits as JSON can say them. */
interface TraitsJson extends Omit<TraitOverrides, "rename"> {
  readonly rename?: Readonly<Record<string, string>>;
}

const ROWS = new Map(
  Object.entries(vendorsJson as Readonly<Record<string, object>>),
) as ReadonlyMap<string, VendorRow>;

const overridesIn = ({ rename, ...rest }: TraitsJson): TraitOverrides => ({
  ...rest,
  rename: rename && new Map(Object.entries(rename)),
});

/** The presets of the vendors that speak one of these formats. */
export function vendorPresets(definitions: readonly DialectDefinition[]): VendorPresets {
  const names = new Set(definitions.map(({ name }) => name));
  const unknown = {
    echo: undefined,
    done_without_finish: undefined,
    max_output_tokens: undefined,
    default_output_tokens: undefined,
  };
  // The generic row states all other traits.
  const generic = { ...unknown, ...overridesIn(ROWS.get("generic")!.traits) } as Traits;
  const presets = new Map<string, VendorPreset>();
  for (const [name, { reasoning = {}, ...row }] of ROWS) {
    if (!names.has(row.dialect)) continue;
    const traits = withOverrides(generic, overridesIn(row.traits));
    const reasoningTraits = withOverrides(traits, overridesIn(reasoning));
    presets.set(name, { ...row, traits, reasoningTraits });
  }
  return presets;
}

/** A vendor's title and address, whether its format is loaded or not. Undefined: there is none. */
export const vendorFacts = (vendor: string): Pick<VendorPreset, "title" | "base_url"> | undefined =>
  ROWS.get(vendor);

/** The names of the vendors that speak one of these formats. */
export const vendorNames = (dialects: readonly string[]): readonly string[] =>
  [...ROWS].filter(([, { dialect }]) => dialects.includes(dialect)).map(([name]) => name);

/**
 * The wire format that a provider names, itself or by its vendor. Undefined: none that is known.
 */
export function dialectNameOf({ vendor, dialect }: VendorReference): string | undefined {
  if (typeof dialect === "string") return dialect;
  return ROWS.get(String(vendor))?.dialect;
}

/** The preset of a provider's vendor. Undefined: there is none of this name. */
export const vendorPreset = (
  presets: VendorPresets,
  { vendor, dialect }: VendorReference,
): VendorPreset | undefined =>
  presets.get(String(vendor ?? (dialect === "openai" ? "generic" : dialect)));

/** The traits of a model: those of its vendor, overridden by its provider's and then by its own. */
export function traitsOf(
  presets: VendorPresets,
  provider: TraitOverrides & VendorReference,
  model: TraitOverrides & { readonly reasoning: boolean },
): Traits {
  const { traits, reasoningTraits } = vendorPreset(presets, provider)!;
  const preset = model.reasoning ? reasoningTraits : traits;
  return withOverrides(withOverrides(preset, provider), model);
}
