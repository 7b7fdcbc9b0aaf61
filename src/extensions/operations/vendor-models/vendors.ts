// The facts about a vendor that a first configuration needs: its models, and when their prices were
// last looked up. The figures stand in vendors.json.
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
