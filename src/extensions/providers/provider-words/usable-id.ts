// The ids of tool calls.
import { randomHex } from "../../../core/ids.ts";
import type { ToolCallPart } from "../../../core/openai/parts.ts";
import type { Message } from "../../../core/openai/request.ts";
import { namelessCall } from "../../../core/providers/decoding.ts";
import { asString } from "../../../core/schema/untrusted-json.ts";

/**
 * The part that begins the call with this index. Throws a ProviderError if the provider names no
 * tool. A call without an id gets one.
 */
export function startedCall(call: number, statedName: unknown, statedId?: unknown): ToolCallPart {
  const name = asString(statedName);
  if (!name) throw namelessCall();
  return { type: "tool_call", call, id: asString(statedId) || `call_${randomHex(12)}`, name };
}

/**
 * Whether every provider accepts a call with this id in a later turn. Some refuse other characters,
 * or longer ids. A shorter id may be repeated for another call: some providers count from 0 in each
 * reply.
 */
export const isUsableId = (id: string): boolean => /^[\w-]{9,64}$/.test(id);

const WRAPPED = /^toolu_[\w-]{4}_([\w-]+)$/;
const encoded = (id: string): string => Buffer.from(id).toString("base64url");

/** An id for a client that wants usable ones, in which statedId() finds the provider's own. */
export function usableId(id: string): string {
  // 24 bits: of 100 conversations with a thousand calls of one id each, 97 have no repetition.
  const distinct = Buffer.from(randomHex(3), "hex").toString("base64url");
  const wrapped = `toolu_${distinct}_${encoded(id)}`;
  return isUsableId(wrapped) && id !== "" ? wrapped : `toolu_${randomHex(12)}`;
}

/** The provider's own id of a call, which usableId() may have wrapped in this one. */
export function statedId(id: string): string {
  const [, wrapped = ""] = isUsableId(id) ? (WRAPPED.exec(id) ?? []) : [];
  const stated = Buffer.from(wrapped, "base64url").toString();
  return /^[\x21-\x7e]+$/.test(stated) && encoded(stated) === wrapped ? stated : id;
}

/** The ids of the calls in a message. */
export const callIdsIn = (message: Message): readonly string[] =>
  message.role === "assistant" ? message.tool_calls.map(({ id }) => id) : [];

/** Restores the provider's own ids of calls, except for an id that several calls share. */
export function withStatedIds(messages: readonly Message[]): readonly Message[] {
  const ids = messages.flatMap(callIdsIn);
  if (ids.length === 0) return messages;
  const stated = new Map(ids.map((id) => [id, statedId(id)]));
  const counts = new Map<string, number>();
  for (const original of stated.values()) counts.set(original, (counts.get(original) ?? 0) + 1);
  const restored = (id: string): string => {
    const original = stated.get(id) ?? id;
    return counts.get(original) === 1 ? original : id;
  };
  const isAsStated = ids.every((id) => restored(id) === id);
  return isAsStated ? messages : withCallIds(messages, restored);
}

/** The messages with other ids of calls, in the calls and their results. */
export const withCallIds = (
  messages: readonly Message[],
  idOf: (id: string) => string,
): readonly Message[] =>
  messages.map((message) => {
    if (message.role === "tool") return { ...message, tool_call_id: idOf(message.tool_call_id) };
    if (message.role !== "assistant" || message.tool_calls.length === 0) return message;
    const calls = message.tool_calls.map((call) => ({ ...call, id: idOf(call.id) }));
    return { ...message, tool_calls: calls };
  });
