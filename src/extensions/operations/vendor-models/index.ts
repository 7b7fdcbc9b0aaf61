// The facts about a vendor that a first configuration needs: its models, and when their prices were
// last looked up. The figures stand in vendors.json.
import { VENDOR_PRESETS } from "../../../config/vendors.ts";
import vendorsJson from "./vendors.json" with { type: "json" };

/** A model as gateway.json has it, without its provider. */
export interface ModelRow {
  /** The model can think. Absent: it cannot. */
  readonly reasoning?: boolean;
  /** Size of the context window in tokens. Absent: not known. */
  readonly context_tokens?: number;
  /** Absent: it is not known, or depends on more than the number of tokens. */
  readonly price?: {
    readonly input_cache_hit?: number;
    readonly input_cache_miss: number;
    readonly input_cache_write?: number;
    readonly input_cache_write_1h?: number;
    readonly output: number;
  };
  /** Further settings that the model needs, such as `"thinking": "budget"`. */
  readonly [setting: string]: unknown;
}

export interface VendorRow {
  /**
   * The day of the figures: `2026-07-01`. Absent: there are none, the operator names the models.
   */
  readonly as_of?: string;
  /** The vendor's own page of prices. Absent: the vendor asks for none. */
  readonly prices?: string;
  /** The environment variable of the provider's key. Absent: the vendor needs no key. */
  readonly variable?: string;
  /** Further settings of the provider, such as a cloud's region. Absent: there are none. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** What the operator has to replace in the settings, in words. Absent: nothing. */
  readonly replace?: string;
  /** By the names under which the vendor has them. Empty: the operator names them. */
  readonly models: Readonly<Record<string, ModelRow>>;
  /** The models of the alias auto/chat, in their order. */
  readonly chat: readonly string[];
  /** The same of auto/reasoning. */
  readonly reasoning: readonly string[];
}

/** By the vendors' names in gateway.json. */
export const VENDOR_ROWS: ReadonlyMap<string, VendorRow> = new Map(
  Object.entries(vendorsJson as Readonly<Record<string, VendorRow>>),
);

/** By format, what addresses often end in and the gateway appends itself. */
const APPENDED: Readonly<Record<string, RegExp>> = {
  openai: /\/chat\/completions$/,
  anthropic: /\/v1(\/messages)?$/,
  gemini: /\/v1beta(\/models)?$/,
  ollama: /\/(v1|api|api\/chat)$/,
};

/** The address of a vendor's server as `base_url` has it, without what the gateway appends. */
export function baseUrlFor(vendor: string, written: string): string {
  const { dialect = "", traits } = VENDOR_PRESETS.get(vendor) ?? {};
  const address = written.replace(/\/+$/, "");
  const own = traits?.path;
  if (own === undefined) return address.replace(APPENDED[dialect] ?? "", "");
  const path = URL.canParse(address) ? new URL(address).pathname : "/";
  return path !== "/" && own.startsWith(path) ? address.slice(0, -path.length) : address;
}
