// The plan of a run: accounts, keys and models, two price tables, the clients' requests, the
// phases, and the configuration of each gateway.

import { createHash } from "node:crypto";
import type { Price } from "./money.ts";
import type { Random } from "./provider.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const MODELS = ["plain", "odd", "no hit", "free", "claude"];
/** An alias that holds streams back until they are complete, and retries those that break. */
export const HELD = "any/held";
/** An alias that continues streams that break. */
export const CONTINUED = "any/continued";
/** Each alias tries its models in this order. */
const ALIASES = {
  "any/of them": { models: ["plain", "odd", "no hit"] },
  [HELD]: { models: ["odd", "plain"], recovery: "hold" },
  [CONTINUED]: { models: ["plain", "odd"], recovery: "continue" },
  "any/with claude": { models: ["no hit", "claude"] },
};
/** Whether the reference edition, which has no Anthropic format and no recovery, has this model. */
export const isInReference = (name: string): boolean =>
  name !== "claude" && !/held|cont|with/.test(name);

/** Prices for reading from the cache and writing to it. */
type CachePrices = Partial<Record<"hit" | "write" | "write_1h", number>>;

const price = (input_cache_miss: number, output: number, cache: CachePrices = {}): Price => ({
  ...Object.fromEntries(Object.entries(cache).map(([name, each]) => [`input_cache_${name}`, each])),
  input_cache_miss,
  output,
});

/** The price settings of a model, as in gateway.json. */
interface Settings {
  readonly price: Price;
  readonly long_prompts?: readonly (Price & { readonly above_tokens: number })[];
}

/** The prices of all models that have some, before a change of prices and after it. */
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

/** The price of a request whose prompt has so many tokens. Null: the model is free. */
export function priceFor(table: number, model: string | null, prompt: number): Price | null {
  const { price = null, long_prompts: [long] = [] } = TABLES[table]![model ?? ""] ?? {};
  if (!long || prompt <= long.above_tokens) return price;
  const { above_tokens: _, ...longPrice } = long;
  return longPrice;
}

type Budget = { readonly amount: string; readonly period: "day" | "month" | "total" };

/** The account whose budget is smaller than what its clients would spend. */
export const CAPPED = "capped";

const key = (account: string, key: string, budget?: Budget) => ({
  account,
  key,
  /** The gateway's name for the key: 16 hex digits of the SHA-256 of the key's SHA-256. */
  keyId: `key_${sha256(sha256(key)).slice(0, 16)}`,
  budget,
  /** Whether every request sets max_tokens, so that none can cost more than its hold. */
  bounded: account === CAPPED,
  /** The models and aliases that its clients ask for. */
  names:
    account === CAPPED
      ? ["plain", "no hit", "claude", "free"]
      : [...MODELS, ...Object.keys(ALIASES)],
});

/** The keys of all clients. */
export const KEYS = [
  key("acme", "sk-reconcile-acme-1"),
  key("acme", "sk-reconcile-acme-2", { amount: "90000000.5", period: "day" }),
  key("beta", "sk-reconcile-beta"),
  key('Çelik, "Söhne" & 李', "sk-reconcile-celik"),
  key("limited", "sk-reconcile-limited"),
  key(CAPPED, `sk-reconcile-${CAPPED}`),
];
/** The accounts of these keys. */
export const ACCOUNTS: readonly string[] = [...new Set(KEYS.map(({ account }) => account))];

/** The path of each API below /v1. */
export const PATHS = { chat: "chat/completions", messages: "messages", responses: "responses" };
/** The API of a request. */
export type Api = keyof typeof PATHS;

/** The fields that each API names differently. */
function fieldsOf(api: Api, content: string, maxTokens: number | undefined) {
  const messages = [{ role: "user", content }];
  if (api === "responses") return { input: messages, max_output_tokens: maxTokens };
  return { messages, max_tokens: maxTokens };
}

/** Text with characters of one to three bytes, repeated to make prompts of different lengths. */
const PADDING = "Überall 李 steht etwas anderes. ";

