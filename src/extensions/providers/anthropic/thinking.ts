// Switches thinking for Anthropic's models, and computes what depends on it in a request.
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Target } from "../../../core/providers/dialect.ts";
import { effortOf } from "../../../core/providers/parameters.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { asCount, asObject } from "../../../core/schema/untrusted-json.ts";
import type { Call, SignatureStore, Turn } from "../turns/index.ts";
import { thoughtsBefore } from "./blocks.ts";

/** The smallest budget for thinking, in tokens. */
const MIN_BUDGET = 1_024;
/** The share of a reply's tokens that is for thinking, by effort. */
const SHARES: { readonly [effort: string]: number } = {
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.9,
  max: 0.95,
};
const DEFAULT_SHARE = 0.5;

/** The model whose least thinking is `between_tools`. It refuses `disabled`. */
const LEAST_BETWEEN_TOOLS = /sonnet-5-5(?!\d)/;

/** Models that check, for each thought that comes back, whether anything before it has changed. */
const CHECKING = /(fable|mythos)-5-[1-9](?!\d)|(opus|sonnet|haiku)-5-5(?!\d)/;
/** Clients of chat completions never see signed thoughts, and may change what is before them. */
const DROPS_CHANGED = {
  type: "adaptive",
  block_binding: { prefix_mismatch_behavior: "drop_block" },
};

/** Whether the model must be told what to do with changed thoughts, and its service knows how. */
const takesBinding = ({ reasoning, upstreamModel, traits }: Target): boolean =>
  reasoning &&
  traits.thinking !== "none" &&
  (traits.takes.includes("block_binding") || !traits.omit.includes("vendor_betas")) &&
  CHECKING.test(upstreamModel);

/** The headers without which the API refuses this body's binding, besides the operator's betas. */
export function bindingHeaders(
  body: object,
  { traits }: Target,
): { headers?: Record<string, string> } {
  const { block_binding } = asObject(asObject(body)["thinking"]);
  if (!block_binding) return {};
  const { "anthropic-beta": betas } = traits.headers;
  const beta = "thinking-binding-controls-2026-08-01";
  return { headers: { "anthropic-beta": betas ? `${betas},${beta}` : beta } };
}

interface ThinkingPlan {
  /** Whether the model thinks, asked or not. */
  readonly thinks: boolean;
  /** The field `thinking`. Absent: it is not sent. */
  readonly field?: object | undefined;
  /** Absent: it is not sent. */
  readonly effort?: string | undefined;
  /** The most tokens of the reply, thinking included. */
  readonly maxTokens: number;
}

/** `mayThink`: see `hasNeededThoughts`. */
export function thinkingPlan(chat: ChatRequest, target: Target, mayThink: boolean): ThinkingPlan {
  const { reasoning, traits } = target;
  const { max_output_tokens = Infinity, default_output_tokens = MIN_BUDGET } = traits;
  const stated = Math.min(chat.maxTokens ?? Infinity, max_output_tokens);
  // The API demands a limit.
  const limit = stated === Infinity ? default_output_tokens : stated;
  if (!reasoning || traits.thinking === "none") return { thinks: false, maxTokens: limit };
  const binding = takesBinding(target) ? DROPS_CHANGED : undefined;
  if (!chat.wantsThinking || !mayThink) {
    if (!traits.thinking_off) return { thinks: true, field: binding, maxTokens: limit };
    const thinks = LEAST_BETWEEN_TOOLS.test(target.upstreamModel);
    return { thinks, field: { type: thinks ? "between_tools" : "disabled" }, maxTokens: limit };
  }
  const effort = effortOf(chat.effort, traits);
  if (traits.thinking !== "budget") {
    const field = { ...binding, type: "adaptive", display: "summarized" };
    return { thinks: true, field, effort, maxTokens: limit };
  }
  const share = SHARES[effort ?? ""] ?? DEFAULT_SHARE;
  const budget_tokens = Math.max(MIN_BUDGET, Math.floor(limit * share));
  return {
    thinks: true,
    field: { type: "enabled", budget_tokens },
    // The smallest budget is added to a limit that it would use up, so that the answer keeps its
    // own.
    maxTokens: limit <= MIN_BUDGET ? limit + MIN_BUDGET : limit,
  };
}

/**
 * The field `thinking` of a native request whose `max_tokens` was lowered from `stated` to `limit`:
 * a budget must be less than the limit. A budget that was not less than `stated` stays, and the
 * provider refuses it.
 */
export function fittingThinking(field: unknown, stated: number, limit: number): unknown {
  const { type, budget_tokens } = asObject(field);
  const budget = asCount(budget_tokens);
  if (type !== "enabled" || budget === undefined) return field;
  if (budget >= stated || budget < limit) return field;
  return limit > MIN_BUDGET
    ? { ...asObject(field), budget_tokens: limit - 1 }
    : { type: "disabled" };
}

/**
 * Whether the model can think in this request. All calls since the user's last message are one turn
 * of the model, in which thinking must not be switched. So the first of them decides: it must be
 * sent with the thoughts that led to it. Later calls need none, because a model need not think
 * again before each. A model that decides itself whether to think may also have begun without a
 * thought. A model that thinks does not continue a prefill.
 */
export function hasNeededThoughts(
  turns: readonly Turn[],
  signatures: SignatureStore,
  { thinking }: Traits,
): boolean {
  if (turns.at(-1)?.role === "assistant") return false;
  const call = firstCallOfOpenTurn(turns);
  if (!call) return true;
  const thoughts = thoughtsBefore(call, signatures);
  return thinking === "budget" ? (thoughts?.length ?? 0) > 0 : thoughts !== undefined;
}

/**
 * The first call of the model's unfinished turn. User text next to tool results does not end the
 * turn. Undefined: no call is being answered.
 */
function firstCallOfOpenTurn(turns: readonly Turn[]): Call | undefined {
  let first: Call | undefined;
  for (let place = turns.length - 1; turns[place]?.items[0]?.type === "result"; place -= 2)
    first = turns[place - 1]?.items.find((item) => item.type === "call");
  return first;
}
