// Writes a reply of the Messages API: as a stream of events, or as the message that they make.
import { RECOVERED, type ReplyWriter } from "../../../core/openai/reply.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Serving } from "../../../core/routing/attempt.ts";
import type { ReplyEvent } from "./blocks.ts";
import { createEventMaker } from "./events.ts";
import { messageOf } from "./whole.ts";

/** One server-sent event. */
export const eventText = (event: ReplyEvent): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

const written = (events: readonly ReplyEvent[]): string => events.map(eventText).join("");

/** As ClientApi.writer. */
export function createWriter(chat: ChatRequest, serving: Serving): ReplyWriter {
  const maker = createEventMaker(chat, serving);
  if (chat.stream)
    return {
      add: (parts) => written(maker.add(parts)),
      end: (usage, reason) => written(maker.end(usage, reason)),
      // The text goes on in the same block: a provider's own events are never continued.
      resumed: () => RECOVERED,
    };
  const events: ReplyEvent[] = [];
  return {
    add(parts) {
      for (const event of maker.add(parts)) events.push(event);
      return "";
    },
    end: (usage, reason) => JSON.stringify(messageOf([...events, ...maker.end(usage, reason)])),
  };
}
