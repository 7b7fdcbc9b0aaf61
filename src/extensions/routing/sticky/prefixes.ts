// Recognizes a conversation by the beginning of its prompt, as the providers' caches do. So the
// client need not send a conversation id.
import { createHash } from "node:crypto";
import { textOf, type ChatRequest, type Message } from "../../../core/openai/request.ts";

/** Some 1,024 tokens of English text. */
const MAX_BYTES = 4_096;
/** The most messages of a prefix. Many tiny messages reach this before MAX_BYTES. */
const MAX_MESSAGES = 32;

/** The text of a message that is compared: its role, its text and its tool calls. */
function textIn(message: Message): string {
  const calls = message.role === "assistant" ? message.tool_calls : [];
  const called = calls.map(({ function: { name, arguments: text } }) => `${name}(${text})`);
  return `${message.role}:${textOf(message.content ?? "")}${called.join("")}\n`;
}

/**
 * The hashes of the prefixes of a request, longest first; at least one. Each message ends a
 * prefix, so a later turn of a growing conversation has the same prefixes and longer ones.
 */
export function prefixHashes({ model, tools, messages }: ChatRequest, account: string): string[] {
  const hash = createHash("sha256");
  let left = MAX_BYTES;
  function add(text: string): void {
    // Each character has at least one byte, so no more than `left` characters are needed.
    const bytes = Buffer.from(text.slice(0, left)).subarray(0, left);
    hash.update(bytes);
    left -= bytes.length;
  }
  hash.update(JSON.stringify([account, model]));
  if (tools) add(JSON.stringify(tools));
  const prefixes: string[] = [];
  for (const message of messages.slice(0, MAX_MESSAGES)) {
    add(textIn(message));
    prefixes.unshift(hash.copy().digest("base64"));
    if (left === 0) break;
  }
  return prefixes;
}
