// The vendors whose rows in vendors.json preset a provider's address and traits.
import { withOverrides } from "../core/routing/model.ts";
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
interface VendorRow extends Omit<VendorPreset, "traits" | "reasoningTraits"> {
  readonly traits: TraitOverrides;
  /** The differences of models that think. */
  readonly reasoning?: TraitOverrides;
}

const ROWS: ReadonlyMap<string, VendorRow> = new Map(
  Object.entries(vendorsJson as unknown as Readonly<Record<string, VendorRow>>),
);

/** The generic row states all other traits. */
const generic = {
  echo: undefined,
  done_without_finish: undefined,
  max_output_tokens: undefined,
  default_output_tokens: undefined,
  ...ROWS.get("generic")!.traits,
} as Traits;

function presetOf({ reasoning = {}, ...row }: VendorRow): VendorPreset {
  const traits = withOverrides(generic, row.traits);
  return { ...row, traits, reasoningTraits: withOverrides(traits, reasoning) };
}

/** The presets of all vendors, whether their formats are loaded or not. */
export const VENDOR_PRESETS: VendorPresets = new Map(
  [...ROWS].map(([name, row]) => [name, presetOf(row)]),
);

/** A vendor's title and address, whether its format is loaded or not. Undefined: there is none. */
export const vendorFacts = (vendor: string): Pick<VendorPreset, "title" | "base_url"> | undefined =>
  VENDOR_PRESETS.get(vendor);

/** The names of the vendors that speak one of these formats. */
export const vendorNames = (dialects: readonly string[]): readonly string[] =>
  [...VENDOR_PRESETS].filter(([, { dialect }]) => dialects.includes(dialect)).map(([name]) => name);

/**
 * The wire format that a provider names, itself or by its vendor. Undefined: none that is known.
 */
export const dialectNameOf = ({ vendor, dialect }: VendorReference): string | undefined =>
  typeof dialect === "string" ? dialect : VENDOR_PRESETS.get(String(vendor))?.dialect;

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
