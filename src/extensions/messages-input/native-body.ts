// The client's request for a provider of the same format: as it is, but for the thoughts of models
// that other providers served, which this one would refuse.
import { asArray, asObject } from "../../core/schema/untrusted-json.ts";
import { OWN_SIGNATURE } from "./content.ts";

type Body = Readonly<Record<string, unknown>>;

const isOwnThought = (block: unknown): boolean =>
  asObject(block)["type"] === "thinking" && asObject(block)["signature"] === OWN_SIGNATURE;

/** The body itself where it has no such thoughts. */
export function nativeBody(body: Body): Body {
  const messages = asArray(body["messages"]);
  const hasOwn = messages.some((message) =>
    asArray(asObject(message)["content"]).some(isOwnThought),
  );
  const passed = hasOwn ? { ...body, messages: messages.map(withoutOwnThoughts) } : body;
  const thinks = asObject(body["thinking"])["type"] === "enabled";
  // The provider demands the thoughts that led to the calls that are answered now.
  const mustNotThink = thinks && lacksThoughts(asArray(passed["messages"]));
  return mustNotThink ? { ...passed, thinking: { type: "disabled" } } : passed;
}

function withoutOwnThoughts(message: unknown): unknown {
  const { content } = asObject(message);
  if (!asArray(content).some(isOwnThought)) return message;
  const kept = asArray(content).filter((block) => !isOwnThought(block));
  // A message must not be empty.
  const filled = kept.length > 0 ? kept : [{ type: "text", text: "(no answer)" }];
  return { ...asObject(message), content: filled };
}

/** Whether calls of another provider's model are being answered, which came without thoughts. */
function lacksThoughts(messages: readonly unknown[]): boolean {
  const last = asArray(asObject(messages.at(-1))["content"]);
  if (!last.some((block) => asObject(block)["type"] === "tool_result")) return false;
  const turn = messages.findLast((message) => asObject(message)["role"] === "assistant");
  const types = asArray(asObject(turn)["content"]).map((block) => String(asObject(block)["type"]));
  return types.includes("tool_use") && !types.some((type) => type.includes("thinking"));
}
