// A configuration with which this gateway is ready for the whole suite: the demo models for the
// other levels, and the suite's own provider behind a model for each thing that goes wrong in a
// check of the level `robust`.

import { PROVIDER_KEY, type Provider } from "./provider.ts";

/** What a check needs of the gateway's configuration. */
export interface Lab {
  readonly id: string;
  /**
   * What the provider does, a model for each. If there are several, an alias has them in this
   * order.
   */
  readonly behaviours: readonly string[];
  /**
   * Where the first of them is: at a provider with short deadlines, at one with connections of its
   * own, or where nobody is (`impatient`, `lone`, `gone`).
   */
  readonly at?: string | undefined;
}

/** A key of its own account, and how often it may ask in a minute. */
export const BURST = { key: "sk-conformance-burst", rpm: 60 };
export const LIMITED = { key: "sk-conformance-limited", rpm: 3 };
/** A key of its own account, and how many requests that may have in hand. */
export const CROWDED = { key: "sk-conformance-crowded", maxInFlight: 2 };
/** More failures in a row than those with which most checks are content. */
const BREAKER = { failures: 5, cooldown_ms: 400 };

/** A model that answers, by which it is seen that a gateway has this configuration. */
export const READY: Lab = { id: "ready", behaviours: ["good"] };

/** Its models, in the order of their behaviours. */
export const modelsOf = ({ id, behaviours }: Lab): string[] =>
  behaviours.map((behaviour) => `${behaviour}:${id}`);
export const aliasOf = ({ id }: Lab): string => `auto/robust.${id}`;

export function readyConfig(
  { url, loneUrl, goneUrl }: Pick<Provider, "url" | "loneUrl" | "goneUrl">,
  labs: readonly Lab[],
  key: string,
) {
  const lab = { dialect: "openai", base_url: url, api_key: PROVIDER_KEY, thinking: "thinking" };
  const demo = {
    provider: "demo",
    supports: ["tools", "json_object", "json_schema", "logprobs"],
    context_tokens: 32768,
    max_output_tokens: 4096,
  };
  const models = [READY, ...labs].flatMap((each) =>
    modelsOf(each).map((name, index) => {
      const provider = (index === 0 && each.at) || "lab";
      return [name, { provider, reasoning: name.startsWith("reasoning:") }] as const;
    }),
  );
  return {
    apis: ["messages", "responses"],
    providers: {
      demo: { dialect: "demo", pace_ms: 0 },
      lab,
      impatient: { ...lab, timeouts: { first_token_ms: 400, idle_ms: 400 } },
      lone: { ...lab, base_url: loneUrl, retry: { max_retries: 0 } },
      gone: { ...lab, base_url: goneUrl },
    },
    models: {
      "demo-chat": { ...demo, quality_score: 50, price: { input_cache_miss: 0.1, output: 0.2 } },
      "demo-reasoner": {
        ...demo,
        quality_score: 40,
        reasoning: true,
        reasoning_score: 50,
        price: { input_cache_miss: 0.5, output: 1 },
      },
      ...Object.fromEntries(models),
    },
    aliases: {
      "auto/reasoning": { policy: "reasoning" },
      "auto/chat": { policy: "value" },
      ...Object.fromEntries(labs.map((each) => [aliasOf(each), { models: modelsOf(each) }])),
    },
    accounts: { crowded: { max_in_flight: CROWDED.maxInFlight } },
    keys: [
      { account: "demo", key },
      { account: "burst", key: BURST.key, rpm: BURST.rpm },
      { account: "limited", key: LIMITED.key, rpm: LIMITED.rpm },
      { account: "crowded", key: CROWDED.key },
    ],
    limits: { rpm: null },
    timeouts: { connect_ms: 2_000, first_token_ms: 8_000, idle_ms: 8_000, total_ms: 30_000 },
    retry: { max_retries: 1, backoff_ms: 10, max_wait_ms: 1_000 },
    breaker: BREAKER,
  };
}
