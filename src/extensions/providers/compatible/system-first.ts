// System messages for chat templates that take only one, at the beginning (Qwen's).
import type { Message } from "../../../core/openai/request.ts";
import { asUserText, joinedSystem, type SystemMessage } from "../turns/index.ts";

/**
 * The system messages at the beginning as one. A later one stays in its place, as a text of the
 * user, so that the server finds the messages before it in its cache.
 */
export function withSystemFirst(messages: readonly Message[]): readonly Message[] {
  const end = messages.findIndex((message) => !isSystem(message));
  const first = (end === -1 ? messages : messages.slice(0, end)).filter(isSystem);
  const others = messages.slice(first.length);
  if (first.length < 2 && !others.some(isSystem)) return messages;
  return [
    ...(first.length > 0 ? [joinedSystem(first)] : []),
    ...others.map(
      (message): Message =>
        isSystem(message) ? { role: "user", content: asUserText(message) } : message,
    ),
  ];
}

const isSystem = (message: Message): message is SystemMessage => message.role === "system";
