// The facts about a vendor that a first configuration needs: its models with their prices, and the
// day on which these were looked up. The figures are in vendors.json.
import { VENDOR_PRESETS } from "../../../config/vendors.ts";
import type { Price } from "../../../core/ledger/price.ts";
import vendorsJson from "./vendors.json" with { type: "json" };

/** A model as gateway.json has it, without its provider. */
export interface ModelRow {
  /** The model can think. Absent: it cannot. */
  readonly reasoning?: boolean;
  /** Size of the context window in tokens. Absent: not known. */
  readonly context_tokens?: number;
  /** Absent: the price is not known. */
  readonly price?: Price;
  /** The prices of long prompts, shortest first. Absent: the length does not matter. */
  readonly long_prompts?: readonly (Price & { readonly above_tokens: number })[];
  /** Further settings that the model needs, such as `"thinking": "budget"`. */
  readonly [setting: string]: unknown;
}

export interface VendorRow {
  /** The day of the figures: `2026-07-01`. Absent: there are no figures. */
  readonly as_of?: string;
  /** The vendor's page of prices. Absent: the vendor charges nothing. */
  readonly prices?: string;
  /** The environment variable of the provider's key. Absent: the vendor needs no key. */
  readonly variable?: string;
  /** Further settings of the provider, such as a cloud's region. Absent: there are none. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** A text that says what the operator has to replace in the settings. Absent: nothing. */
  readonly replace?: string;
  /** The models, by the vendor's names. Empty: the operator has to name the models. */
  readonly models: Readonly<Record<string, ModelRow>>;
  /** The models of the alias auto/chat, in order. */
  readonly chat: readonly string[];
  /** The models of the alias auto/reasoning, in order. */
  readonly reasoning: readonly string[];
}

/** The rows by the vendors' names in gateway.json. */
export const VENDOR_ROWS: ReadonlyMap<string, VendorRow> = new Map(
  Object.entries(vendorsJson as Readonly<Record<string, VendorRow>>),
);

/** By dialect: paths that addresses often end in, although the gateway appends them itself. */
const APPENDED_PATHS: Readonly<Record<string, RegExp>> = {
  openai: /\/chat\/completions$/,
  anthropic: /\/v1(\/messages)?$/,
  gemini: /\/v1beta(\/models(\/[^/]+)?)?$/,
  ollama: /\/(v1|api|api\/chat)$/,
  responses: /\/responses$/,
};

/** An address as `base_url` needs it: without the path that the gateway appends. */
export function baseUrlFor(vendor: string, written: string): string {
  const { dialect = "", traits } = VENDOR_PRESETS.get(vendor) ?? {};
  const address = written.replace(/\/+$/, "");
  const fullPath = traits?.path;
  if (fullPath === undefined) return address.replace(APPENDED_PATHS[dialect] ?? "", "");
  const path = URL.canParse(address) ? new URL(address).pathname : "/";
  return path !== "/" && fullPath.startsWith(path) ? address.slice(0, -path.length) : address;
}
