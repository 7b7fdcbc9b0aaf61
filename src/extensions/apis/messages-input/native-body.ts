// Builds the body of a native request: the client's own, without blocks from other providers'
// replies that a provider of this format would refuse.
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";

/** The gateway's signature for thoughts of other providers, which have none. */
export const GATEWAY_SIGNATURE = "chat-gateway";

/** Begins the signature of a hidden thought. The sealed thought follows. */
const SEALED = `${GATEWAY_SIGNATURE}:`;
export const signatureWith = (sealed: string): string => SEALED + sealed;

/** The sealed thought in a signature. Undefined: it has none. */
export const sealedIn = (signature = ""): string | undefined =>
  signature.startsWith(SEALED) ? signature.slice(SEALED.length) : undefined;

type Body = Readonly<Record<string, unknown>>;

function isUnsigned(block: unknown): boolean {
  const { type, signature } = asObject(block);
  const isOwn = signature === GATEWAY_SIGNATURE || sealedIn(asString(signature)) !== undefined;
  return type === "thinking" && isOwn;
}

/**
 * Models often write a line end before a thought or call. In this format it is a block of its own.
 */
const isBlank = (block: unknown): boolean =>
  asObject(block)["type"] === "text" && asString(asObject(block)["text"])?.trim() === "";

const blocksOf = (message: unknown): readonly unknown[] => asArray(asObject(message)["content"]);

const hasType = (message: unknown, type: string): boolean =>
  blocksOf(message).some((block) => asObject(block)["type"] === type);

/** Whether a message has thoughts that a provider of this format signed. */
const hasSignedThoughts = (message: unknown): boolean =>
  hasType(message, "redacted_thinking") ||
  blocksOf(message).some((block) => asObject(block)["type"] === "thinking" && !isUnsigned(block));

export function nativeBody(body: Body): Body {
  const messages = asArray(body["messages"]);
  const passed = { ...body, messages: messages.map(withoutRefused) };
  const thinks = asObject(body["thinking"])["type"] === "enabled";
  // With thinking enabled, the provider wants the thoughts that led to the calls answered here.
  const mustNotThink = thinks && lacksThoughts(callsOfOpenTurn(messages));
  return mustNotThink ? { ...passed, thinking: { type: "disabled" } } : passed;
}

function withoutRefused(message: unknown, index: number, all: readonly unknown[]): unknown {
  const { role, content } = asObject(message);
  if (role !== "assistant" || asString(content)?.trim()) return message;
  // Other providers' replies may be empty. This format allows that only in the last message.
  const isLast = index === all.length - 1;
  const blocks = blocksOf(message);
  const kept = blocks.filter((block) => !isUnsigned(block) && (isLast || !isBlank(block)));
  if (kept.length === blocks.length && (kept.length > 0 || isLast)) return message;
  const filled = kept.length > 0 ? kept : [{ type: "text", text: "(no answer)" }];
  return { ...asObject(message), content: filled };
}

/**
 * The messages with calls in the model's unfinished turn, last to first. The turn begins after the
 * last user message that has no tool results.
 */
function callsOfOpenTurn(messages: readonly unknown[]): readonly unknown[] {
  const calling: unknown[] = [];
  let isAnswered = false; // whether tool results follow the message
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
 * Whether another provider's model made the first of these calls, so that its thoughts are unsigned
 * or missing. Later calls need none of their own.
 */
function lacksThoughts(calling: readonly unknown[]): boolean {
  const first = calling.at(-1);
  if (first === undefined || hasSignedThoughts(first)) return false;
  const hasUnsigned = calling.some((message) => blocksOf(message).some(isUnsigned));
  return hasUnsigned || !calling.some(hasSignedThoughts);
}
