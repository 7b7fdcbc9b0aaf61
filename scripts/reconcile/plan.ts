// What the run consists of: accounts, keys and models, two tables of prices, the phases, and the
// configuration of each gateway.

import { createHash } from "node:crypto";
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
  /** How many of 100 requests have this key. */
  readonly weight: number;
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

export const MODELS = ["plain", "odd", "no hit", "free", "claude"] as const;
export type ModelName = (typeof MODELS)[number];
/** Any of several models, the next one where one fails. */
const ANY = "any/of them";
/** Nothing of a stream is shown before it is whole, so that a broken one is asked for again. */
export const HELD = "any/held";
/** A stream that breaks is continued. */
export const CONTINUED = "any/continued";
const NAMES = [...MODELS, ANY, HELD, CONTINUED];
const REFERENCE_MODELS: readonly ModelName[] = ["plain", "odd", "no hit", "free"];

/** The names that the clients of a key ask for. */
export const namesOf = ({ names }: Key, isReference: boolean): readonly string[] =>
  isReference ? names.filter((name) => [...REFERENCE_MODELS, ANY].includes(name)) : names;

/** Prices before the change and after it. A model that is absent has no price. */
export const TABLES: readonly Readonly<Partial<Record<ModelName, Price>>>[] = [
  {
    plain: { hit: "0.028", miss: "0.28", output: "0.42" },
    odd: { hit: "0.000001", miss: "0.333333", write: "0.416667", output: "999.999999" },
    "no hit": { miss: "1.1", output: "2.2" },
    claude: { hit: "0.5", miss: "5", write: "6.25", write1h: "10", output: "25" },
  },
  {
    plain: { hit: "0.031", miss: "0.310001", output: "0.399999" },
    odd: { miss: "0.777777", output: "1000.000001" },
    "no hit": { hit: "0.9", miss: "1.2", write: "3.000003", output: "2.3" },
    claude: { hit: "0.4", miss: "4.5", write: "5.625", output: "22.500001" },
  },
];

const key = (account: string, text: string, more: Partial<Key> & { weight: number }): Key => ({
  account,
  key: text,
  keyId: `key_${sha256(sha256(text)).slice(0, 16)}`,
  names: NAMES,
  bounded: false,
  ...more,
});

