// What the gateways that are killed are configured with: accounts, models and their prices.

import { type Price, priceSetting } from "../../../scripts/reconcile/money.ts";
import type { createRandom } from "../random.ts";

export const KEYS = [
  ["acme", "sk-crash-acme-1"],
  ["acme", "sk-crash-acme-2"],
  ["beta", "sk-crash-beta"],
  ['Çelik, "Söhne" & 李', "sk-crash-celik"],
] as const;
export const ACCOUNTS: readonly string[] = [...new Set(KEYS.map(([account]) => account))];

/** Sums that binary fractions represent exactly there are none among them. */
export const PRICES: Readonly<Record<string, Price | undefined>> = {
  plain: { hit: "0.028", miss: "0.28", output: "0.42" },
  odd: { hit: "0.000001", miss: "0.333333", write: "0.416667", output: "999999.999999" },
  "no hit": { miss: "1.1", output: "2.2" },
  free: undefined,
};
export const MODELS = Object.keys(PRICES);
export const ALIAS = "any/of them";

export type Random = ReturnType<typeof createRandom>;

/** When it is certain that what is waited for does not come, however busy the machine is. */
export const LATE_MS = 120_000;

export interface ConfigOptions {
  readonly dataDir: string;
  readonly provider: string;
  /** Absent: the file store. */
  readonly store?: string | undefined;
  readonly syncMs?: number;
  /** The lines of days are signed. */
  readonly seals?: boolean;
}

export const crashConfig = ({
  dataDir,
  provider,
  store = "file",
  syncMs = 20,
  seals = false,
}: ConfigOptions): object => ({
  server: { port: 0, drain_ms: 4_000 },
  admin: { port: 0 },
  data_dir: dataDir,
  providers: { lab: { dialect: "openai", base_url: provider } },
  models: Object.fromEntries(
    Object.entries(PRICES).map(([name, price]) => [
      name,
      { provider: "lab", ...(price && { price: priceSetting(price) }) },
    ]),
  ),
  aliases: { [ALIAS]: { models: MODELS } },
  keys: KEYS.map(([account, key]) => ({ account, key })),
  limits: { rpm: null },
  spend: { segment_bytes: 1_024 },
  usage: { store, sync_ms: syncMs },
  retry: { max_retries: 1, backoff_ms: 2 },
  breaker: { failures: 1_000_000_000 },
  ...(seals && { seals: { enabled: true } }),
});
