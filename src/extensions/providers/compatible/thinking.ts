// How thinking is switched on and off: each server has its own way. wire.md "OpenAI-compatible
// providers".
import type { ThinkingFields } from "../../../core/providers/openai/request.ts";
import { effortOf } from "../../../core/providers/parameters.ts";

/** How thinking is switched: a value of the trait `thinking`. */
interface ThinkingSwitch {
  /** The fields that switch thinking on. */
  readonly on: object;
  /** The fields that switch it off. */
  readonly off: object;
}

/** In the order in which messages list them. "none" (no field is ever sent) is missing. */
export const THINKING_SWITCHES: ReadonlyMap<string, ThinkingSwitch> = new Map([
  ["thinking", { on: { thinking: { type: "enabled" } }, off: { thinking: { type: "disabled" } } }],
  ["reasoning_effort", { on: {}, off: { reasoning_effort: "none" } }],
  ["reasoning", { on: { reasoning: { enabled: true } }, off: { reasoning: { enabled: false } } }],
  ["enable_thinking", { on: { enable_thinking: true }, off: { enable_thinking: false } }],
  ["chat_template_kwargs", { on: templateFields(true), off: templateFields(false) }],
  ["always", { on: {}, off: {} }],
]);

/** Chat templates know one of two names. The other one has no effect. */
function templateFields(enabled: boolean): object {
  return { chat_template_kwargs: { enable_thinking: enabled, thinking: enabled } };
}

/**
 * The fields that switch thinking on or off. Where there is a switch, it is off unless the client
 * asked for thinking: many models think by default (wire.md "Thinking"). `effort`: what the client
 * asked for.
 */
export const thinkingFields: ThinkingFields = (on, effort, traits) => {
  const { thinking } = traits;
  const fields = THINKING_SWITCHES.get(thinking);
  if (!fields) return {};
  if (!on) return traits.thinking_off ? fields.off : {};
  const byDefault = thinking === "reasoning_effort" ? "medium" : undefined;
  const known = effortOf(effort ?? byDefault, traits);
  if (known === undefined) return fields.on;
  if (thinking === "reasoning") return { reasoning: { effort: known } };
  return { ...fields.on, reasoning_effort: known };
};