/** Draws random requests. Their serial numbers count up over all gateways of a phase. */
export function createPlanner({ random, between, pick }: Random, isReference: boolean) {
  const apis: readonly Api[] = isReference ? ["chat"] : ["chat", "messages", "responses"];
  let serials = 0;

  return (gateway: number) => {
    serials += 1;
    const key = pick(KEYS);
    const content = `#${serials}# ${PADDING.repeat(between(0, 40))}`;
    const stream = random() < 0.55;
    const api = pick(apis);
    const isBounded = key.bounded || api === "messages" || random() < 0.4;
    const maxTokens = isBounded ? between(40, 300) : undefined;
    const model = pick(key.names.filter((name) => !isReference || isInReference(name)));
    const asksUsage = stream && api === "chat" && random() < 0.7;
    const body = JSON.stringify({
      model,
      stream,
      ...fieldsOf(api, content, maxTokens),
      ...(asksUsage && { stream_options: { include_usage: true } }),
    });
    const about = {
      serial: serials,
      /** The X-Request-Id. */
      id: `own-${serials}`,
      account: key.account,
      keyId: key.keyId,
      api,
      model,
      stream,
      /** Undefined: the client set no bound. */
      maxTokens,
      /** Bytes of the prompt's text. */
      promptBytes: Buffer.byteLength(content),
      /** The number of the gateway that it is sent to. */
      gateway,
      /** Milliseconds of the wall clock. */
      startedAt: Date.now(),
    };
    /** Undefined: the client waits for the end. */
    const leaveAfterMs = random() < 0.13 ? between(0, 60) : undefined;
    return { key, body, about, leaveAfterMs };
  };
}

/** A request that is to be sent. */
export type PlannedRequest = ReturnType<ReturnType<typeof createPlanner>>;

/** `timeouts.leave_ms`: how long the gateway reads on after a client left a stream. */
export const LEAVE_MS = 300;
/** Small, so that some gateways are killed while they start a segment. */
const SEGMENT_BYTES = 16_384;

/**
 * What happens during a phase. "kill": a gateway is killed, and then the process that takes over
 * its books. "kill worker": one of its workers is killed. "kill database": as "kill", and
 * PostgreSQL is killed at the same time.
 */
export type PhaseEvent = "kill" | "kill worker" | "kill database";

/** A part of the run with gateways of its own. */
export interface Phase {
  readonly name: string;
  readonly requests: number;
  readonly gateways: number;
  readonly workers: number;
  readonly events: readonly PhaseEvent[];
  /**
   * The program is the reference edition, which has no Anthropic format, Messages API, recovery,
   * budgets, seals, receipts and audit. Absent: it is the whole program.
   */
  readonly isReference?: boolean;
  /** The addresses of shared servers. Absent: records are in files, and limits in memory. */
  readonly postgres?: string | undefined;
  readonly redis?: string | undefined;
}

/** The phases of a run. If there are shared servers, the last phase has two gateways on them. */
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

/** The daily budget of the account CAPPED in a phase, which is less than it would spend. */
export const cappedBudgetOf = ({ requests }: Phase): string => (requests * 0.00007).toFixed(6);

/** The content of gateway.json. `table`: the index in TABLES. */
export function configOf(phase: Phase, dataDir: string, provider: string, table: number): object {
  const isKnown = (name: string): boolean => !phase.isReference || isInReference(name);
  const lab = { provider: "lab", prefill: "plain" };
  const models = MODELS.filter(isKnown).map((name) => {
    const from = name === "claude" ? { provider: "claude", prefill: "none" } : lab;
    return [name, { ...from, ...TABLES[table]![name] }];
  });
  /** A setting that the reference edition does not know. JSON leaves undefined members out. */
  const beyond = <T>(setting: T) => (phase.isReference ? undefined : setting);
  return {
    server: { port: 0, drain_ms: 5_000, workers: beyond(phase.workers) },
    admin: beyond({ port: 0 }),
    apis: beyond(["messages", "responses"]),
    data_dir: dataDir,
    providers: {
      lab: { dialect: "openai", base_url: provider },
      claude: beyond({ dialect: "anthropic", base_url: provider }),
    },
    models: Object.fromEntries(models),
    aliases: Object.fromEntries(Object.entries(ALIASES).filter(([name]) => isKnown(name))),
    accounts: beyond({
      acme: { budget: { amount: "90000000", period: "month" } },
      beta: { budget: { amount: "123456789.000000000001", period: "total" } },
      limited: { rpm: 240 },
      [CAPPED]: { budget: { amount: cappedBudgetOf(phase), period: "day" } },
    }),
    keys: KEYS.map(({ account, key, budget }) => ({ account, key, budget: beyond(budget) })),
    // With `on_error: "local"` two gateways could overspend a budget while the store is down.
    limits: { rpm: null, store: phase.redis, on_error: phase.redis && "refuse" },
    spend: { segment_bytes: SEGMENT_BYTES },
    usage: { sync_ms: 50, store: phase.postgres },
    seals: beyond({ enabled: true }),
    timeouts: { leave_ms: LEAVE_MS },
    retry: { max_retries: 1, backoff_ms: 2 },
    breaker: beyond({ failures: 1_000_000_000 }),
  };
}