export const KEYS: readonly Key[] = [
  key("acme", "sk-reconcile-acme-1", { weight: 25 }),
  key("acme", "sk-reconcile-acme-2", {
    weight: 20,
    budget: { amount: "90000000.5", period: "day" },
  }),
  key("beta", "sk-reconcile-beta", { weight: 20 }),
  key('Çelik, "Söhne" & 李', "sk-reconcile-celik", { weight: 15 }),
  key("limited", "sk-reconcile-limited", { weight: 6 }),
  key("purse", "sk-reconcile-purse", {
    weight: 14,
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
  /** How often each happens. */
  readonly events: Readonly<Partial<Record<PhaseEvent, number>>>;
  /**
   * The program is the reference edition: no Anthropic, Messages API, recovery, budgets, seals,
   * receipts and audit.
   */
  readonly isReference?: boolean;
  /** Addresses of the shared servers. Absent: files, and memory. */
  readonly postgres?: string;
  readonly redis?: string;
}

const oftenOf = (requests: number): number => (requests < 1_000 ? 1 : 4);

/** The phases of a run. `servers`: the last one has two gateways that share them. */
export function phasesOf(
  requests: number,
  servers: { readonly postgres?: string; readonly redis?: string },
): readonly Phase[] {
  const shared = servers.postgres !== undefined || servers.redis !== undefined;
  const first = Math.round(requests * (shared ? 0.35 : 0.6));
  const second = Math.round(requests * (shared ? 0.25 : 0.4));
  const often = oftenOf(requests);
  const events = { kill: 2 * often, change: 1 };
  const phases: Phase[] = [
    {
      name: "one gateway",
      requests: first,
      gateways: 1,
      workers: 1,
      events: { ...events, change: 2 },
    },
    {
      name: "two workers",
      requests: second,
      gateways: 1,
      workers: 2,
      events: { kill: often, "kill worker": often, change: 1 },
    },
  ];
  if (shared)
    phases.push({
      name: "two gateways",
      requests: requests - first - second,
      gateways: 2,
      workers: 1,
      events: servers.postgres === undefined ? events : { ...events, "kill database": often },
      ...servers,
    });
  return phases;
}

/** The only phase of the reference edition. */
export const referencePhase = (requests: number): Phase => ({
  name: "the reference edition",
  isReference: true,
  requests,
  gateways: 1,
  workers: 1,
  events: { kill: 2 * oftenOf(requests), change: 2 },
});

/** What the account `purse` may spend in a phase: less than it would, where there are budgets. */
export const purseOf = ({ requests, isReference }: Phase): string =>
  (isReference ? 1_000_000_000 : requests * 0.00007).toFixed(6);

export interface ConfigOptions {
  readonly phase: Phase;
  readonly dataDir: string;
  readonly provider: string;
  /** Which of TABLES is in force. */
  readonly table: number;
}

/** The keys, and what they and their accounts may spend. */
const budgetsOf = (phase: Phase): object => ({
  accounts: {
    acme: { budget: { amount: "90000000", period: "month" } },
    beta: { budget: { amount: "123456789.000000000001", period: "total" } },
    limited: { rpm: 240 },
    purse: { budget: { amount: purseOf(phase), period: "day" } },
  },
  keys: KEYS.map(({ account, key, budget }) => ({ account, key, ...(budget && { budget }) })),
});

const modelsOf = (names: readonly ModelName[], table: number): object =>
  Object.fromEntries(
    names.map((name) => {
      const price = TABLES[table]?.[name];
      const provider = name === "claude" ? "claude" : "lab";
      const prefill = name === "claude" ? "none" : "plain";
      return [name, { provider, prefill, ...(price && { price: priceSetting(price) }) }];
    }),
  );

/** The content of gateway.json. */
export const configOf = (options: ConfigOptions): object =>
  options.phase.isReference ? referenceConfigOf(options) : wholeConfigOf(options);

const referenceConfigOf = ({ dataDir, provider, table }: ConfigOptions): object => ({
  server: { port: 0, drain_ms: 5_000 },
  data_dir: dataDir,
  providers: { lab: { dialect: "openai", base_url: provider } },
  models: modelsOf(REFERENCE_MODELS, table),
  aliases: { [ANY]: { models: ["plain", "odd", "no hit"] } },
  keys: KEYS.map(({ account, key }) => ({ account, key })),
  limits: { rpm: null },
  spend: { segment_bytes: SEGMENT_BYTES },
  usage: { sync_ms: 50 },
  timeouts: { leave_ms: LEAVE_MS },
  retry: { max_retries: 1, backoff_ms: 2 },
});

const wholeConfigOf = ({ phase, dataDir, provider, table }: ConfigOptions): object => ({
  server: { port: 0, drain_ms: 5_000, workers: phase.workers },
  admin: { port: 0 },
  apis: ["messages", "responses"],
  data_dir: dataDir,
  providers: {
    lab: { dialect: "openai", base_url: provider },
    claude: { dialect: "anthropic", base_url: provider },
  },
  models: modelsOf(MODELS, table),
  aliases: {
    [ANY]: { models: ["plain", "odd", "no hit", "claude"] },
    [HELD]: { models: ["odd", "plain"], recovery: "hold" },
    [CONTINUED]: { models: ["plain", "odd"], recovery: "continue" },
  },
  ...budgetsOf(phase),
  // Only where the store's silence refuses is no budget overspent by two gateways.
  limits: {
    rpm: null,
    ...(phase.redis !== undefined && { store: phase.redis, on_error: "refuse" }),
  },
  spend: { segment_bytes: SEGMENT_BYTES },
  usage: { sync_ms: 50, ...(phase.postgres !== undefined && { store: phase.postgres }) },
  seals: { enabled: true },
  timeouts: { leave_ms: LEAVE_MS },
  retry: { max_retries: 1, backoff_ms: 2 },
  breaker: { failures: 1_000_000_000 },
});
