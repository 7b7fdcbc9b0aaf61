// The vendors whose rows in vendors.json preset a provider's address and traits.
import {
  boolean,
  nonEmpty,
  object,
  optional,
  partial,
  record,
  type Infer,
} from "../schema/checker.ts";
import type { DialectDefinition } from "./dialect.ts";
import { traitFields, type Traits } from "./traits.ts";
import vendorsJson from "./vendors.json" with { type: "json" };

/**
 * Traits that a vendor, a provider or a model states. Absent or undefined: those of the more
 * general one apply.
 */
export type TraitOverrides = { readonly [name in keyof Traits]?: Traits[name] | undefined };

export interface VendorPreset {
  /** The vendor's name, for people. */
  readonly title: string;
  /** The name of the wire format. */
  readonly dialect: string;
  /** Undefined: a provider of this vendor must state it. */
  readonly base_url?: string | undefined;
  /** True for a hosted service that refuses requests without a key. */
  readonly needs_key?: boolean | undefined;
  /** What an operator should know, in Markdown. */
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

/** The presets of the vendors that speak one of these formats. */
export function vendorPresets(definitions: readonly DialectDefinition[]): VendorPresets {
  const fields = traitFields(definitions);
  const traits = object(partial(fields), { strict: true });
  const row = object(
    {
      title: nonEmpty,
      dialect: nonEmpty,
      base_url: optional(nonEmpty),
      needs_key: optional(boolean()),
      note: nonEmpty,
      traits,
      /** What differs in models that think. */
      reasoning: optional(traits),
    },
    { strict: true },
  );
  const names = new Set(definitions.map(({ name }) => name));
  const known = Object.entries(vendorsJson).filter(([, { dialect }]) => names.has(dialect));
  const rows = record(row)(Object.fromEntries(known), true);
  const generic: Traits = object(fields, { strict: true })(vendorsJson.generic.traits, true);
  const presetOf = ({ reasoning, ...rest }: Infer<typeof row>): VendorPreset => {
    const traits = withOverrides(generic, rest.traits);
    return { ...rest, traits, reasoningTraits: withOverrides(traits, reasoning) };
  };
  return new Map([...rows].map(([name, row]) => [name, presetOf(row)]));
}

/** The names of the vendors that speak one of these formats. */
export const vendorNames = (dialects: readonly string[]): readonly string[] =>
  Object.entries(vendorsJson)
    .filter(([, { dialect }]) => dialects.includes(dialect))
    .map(([name]) => name);

/**
 * The wire format that a provider names, itself or by its vendor. Undefined: none that is known.
 */
export function dialectNameOf({ vendor, dialect }: VendorReference): string | undefined {
  if (typeof dialect === "string") return dialect;
  const rows = new Map(Object.entries(vendorsJson));
  return rows.get(String(vendor))?.dialect;
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

/** `general`, with those of its fields that `overrides` states. */
export const withOverrides = <T extends object>(general: T, overrides: object = {}): T => ({
  ...general,
  ...Object.fromEntries(
    Object.entries(overrides).filter(([name, value]) => name in general && value !== undefined),
  ),
});
