// The client's request for a provider of the same format: unchanged, except for thoughts of models
// of other providers, which this provider would refuse.
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";

/** The gateway's signature for thoughts without one. No provider ever made it. */
export const OWN_SIGNATURE = "chat-gateway";

type Body = Readonly<Record<string, unknown>>;

const isOwnThought = (block: unknown): boolean =>
  asObject(block)["type"] === "thinking" && asObject(block)["signature"] === OWN_SIGNATURE;

const blocksOf = (message: unknown): readonly unknown[] => asArray(asObject(message)["content"]);

const hasType = (message: unknown, type: string): boolean =>
  blocksOf(message).some((block) => asObject(block)["type"] === type);

/** Whether a message has thoughts that the provider has signed. */
const hasSignedThoughts = (message: unknown): boolean =>
  hasType(message, "redacted_thinking") ||
  blocksOf(message).some((block) => asObject(block)["type"] === "thinking" && !isOwnThought(block));

export function nativeBody(body: Body): Body {
  const messages = asArray(body["messages"]);
  const passed = { ...body, messages: messages.map(withoutOwnThoughts) };
  const thinks = asObject(body["thinking"])["type"] === "enabled";
  // The provider demands the thoughts before the calls whose results this request carries.
  const mustNotThink = thinks && lacksThoughts(callsInHand(messages));
  return mustNotThink ? { ...passed, thinking: { type: "disabled" } } : passed;
}

function withoutOwnThoughts(message: unknown): unknown {
  const blocks = blocksOf(message);
  if (!blocks.some(isOwnThought)) return message;
  const kept = blocks.filter((block) => !isOwnThought(block));
  // A message must not be empty.
  const filled = kept.length > 0 ? kept : [{ type: "text", text: "(no answer)" }];
  return { ...asObject(message), content: filled };
}

/**
 * The messages with calls in the model's unfinished turn, last to first: all since the user
 * last said something instead of answering calls. To the provider they are one turn of the model.
 */
function callsInHand(messages: readonly unknown[]): readonly unknown[] {
  const calling: unknown[] = [];
  let isAnswered = false; // Whether results lie between a message and the model's next message.
  for (const message of messages.toReversed()) {
    if (asObject(message)["role"] !== "assistant") {
      isAnswered ||= hasType(message, "tool_result");
      continue;
    }
    if (!isAnswered) break;
    isAnswered = false;
    if (hasType(message, "tool_use")) calling.push(message);
  }
  return calling;
}

/**
 * Whether another provider's model began these calls: without thoughts, or with thoughts that this
 * provider does not take. Later calls need none of their own.
 */
function lacksThoughts(calling: readonly unknown[]): boolean {
  const first = calling.at(-1);
  if (first === undefined || hasSignedThoughts(first)) return false;
  const isOwn = calling.some((message) => blocksOf(message).some(isOwnThought));
  return isOwn || !calling.some(hasSignedThoughts);
}
