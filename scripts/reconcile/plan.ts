// What the run consists of: accounts, keys and models, two tables of prices, the phases, and the
// configuration of each gateway.

import { createHash } from "node:crypto";
import type { Price } from "./money.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const MODELS = ["plain", "odd", "no hit", "free", "claude"];
/** Nothing of a stream is shown before it is whole, so that a broken one is asked for again. */
export const HELD = "any/held";
/** A stream that breaks is continued. */
export const CONTINUED = "any/continued";
/** Names for several models, the next one where one fails. */
const ALIASES = {
  "any/of them": { models: ["plain", "odd", "no hit"] },
  [HELD]: { models: ["odd", "plain"], recovery: "hold" },
  [CONTINUED]: { models: ["plain", "odd"], recovery: "continue" },
  "any/with claude": { models: ["no hit", "claude"] },
};
/** The reference edition knows neither Anthropic's format nor recovery. */
export const isInReference = (name: string): boolean =>
  name !== "claude" && !/held|cont|with/.test(name);

/** What is read from a cache and written to it. */
type OfCache = Partial<Record<"hit" | "write" | "write_1h", number>>;

const price = (input_cache_miss: number, output: number, cache: OfCache = {}): Price => ({
  ...Object.fromEntries(Object.entries(cache).map(([name, each]) => [`input_cache_${name}`, each])),
  input_cache_miss,
  output,
});

/** The settings of a model that has prices. */
interface Settings {
  readonly price: Price;
  readonly long_prompts?: readonly (Price & { readonly above_tokens: number })[];
}

/** All that have prices, before the prices change and after it. */
const TABLES: readonly Readonly<Record<string, Settings>>[] = [
  {
    plain: { price: price(0.28, 0.42, { hit: 0.028 }) },
    odd: { price: price(0.333333, 999.999999, { hit: 0.000001, write: 0.416667 }) },
    "no hit": { price: price(1.1, 2.2) },
    claude: {
      price: price(5, 25, { hit: 0.5, write: 6.25, write_1h: 10 }),
      // About half of the prompts have more tokens.
      long_prompts: [{ above_tokens: 60, ...price(10.5, 37.500001, { hit: 1 }) }],
    },
  },
  {
    plain: { price: price(0.310001, 0.399999, { hit: 0.031 }) },
    odd: { price: price(0.777777, 1000.000001) },
    "no hit": { price: price(1.2, 2.3, { hit: 0.9, write: 3.000003 }) },
    claude: { price: price(4.5, 22.500001, { hit: 0.4, write: 5.625 }) },
  },
];

/** The price of a prompt of so many tokens. */
export function priceFor(table: number, model: string | null, prompt: number): Price | null {
  const { price = null, long_prompts: [long] = [] } = TABLES[table]![model ?? ""] ?? {};
  if (!long || prompt <= long.above_tokens) return price;
  const { above_tokens: _, ...longPrice } = long;
  return longPrice;
}

type Budget = { readonly amount: string; readonly period: "day" | "month" | "total" };

const key = (account: string, key: string, budget?: Budget) => ({
  account,
  key,
  /** As the gateway names the key in its books: 16 digits of the SHA-256 of the key's SHA-256. */
  keyId: `key_${sha256(sha256(key)).slice(0, 16)}`,
  budget,
  /** Every request states max_tokens, so that none costs more than its hold. */
  bounded: account === "purse",
  /** Names that its clients ask for. */
  names:
    account === "purse"
      ? ["plain", "no hit", "claude", "free"]
      : [...MODELS, ...Object.keys(ALIASES)],
});

export const KEYS = [
  key("acme", "sk-reconcile-acme-1"),
  key("acme", "sk-reconcile-acme-2", { amount: "90000000.5", period: "day" }),
  key("beta", "sk-reconcile-beta"),
  key('Çelik, "Söhne" & 李', "sk-reconcile-celik"),
  key("limited", "sk-reconcile-limited"),
  key("purse", "sk-reconcile-purse"),
];
export const ACCOUNTS: readonly string[] = [...new Set(KEYS.map(({ account }) => account))];

/** How long a provider is read on after its client left a stream, in milliseconds. */
export const LEAVE_MS = 300;
/** Small, so that gateways die around the beginning of a segment too. */
const SEGMENT_BYTES = 16_384;

