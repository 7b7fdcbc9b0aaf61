// A library for dialects: keeps details that a provider wants back with its tool calls. They are
// the details of the reasoning before the calls (OpenRouter, MiniMax), and each call's signature
// (Google). Clients do not get them, so this library keeps them by the ids of the calls.
import type { Part } from "../../../core/openai/parts.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import { asArray, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { callIdsIn, withStatedIds } from "../provider-words/index.ts";
import { forgetting, type SignatureStore } from "../turns/index.ts";

type Json = Record<string, unknown>;

/** The most characters that are kept of one reply, and that one request gets back. */
const MAX_CHARS = 4 * 1024 * 1024;

/** The words of providers, which OpenRouter repeats, for details that they cannot open. */
const UNREADABLE = /(thought|invalid) .?signature|encrypted.content|reasoning.item/i;

/** Wraps a dialect: keeps the details of the provider's replies, and sends them with the calls. */
export const keepingDetails = (dialect: Dialect, signatures: SignatureStore): Dialect =>
  forgetting(signatures, UNREADABLE, (storeFor) => ({
    ...dialect,
    request(chat, target) {
      const request = dialect.request(chat, target);
      // The dialect may have replaced the provider's ids, by which the details are kept.
      const ids = withStatedIds(chat.messages).flatMap(callIdsIn);
      if (ids.length === 0) return request;
      const body = asObject(request.body);
      const find = createFinder(storeFor(target.upstreamModel));
      // If not all details fit, the latest are sent.
      const latestFirst = asArray(body["messages"]).toReversed();
      const kept = latestFirst.map((message) => withKept(asObject(message), ids, find));
      return { ...request, body: { ...body, messages: kept.reverse() } };
    },
    decoder(target, native) {
      const decoder = dialect.decoder(target, native);
      let keeper: ReturnType<typeof createKeeper> | undefined;
      const keep = (event: unknown, parts: Part[]): Part[] => {
        if (!keeper && asArray(asObject(event)["choices"]).some(hasDetails))
          keeper = createKeeper(storeFor(target.upstreamModel));
        keeper?.read(event, parts);
        return parts;
      };
      return {
        ...decoder,
        push: (event) => keep(event, decoder.push(event)),
        done: () => keep(undefined, decoder.done?.() ?? []),
      };
    },
  }));

/** Whether a choice may have details. Most choices have none. */
function hasDetails(choice: unknown): boolean {
  const { delta, message = delta } = asObject(choice);
  const { reasoning_details, tool_calls } = asObject(message);
  return Boolean(reasoning_details ?? tool_calls);
}

/** Finds the details of a call, once per request even if the client repeats the call. */
function createFinder(signatures: SignatureStore) {
  const found = new Set<string>();
  let chars = 0;
  return (id: string): Json => {
    const text = found.has(id) ? undefined : signatures.get(id);
    found.add(id);
    chars += text?.length ?? 0;
    return text === undefined || chars > MAX_CHARS ? {} : asObject(parseJson(text));
  };
}

/** Adds the kept details of its calls, whose ids are the last of `ids`, to a message. */
function withKept(message: Json, ids: string[], find: (id: string) => Json): Json {
  const { tool_calls } = message;
  if (!Array.isArray(tool_calls) || tool_calls.length === 0) return message;
  const kept = ids.splice(-tool_calls.length).map(find);
  const reasoning_details = kept.map((details) => details["reasoning_details"]).find(Boolean);
  const calls = tool_calls.map((call, at) => {
    const { extra_content } = kept[at]!;
    return extra_content ? { ...asObject(call), extra_content } : call;
  });
  return { ...message, tool_calls: calls, ...(reasoning_details ? { reasoning_details } : {}) };
}

/** Reads one reply. Keeps its details once the reply is finished. */
function createKeeper(signatures: SignatureStore) {
  /** By the id of a call: its `extra_content`. */
  const extras = new Map<string, unknown>();
  const details: Json[] = [];
  let chars = 0;
  /** The ids of the first and of the latest call. */
  let firstId: string | undefined;
  let latestId: string | undefined;
  let hasDeltas = false;

  function addDetails(pieces: readonly Json[], isDelta: boolean): void {
    for (const [at, piece] of pieces.entries()) {
      chars += JSON.stringify(piece).length;
      const last = details.at(-1);
      // Only the first piece of an event continues the text of the event before.
      if (isDelta && at === 0 && last && continues(last, piece)) extend(last, piece);
      else details.push({ ...piece });
    }
  }

  /** `started`: the ids of the calls that these fragments began. */
  function addExtras(calls: readonly Json[], started: readonly string[]): void {
    for (const [at, { extra_content }] of calls.entries()) {
      const id = started.length === calls.length ? started[at] : (started.at(-1) ?? latestId);
      if (id === undefined || !extra_content || chars > MAX_CHARS) continue;
      chars += JSON.stringify(extra_content).length;
      extras.set(id, extra_content);
    }
  }

  function readMessage(message: Json, isDelta: boolean, parts: readonly Part[]): void {
    const { reasoning_details, tool_calls } = message;
    if (reasoning_details && chars <= MAX_CHARS)
      addDetails(asArray(reasoning_details).map(asObject), isDelta);
    if (!tool_calls) return;
    const started = parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : []));
    addExtras(asArray(tool_calls).map(asObject), started);
    firstId ??= started[0];
    latestId = started.at(-1) ?? latestId;
  }

  function keep(): void {
    const keptDetails = chars <= MAX_CHARS && details.length > 0 ? details : undefined;
    if (keptDetails && firstId !== undefined && !extras.has(firstId))
      extras.set(firstId, undefined);
    for (const [id, extra_content] of extras) {
      const reasoning_details = id === firstId ? keptDetails : undefined;
      signatures.set(id, JSON.stringify({ extra_content, reasoning_details }));
    }
    extras.clear();
    firstId = undefined;
  }

  return {
    read(event: unknown, parts: readonly Part[]): void {
      let isWhole = false;
      for (const choice of asArray(asObject(event)["choices"])) {
        const { delta, message } = asObject(choice);
        hasDeltas ||= Boolean(delta);
        isWhole ||= !delta && Boolean(message);
        // A whole message after deltas repeats them.
        if (delta || !hasDeltas) readMessage(asObject(delta ?? message), Boolean(delta), parts);
      }
      if (isWhole || parts.some(({ type }) => type === "finish")) keep();
    },
  };
}

/** Whether a piece continues the same text. Encrypted details arrive whole. */
function continues({ type, index, id }: Json, piece: Json): boolean {
  const isText = type === "reasoning.text" || type === "reasoning.summary";
  const isSameId = id === piece["id"] || !id || !piece["id"];
  return isText && type === piece["type"] && index === piece["index"] && isSameId;
}

/** Appends texts, and replaces other fields unless the new value is null. */
function extend(detail: Json, piece: Json): void {
  for (const [name, more] of Object.entries(piece)) {
    const before = detail[name];
    const isText = name === "text" || name === "summary";
    if (isText && typeof before === "string" && typeof more === "string")
      detail[name] = before + more;
    else detail[name] = more ?? before;
  }
}
