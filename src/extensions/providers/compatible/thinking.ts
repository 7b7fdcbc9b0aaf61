// Ways to switch thinking on and off that OpenAI's format does not document. wire.md
// "OpenAI-compatible providers".
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Target } from "../../../core/providers/dialect.ts";
import { effortOf } from "../../../core/providers/parameters.ts";

/** The fields that switch thinking on and off, by the value of the trait `thinking`. */
const SWITCHES = new Map([
  ["reasoning", { on: { reasoning: { enabled: true } }, off: { reasoning: { enabled: false } } }],
  ["enable_thinking", { on: { enable_thinking: true }, off: { enable_thinking: false } }],
  ["chat_template_kwargs", { on: templateFields(true), off: templateFields(false) }],
  ["always", { on: {}, off: {} }],
]);

/** All values of `thinking`, in the order in which messages list them. */
export const THINKING_SWITCHES = ["thinking", "reasoning_effort", ...SWITCHES.keys(), "none"];

/** Chat templates know one of two names. The other one has no effect. */
function templateFields(enabled: boolean): object {
  return { chat_template_kwargs: { enable_thinking: enabled, thinking: enabled } };
}

/** The fields that switch thinking on or off, where the switch is no documented one. */
export function thinkingFields(
  { wantsThinking, effort }: ChatRequest,
  { reasoning, traits }: Target,
): object {
  const fields = reasoning && SWITCHES.get(traits.thinking);
  if (!fields) return {};
  if (!wantsThinking) return traits.thinking_off ? fields.off : {};
  const known = effortOf(effort, traits);
  if (known === undefined) return fields.on;
  if (traits.thinking === "reasoning") return { reasoning: { effort: known } };
  return { ...fields.on, reasoning_effort: known };
}
