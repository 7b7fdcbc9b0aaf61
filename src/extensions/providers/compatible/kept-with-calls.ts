// What a provider wants back with its tool calls, unchanged: the details of the reasoning before
// them (OpenRouter, MiniMax), and the signature of each (Google). Clients do not see it, so it is
// kept here, by the ids of the calls.
import type { Part } from "../../../core/openai/parts.ts";
import type { Message } from "../../../core/openai/request.ts";
import { choiceIn } from "../../../core/providers/openai/decoder.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import { asArray, asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import type { SignatureStore } from "../turns/index.ts";

type Json = Record<string, unknown>;

/** The most characters of the details of one reply: a provider may think without end. */
const MAX_CHARS = 4 * 1024 * 1024;
/** The fields of a detail that come in pieces. */
const GROWING = ["text", "summary", "data"];

/** The same dialect, which keeps what the provider wants back, and sends it with the calls. */
export const keepingDetails = (dialect: Dialect, signatures: SignatureStore): Dialect => ({
  ...dialect,
  isReply: (json) => dialect.isReply(json),
  request(chat, target) {
    const request = dialect.request(chat, target);
    if (!chat.messages.some(hasCalls)) return request;
    const body = asObject(request.body);
    const messages = asArray(body["messages"]).map((message) => withKept(message, signatures));
    return { ...request, body: { ...body, messages } };
  },
  decoder(target, native) {
    const decoder = dialect.decoder(target, native);
    const keeper = createKeeper(signatures);
    const keep = (event: unknown, parts: Part[]): Part[] => {
      keeper.read(event, parts);
      return parts;
    };
    return {
      ...decoder,
      push: (event) => keep(event, decoder.push(event)),
      done: () => keep(undefined, decoder.done?.() ?? []),
    };
  },
});

const hasCalls = (message: Message): boolean =>
  message.role === "assistant" && message.tool_calls.length > 0;

/** A message with what was kept with its calls. */
function withKept(message: unknown, signatures: SignatureStore): unknown {
  const { tool_calls } = asObject(message);
  if (!Array.isArray(tool_calls)) return message;
  const kept = tool_calls.map((call) => {
    const text = signatures.get(asString(asObject(call)["id"]) ?? "");
    return asObject(text === undefined ? undefined : parseJson(text));
  });
  const details = kept.find(({ reasoning_details }) => reasoning_details)?.["reasoning_details"];
  const calls = tool_calls.map((call, at) => {
    const extra = kept[at]!["extra_content"];
    return extra ? { ...asObject(call), extra_content: extra } : call;
  });
  return {
    ...asObject(message),
    tool_calls: calls,
    ...(details !== undefined && { reasoning_details: details }),
  };
}

/** Reads one reply. What it has is kept once the reply is finished. */
function createKeeper(signatures: SignatureStore) {
  /** By the id of a call: its `extra_content`. */
  const extras = new Map<string, unknown>();
  const details: Json[] = [];
  let chars = 0;
  let firstId: string | undefined;

  /** Pieces of one detail have its index. */
  function addDetail(detail: Json): void {
    chars += JSON.stringify(detail).length;
    const { type, index } = detail;
    const last = details.at(-1);
    if (!last || index === undefined || index !== last["index"] || type !== last["type"])
      details.push({ ...detail });
    else
      for (const [name, value] of Object.entries(detail))
        last[name] = grown(name, last[name], value);
  }

  function addExtra({ id, extra_content }: Json): void {
    if (typeof id === "string" && extra_content) extras.set(id, extra_content);
  }

  function keep(): void {
    const known = chars <= MAX_CHARS && details.length > 0 ? details : undefined;
    if (known && firstId !== undefined && !extras.has(firstId)) extras.set(firstId, undefined);
    for (const [id, extra_content] of extras) {
      const reasoning_details = id === firstId ? known : undefined;
      signatures.set(id, JSON.stringify({ extra_content, reasoning_details }));
    }
    extras.clear();
    firstId = undefined;
  }

  return {
    read(event: unknown, parts: readonly Part[]): void {
      const { delta, message = delta } = choiceIn(event);
      const { reasoning_details, tool_calls } = asObject(message);
      // Most events have neither.
      if (reasoning_details && chars <= MAX_CHARS)
        asArray(reasoning_details).map(asObject).forEach(addDetail);
      if (tool_calls) asArray(tool_calls).map(asObject).forEach(addExtra);
      for (const part of parts)
        if (part.type === "tool_call") firstId ??= part.id;
        else if (part.type === "finish") keep();
    },
  };
}

/** What is stated null, or not again, stays as it was stated before. */
function grown(name: string, before: unknown, more: unknown): unknown {
  if (GROWING.includes(name) && typeof before === "string" && typeof more === "string")
    return before + more;
  return more ?? before;
}
