// What a provider of the same format says, as it passes to the client: its events, or its message
// as a whole. Where the client wants the other of the two, one is made of the other.
import {
  asArray,
  asCount,
  asObject,
  asString,
  parseJson,
} from "../../../core/schema/untrusted-json.ts";
import type { ReplyEvent } from "./events.ts";

type Json = Readonly<Record<string, unknown>>;

export interface Passage {
  /** Takes a provider's events, and returns those that may leave now. */
  take(events: readonly ReplyEvent[]): readonly ReplyEvent[];
  /** The end of the reply, also where the provider did not send all of it. */
  rest(): readonly ReplyEvent[];
  /** Ends the block that is open. The events that end the reply are forgotten. */
  interrupt(): readonly ReplyEvent[];
  /** The index of the block that would follow. */
  nextIndex(): number;
}

/** The events after which a client has its reply. They leave when the request is settled. */
const LAST = ["message_delta", "message_stop"];

/** Passes a provider's events, but for the last ones, which it keeps. */
export function createPassage(): Passage {
  let kept: ReplyEvent[] = [];
  let openIndex: number | undefined;
  let next = 0;

  function follow({ type, index }: ReplyEvent): void {
    if (type === "content_block_stop") openIndex = undefined;
    if (type !== "content_block_start") return;
    openIndex = asCount(index) ?? next;
    next = openIndex + 1;
  }

  return {
    take(events) {
      const leaving: ReplyEvent[] = [];
      for (const event of events) {
        follow(event);
        // What comes after an event that is kept must not overtake it.
        (kept.length > 0 || LAST.includes(event.type) ? kept : leaving).push(event);
      }
      return leaving;
    },
    rest() {
      const isComplete = kept.at(-1)?.type === "message_stop";
      return isComplete ? kept : [...kept, { type: "message_stop" }];
    },
    interrupt() {
      kept = [];
      const open = openIndex;
      openIndex = undefined;
      return open === undefined ? [] : [{ type: "content_block_stop", index: open }];
    },
    nextIndex: () => next,
  };
}

/**
 * The message that events make. `parse`: the object in the arguments of a call. Undefined: no
 * message begins in them.
 */
export function messageOf(
  events: readonly ReplyEvent[],
  parse: (json: string) => unknown = parseJson,
): ReplyEvent | undefined {
  const start = events.find(({ type }) => type === "message_start");
  if (!start) return undefined;
  const message = membersOf(start["message"]);
  const usage = membersOf(message.get("usage"));
  const blocks = new Map<unknown, GrowingBlock>();
  for (const { type, index, content_block, delta, ...rest } of events) {
    if (type === "content_block_start") blocks.set(index, growing(content_block));
    else if (type === "content_block_delta") {
      const block = blocks.get(index) ?? growing({});
      blocks.set(index, block);
      grow(block, asObject(delta));
    } else if (type === "message_delta") {
      replace(message, { ...asObject(delta), ...rest });
      replace(usage, asObject(rest["usage"]));
    }
  }
  const content = [
    ...asArray(message.get("content")),
    ...[...blocks.values()].map((block) => blockOf(block, parse)),
  ];
  return { ...objectOf(message), type: "message", content, usage: objectOf(usage) };
}

/**
 * The members of an object that grows. Each piece changes the map: a copy for each would take
 * quadratic time.
 */
type Members = Map<string, unknown>;

interface GrowingBlock {
  readonly members: Members;
  /** Those that came after the beginning of the block. */
  readonly citations: unknown[];
}

const membersOf = (value: unknown): Members => new Map(Object.entries(asObject(value)));
const objectOf = (members: Members): Json => Object.fromEntries(members);
const growing = (block: unknown): GrowingBlock => ({ members: membersOf(block), citations: [] });

function replace(members: Members, more: Json): void {
  for (const [name, value] of Object.entries(more)) members.set(name, value);
}

/** Texts grow. What else there is of a delta takes its place in the block. */
function grow({ members, citations }: GrowingBlock, { type, citation, ...more }: Json): void {
  if (type === "citations_delta") {
    citations.push(citation);
    return;
  }
  for (const [name, value] of Object.entries(more)) {
    const before = asString(members.get(name));
    const isMore = before !== undefined && typeof value === "string";
    members.set(name, isMore ? before + value : value);
  }
}

function blockOf({ members, citations }: GrowingBlock, parse: (json: string) => unknown): Json {
  const { partial_json, ...block } = objectOf(members);
  const cited = citations.length > 0 && {
    citations: [...asArray(block["citations"]), ...citations],
  };
  // The arguments of a call come as text, which a model wrote: it need not be JSON.
  const json = asString(partial_json) ?? "";
  const called = json !== "" && { input: parse(json) ?? { _raw: json } };
  return { ...block, ...called, ...cited };
}

/** The events of a message that came whole. */
export function eventsOf(whole: ReplyEvent): readonly ReplyEvent[] {
  const { content, stop_reason, stop_sequence, usage } = whole;
  const ending = { stop_reason: null, stop_sequence: null };
  const delta = { stop_reason: stop_reason ?? "end_turn", stop_sequence: stop_sequence ?? null };
  return [
    { type: "message_start", message: { ...whole, content: [], ...ending } },
    ...asArray(content).flatMap((block, index) => blockEvents(asObject(block), index)),
    { type: "message_delta", delta, usage: asObject(usage) },
    { type: "message_stop" },
  ];
}

/** A block of a kind that does not grow is all there when it begins. */
function blockEvents(block: Json, index: number): readonly ReplyEvent[] {
  const { empty, deltas } = piecesOf(block);
  return [
    { type: "content_block_start", index, content_block: { ...block, ...empty } },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

/** What of a block clients expect to come after its beginning. */
function piecesOf({ type, text, thinking, signature, input }: Json) {
  if (type === "text") return { empty: { text: "" }, deltas: [{ type: "text_delta", text }] };
  if (type === "thinking")
    return {
      empty: { thinking: "", signature: "" },
      deltas: [
        { type: "thinking_delta", thinking },
        { type: "signature_delta", signature },
      ],
    };
  if (input === undefined) return { empty: {}, deltas: [] };
  const partial_json = JSON.stringify(input);
  return { empty: { input: {} }, deltas: [{ type: "input_json_delta", partial_json }] };
}