/**
 * What happens during a phase: a gateway is killed, and so is the process that takes over its
 * books; a worker is killed; PostgreSQL is killed, with a gateway.
 */
export type PhaseEvent = "kill" | "kill worker" | "kill database";

export interface Phase {
  readonly name: string;
  readonly requests: number;
  readonly gateways: number;
  readonly workers: number;
  readonly events: readonly PhaseEvent[];
  /**
   * The program is the reference edition: no Anthropic, Messages API, recovery, budgets, seals,
   * receipts and audit.
   */
  readonly isReference?: boolean;
  /** Addresses of the shared servers. Absent: files, and memory. */
  readonly postgres?: string;
  readonly redis?: string;
}

/** The phases of a run. With servers, the last one has two gateways that share them. */
export function phasesOf(
  requests: number,
  isReference: boolean,
  servers: Pick<Phase, "postgres" | "redis">,
): readonly Phase[] {
  const often = (event: PhaseEvent, times: number): PhaseEvent[] =>
    Array.from({ length: requests < 1_000 ? times : 4 * times }, () => event);
  const gateway = { gateways: 1, workers: 1 };
  const events = often("kill", 2);
  if (isReference)
    return [{ name: "the reference edition", isReference, requests, ...gateway, events }];
  const isShared = servers.postgres !== undefined || servers.redis !== undefined;
  const first = Math.round(requests * (isShared ? 0.35 : 0.6));
  const second = Math.round(requests * (isShared ? 0.25 : 0.4));
  const workers = [...often("kill", 1), ...often("kill worker", 1)];
  const database = servers.postgres === undefined ? [] : often("kill database", 1);
  const last = { name: "two gateways", requests: requests - first - second, gateways: 2 };
  return [
    { name: "one gateway", requests: first, ...gateway, events },
    { name: "two workers", requests: second, gateways: 1, workers: 2, events: workers },
    ...(isShared ? [{ ...last, workers: 1, events: [...events, ...database], ...servers }] : []),
  ];
}

/** What the account `purse` may spend in a phase: less than it would. */
export const purseOf = ({ requests }: Phase): string => (requests * 0.00007).toFixed(6);

/** The content of gateway.json. `table`: which of TABLES is in force. */
export function configOf(phase: Phase, dataDir: string, provider: string, table: number): object {
  const isKnown = (name: string): boolean => !phase.isReference || isInReference(name);
  const lab = { provider: "lab", prefill: "plain" };
  const models = MODELS.filter(isKnown).map((name) => {
    const from = name === "claude" ? { provider: "claude", prefill: "none" } : lab;
    return [name, { ...from, ...TABLES[table]![name] }];
  });
  const common = {
    server: { port: 0, drain_ms: 5_000, ...(!phase.isReference && { workers: phase.workers }) },
    data_dir: dataDir,
    providers: { lab: { dialect: "openai", base_url: provider } },
    models: Object.fromEntries(models),
    aliases: Object.fromEntries(Object.entries(ALIASES).filter(([name]) => isKnown(name))),
    keys: KEYS.map(({ account, key }) => ({ account, key })),
    limits: { rpm: null },
    spend: { segment_bytes: SEGMENT_BYTES },
    usage: { sync_ms: 50 },
    timeouts: { leave_ms: LEAVE_MS },
    retry: { max_retries: 1, backoff_ms: 2 },
  };
  if (phase.isReference) return common;
  const claude = { dialect: "anthropic", base_url: provider };
  return { ...common, ...beyondReference(phase), providers: { ...common.providers, claude } };
}

const beyondReference = (phase: Phase): object => ({
  admin: { port: 0 },
  apis: ["messages", "responses"],
  accounts: {
    acme: { budget: { amount: "90000000", period: "month" } },
    beta: { budget: { amount: "123456789.000000000001", period: "total" } },
    limited: { rpm: 240 },
    purse: { budget: { amount: purseOf(phase), period: "day" } },
  },
  keys: KEYS.map(({ account, key, budget }) => ({ account, key, budget })),
  // With "local" two gateways could overspend a budget while the store is silent.
  limits: {
    rpm: null,
    ...(phase.redis !== undefined && { store: phase.redis, on_error: "refuse" }),
  },
  usage: { sync_ms: 50, ...(phase.postgres !== undefined && { store: phase.postgres }) },
  seals: { enabled: true },
  breaker: { failures: 1_000_000_000 },
});
