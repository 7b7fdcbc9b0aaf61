// A first gateway.json for a vendor.
import type { ModelRow, VendorRow } from "./vendors.ts";

/** The environment variable of the clients' key, and the account that it belongs to. */
export const CLIENT_VARIABLE = "GATEWAY_KEY";
export const ACCOUNT = "main";

export interface FirstConfigOptions {
  /** Its name in gateway.json, which becomes the provider's. */
  readonly vendor: string;
  /** The facts about this vendor. */
  readonly row: VendorRow;
  /** The models by the vendor's names. */
  readonly models: readonly string[];
  /** Absent: the vendor's own. */
  readonly baseUrl?: string | undefined;
}

export interface FirstConfig {
  /** One provider: the vendor. */
  readonly providers: Readonly<Record<string, object>>;
  /** By the vendor's names. */
  readonly models: Readonly<Record<string, ModelRow & { readonly provider: string }>>;
  /** auto/chat and auto/reasoning, as far as there are models for them. */
  readonly aliases: Readonly<Record<string, { readonly models: readonly string[] }>>;
  /** One key, read from the environment. */
  readonly keys: readonly object[];
}

/** The configuration. A model that the row does not have gets neither context length nor price. */
export function firstConfig({ vendor, row, models, baseUrl }: FirstConfigOptions): FirstConfig {
  const provider = {
    vendor,
    ...(baseUrl !== undefined && { base_url: baseUrl }),
    ...(row.variable !== undefined && { api_key: `$${row.variable}` }),
  };
  const rows = models.map((name) => [name, { provider: vendor, ...row.models[name] }] as const);
  // Models that the row does not have come last: nothing is known of their abilities.
  const others = models.filter((name) => !Object.hasOwn(row.models, name));
  const chat = [...row.chat.filter((name) => models.includes(name)), ...others];
  const reasoning = row.reasoning.filter((name) => models.includes(name));
  return {
    providers: { [vendor]: provider },
    models: Object.fromEntries(rows),
    aliases: {
      ...(chat.length > 0 && { "auto/chat": { models: chat } }),
      ...(reasoning.length > 0 && { "auto/reasoning": { models: reasoning } }),
    },
    keys: [{ account: ACCOUNT, key: `$${CLIENT_VARIABLE}` }],
  };
}
