// Writes a reply of the Messages API, whole or as a stream of events. What a provider of the same
// format says passes event for event; only the model's name is the gateway's.
import { randomHex } from "../../../core/ids.ts";
import type { NativePart, Part } from "../../../core/openai/parts.ts";
import { RECOVERED, type ReplyWriter } from "../../../core/openai/reply.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Serving } from "../../../core/routing/attempt.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { createTextCounter, objectIn } from "../../providers/turns/index.ts";
import {
  createEventMaker,
  emptyMessage,
  PING,
  type EventMaker,
  type ReplyEvent,
} from "./events.ts";
import { createPassage, eventsOf, messageOf, type Passage } from "./passing.ts";

/** One server-sent event. */
export const eventText = (event: ReplyEvent): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** The gateway's own id of a message that is translated. */
const messageId = (): string => `msg_${randomHex(12)}`;

/** A writer of which another model can finish the reply. */
type ResumableWriter = Required<ReplyWriter>;

/** As ClientApi.writer. */
export const createWriter = (chat: ChatRequest, serving: Serving): ResumableWriter =>
  chat.stream ? createStreamWriter(chat, serving) : createWholeWriter(chat, serving);

const eventMaker = (chat: ChatRequest, { model }: Serving, firstIndex = 0): EventMaker =>
  createEventMaker(chat.showThinking && model.reasoning, firstIndex);

/** The provider's own events among the parts, also where its reply came whole. */
const nativeEvents = (parts: readonly Part[]): readonly ReplyEvent[] =>
  ownWords(parts).flatMap((event) => (event.type === "message" ? eventsOf(event) : [event]));

/** What the provider itself said. */
const ownWords = (parts: readonly Part[]): readonly ReplyEvent[] =>
  parts
    .filter((part): part is NativePart => part.type === "native")
    .map(({ event }) => event as ReplyEvent);

/**
 * The same event under the gateway's name of the model. The id stays the provider's, which takes it
 * in later requests.
 */
function renamed(event: ReplyEvent, model: string): ReplyEvent {
  if (event.type === "message") return { ...event, model };
  if (event.type !== "message_start") return event;
  return { ...event, message: { ...asObject(event["message"]), model } };
}

function createStreamWriter(chat: ChatRequest, serving: Serving): ResumableWriter {
  const id = messageId();
  const { model } = serving;
  /** The maker of a reply that is translated. Undefined: its events pass, or it has not begun. */
  let maker: EventMaker | undefined;
  /** The passage of a provider's own events. Undefined: there are none, or none has come. */
  let passage: Passage | undefined;

  /** Returns what a reply begins with, if it has not begun. */
  function begin(parts: readonly Part[]): string {
    if (maker || passage) return "";
    if (nativeEvents(parts).some(({ type }) => type === "message_start")) {
      passage = createPassage();
      return "";
    }
    maker = eventMaker(chat, serving);
    const message = emptyMessage(id, model.name, serving.meter.usage().usage);
    return written([{ type: "message_start", message }, PING]);
  }

  return {
    add(parts) {
      const start = begin(parts);
      if (maker) return start + written(maker.add(parts));
      const events = nativeEvents(parts).map((event) => renamed(event, model.name));
      return written(passage!.take(events));
    },
    end: (usage, reason) => begin([]) + written(maker ? maker.end(usage, reason) : passage!.rest()),
    resumed() {
      const events = passage?.interrupt() ?? [];
      maker ??= eventMaker(chat, serving, passage?.nextIndex());
      return RECOVERED + written(events);
    },
  };
}

const written = (events: readonly ReplyEvent[]): string => events.map(eventText).join("");

function createWholeWriter(chat: ChatRequest, serving: Serving): ResumableWriter {
  const maker = eventMaker(chat, serving);
  const events: ReplyEvent[] = [];
  let { name } = serving.model;
  /**
   * The provider's own words. They do not have all of a reply that another attempt went on with.
   */
  const own: ReplyEvent[] = [];
  /** The one of them that is the message as a whole. */
  let whole: ReplyEvent | undefined;
  let isResumed = false;

  function addOwn(event: ReplyEvent): void {
    if (event.type === "message") whole ??= event;
    own.push(event);
  }

  return {
    add(parts) {
      if (!isResumed) for (const event of ownWords(parts)) addOwn(event);
      if (!whole) for (const event of maker.add(parts)) events.push(event);
      return "";
    },
    end(usage, reason) {
      const native = whole ?? messageOf(own);
      if (native) return JSON.stringify(renamed(native, name));
      for (const event of maker.end(usage, reason)) events.push(event);
      const message = emptyMessage(messageId(), name, usage);
      const texts = createTextCounter();
      const start = { type: "message_start", message };
      return JSON.stringify(messageOf([start, ...events], (json) => objectIn(json, texts)));
    },
    resumed(next) {
      name = next;
      isResumed = true;
      own.length = 0;
      whole = undefined;
      return "";
    },
  };
}
