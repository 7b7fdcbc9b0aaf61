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

/** As ClientApi.writer. Another model can finish the reply. */
export function createWriter(chat: ChatRequest, serving: Serving): Required<ReplyWriter> {
  const maker = createEventMaker(chat, serving);
  if (chat.stream)
    return {
      add: (parts) => written(maker.add(parts)),
      end: (usage, reason) => written(maker.end(usage, reason)),
      resumed: () => RECOVERED + written(maker.resumed()),
    };
  const events: ReplyEvent[] = [];
  let model = serving.model.name;
  function keep(more: readonly ReplyEvent[]): string {
    for (const event of more) events.push(event);
    return "";
  }
  return {
    add: (parts) => keep(maker.add(parts)),
    end(usage, reason) {
      keep(maker.end(usage, reason));
      return JSON.stringify({ ...messageOf(events), model });
    },
    resumed(name) {
      model = name;
      return keep(maker.resumed());
    },
  };
}
