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

/** As ClientApi.writer. */
export function createWriter(chat: ChatRequest, serving: Serving): Required<ReplyWriter> {
  let events: ReplyEvent[] = [];
  const maker = createEventMaker(chat, serving, (event) => events.push(event));
  /** The events since the last call. */
  function take(): string {
    const text = events.map(eventText).join("");
    events = [];
    return text;
  }
  return {
    add(parts) {
      maker.add(parts);
      return chat.stream ? take() : "";
    },
    end(usage, reason) {
      maker.end(usage, reason);
      return chat.stream ? take() : JSON.stringify(messageOf(events));
    },
    // The text goes on in the same block: a provider's own events are never continued.
    resumed: () => RECOVERED,
  };
}
