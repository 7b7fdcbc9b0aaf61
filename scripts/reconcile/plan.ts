// What the run consists of: accounts, keys and models, two tables of prices, the phases, and the
// configuration of each gateway.

import { createHash } from "node:crypto";
import type { Line } from "./house.ts";
import { type Price, priceSetting } from "./money.ts";

export interface Key {
  readonly account: string;
  readonly key: string;
  /** As the gateway names the key in its books: 16 digits of the SHA-256 of the key's SHA-256. */
  readonly keyId: string;
  readonly budget?: { readonly amount: string; readonly period: "day" | "month" | "total" };
  /** Names that its clients ask for. */
  readonly names: readonly string[];
  /** Every request states max_tokens, so that none costs more than its hold. */
  readonly bounded: boolean;
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

export const MODELS = ["plain", "odd", "no hit", "free", "claude"] as const;
export type ModelName = (typeof MODELS)[number];
/** Nothing of a stream is shown before it is whole, so that a broken one is asked for again. */
export const HELD = "any/held";
/** A stream that breaks is continued. */
export const CONTINUED = "any/continued";
/** Names for several models, the next one where one fails. */
const ALIASES: Readonly<Record<string, { models: readonly ModelName[]; recovery?: string }>> = {
  "any/of them": { models: ["plain", "odd", "no hit"] },
  [HELD]: { models: ["odd", "plain"], recovery: "hold" },
  [CONTINUED]: { models: ["plain", "odd"], recovery: "continue" },
  "any/with claude": { models: ["no hit", "claude"] },
};
/** The reference edition knows neither Anthropic's format nor recovery. */
const isInReference = (name: string): boolean => name !== "claude" && !/held|cont|with/.test(name);

/** The names that the clients of a key ask for. */
export const namesOf = ({ names }: Key, isReference: boolean): readonly string[] =>
  names.filter((name) => !isReference || isInReference(name));

/** Tokens above which a prompt costs more. About half of the prompts have more. */
const LONG_PROMPT = 60;

/** Prices before the change and after it. A model that is absent has no price. */
export const TABLES: readonly Readonly<Partial<Record<ModelName, Price>>>[] = [
  {
    plain: { hit: "0.028", miss: "0.28", output: "0.42" },
    odd: { hit: "0.000001", miss: "0.333333", write: "0.416667", output: "999.999999" },
    "no hit": { miss: "1.1", output: "2.2" },
    claude: {
      hit: "0.5",
      miss: "5",
      write: "6.25",
      write1h: "10",
      output: "25",
      long: { above: LONG_PROMPT, price: { hit: "1", miss: "10.5", output: "37.500001" } },
    },
  },
  {
    plain: { hit: "0.031", miss: "0.310001", output: "0.399999" },
    odd: { miss: "0.777777", output: "1000.000001" },
    "no hit": { hit: "0.9", miss: "1.2", write: "3.000003", output: "2.3" },
    claude: { hit: "0.4", miss: "4.5", write: "5.625", output: "22.500001" },
  },
];

const key = (account: string, text: string, more: Partial<Key> = {}): Key => ({
  account,
  key: text,
  keyId: `key_${sha256(sha256(text)).slice(0, 16)}`,
  names: [...MODELS, ...Object.keys(ALIASES)],
  bounded: false,
  ...more,
});

export const KEYS: readonly Key[] = [
  key("acme", "sk-reconcile-acme-1"),
  key("acme", "sk-reconcile-acme-2", { budget: { amount: "90000000.5", period: "day" } }),
  key("beta", "sk-reconcile-beta"),
  key('Çelik, "Söhne" & 李', "sk-reconcile-celik"),
  key("limited", "sk-reconcile-limited"),
  key("purse", "sk-reconcile-purse", {
    bounded: true,
    names: ["plain", "no hit", "claude", "free"],
  }),
];
export const ACCOUNTS: readonly string[] = [...new Set(KEYS.map(({ account }) => account))];

/** How long a provider is read on after its client left a stream, in milliseconds. */
export const LEAVE_MS = 300;
/** Small, so that gateways die around the beginning of a segment too. */
const SEGMENT_BYTES = 16_384;

/**
 * What happens during a phase: a gateway is killed, and a process that finds its books then; a worker
 * is killed; PostgreSQL is killed, with a gateway; the prices change from one table to the other.
 */
export type PhaseEvent = "kill" | "kill worker" | "kill database" | "change";

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
  const events: PhaseEvent[] = [...often("kill", 2), "change", "change"];
  if (isReference)
    return [{ name: "the reference edition", isReference, requests, ...gateway, events }];
  const isShared = servers.postgres !== undefined || servers.redis !== undefined;
  const first = Math.round(requests * (isShared ? 0.35 : 0.6));
  const second = Math.round(requests * (isShared ? 0.25 : 0.4));
  const workers = [...often("kill", 1), ...often("kill worker", 1), "change" as const];
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

export interface ConfigOptions {
  readonly phase: Phase;
  readonly dataDir: string;
  readonly provider: string;
  /** Which of TABLES is in force. */
  readonly table: number;
}

const modelOf = (name: ModelName, table: number): object => {
  const price = TABLES[table]?.[name];
  const isClaude = name === "claude";
  return {
    provider: isClaude ? "claude" : "lab",
    prefill: isClaude ? "none" : "plain",
    ...(price && { price: priceSetting(price) }),
    ...(price?.long && {
      long_prompts: [{ above_tokens: price.long.above, ...priceSetting(price.long.price) }],
    }),
  };
};

/** The content of gateway.json. */
export function configOf(options: ConfigOptions): object {
  const { phase, dataDir, provider, table } = options;
  const isKnown = (name: string): boolean => !phase.isReference || isInReference(name);
  const models = MODELS.filter(isKnown).map((name) => [name, modelOf(name, table)]);
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
  return phase.isReference ? common : { ...common, ...beyondReference(options, common) };
}

const beyondReference = ({ phase, provider }: ConfigOptions, common: Line): object => ({
  admin: { port: 0 },
  apis: ["messages", "responses"],
  providers: { ...common["providers"], claude: { dialect: "anthropic", base_url: provider } },
  accounts: {
    acme: { budget: { amount: "90000000", period: "month" } },
    beta: { budget: { amount: "123456789.000000000001", period: "total" } },
    limited: { rpm: 240 },
    purse: { budget: { amount: purseOf(phase), period: "day" } },
  },
  keys: KEYS.map(({ account, key, budget }) => ({ account, key, ...(budget && { budget }) })),
  // Only where the store's silence refuses is no budget overspent by two gateways.
  limits: {
    rpm: null,
    ...(phase.redis !== undefined && { store: phase.redis, on_error: "refuse" }),
  },
  usage: { sync_ms: 50, ...(phase.postgres !== undefined && { store: phase.postgres }) },
  seals: { enabled: true },
  breaker: { failures: 1_000_000_000 },
});
