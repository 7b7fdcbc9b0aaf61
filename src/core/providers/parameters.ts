// Adapts a request's parameters to a provider, by its traits.
import { sha256 } from "../hash.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { SamplingParameter, Traits } from "./traits.ts";

const DEPTHS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/**
 * The known depth of thinking nearest to `effort`; of two at the same distance, the deeper.
 * Undefined: the client asked for none, or none is known.
 */
export function effortOf(effort: string | undefined, { efforts }: Traits): string | undefined {
  if (effort === undefined) return undefined;
  const depth = (name: string) => DEPTHS.indexOf(name);
  const distance = (name: string) => Math.abs(depth(name) - depth(effort));
  return efforts.toSorted((a, b) => distance(a) - distance(b) || depth(b) - depth(a))[0];
}

/**
 * The contract's default of both is 1 (contract.md "Request fields"), whatever the provider's own
 * default is.
 */
function samplingOf(chat: ChatRequest, traits: Traits) {
  const stated = (name: SamplingParameter) => (traits.omit.includes(name) ? undefined : chat[name]);
  const orDefault = (name: SamplingParameter) =>
    chat[name] ?? (traits.defaults_to_one.includes(name) ? undefined : 1);
  const onlyTopP = stated("top_p") !== undefined && stated("temperature") === undefined;
  if (traits.temperature_or_top_p && onlyTopP)
    return { temperature: undefined, top_p: stated("top_p") };
  const temperature = orDefault("temperature");
  return {
    temperature: temperature && Math.min(temperature, traits.max_temperature),
    top_p: traits.temperature_or_top_p ? undefined : orDefault("top_p"),
  };
}

/** Providers ask for a stable pseudonym of the end user. The real name stays here. */
export const pseudonymOf = (user: string): string => sha256(user).slice(0, 32);

/** The parameters within the provider's bounds. Those that it does not accept are undefined. */
export function parametersOf(chat: ChatRequest, traits: Traits) {
  const { frequency_penalty, presence_penalty, stop, seed, maxTokens, user } = chat;
  const { temperature, top_p } = samplingOf(chat, traits);
  const parameters = {
    temperature,
    top_p: top_p === undefined ? undefined : Math.max(top_p, traits.min_top_p),
    frequency_penalty,
    presence_penalty,
    stop,
    seed,
    max_tokens: maxTokens && Math.min(maxTokens, traits.max_output_tokens ?? Infinity),
    parallel_tool_calls: chat.tools && chat.parallel_tool_calls,
    logprobs: chat.logprobs || undefined,
    // For 0, the default, llama.cpp would state no log probabilities at all.
    top_logprobs: (chat.logprobs && chat.top_logprobs) || undefined,
    user: user && pseudonymOf(user),
  };
  for (const name of traits.omit) (parameters as Record<string, unknown>)[name] = undefined;
  return parameters;
}
