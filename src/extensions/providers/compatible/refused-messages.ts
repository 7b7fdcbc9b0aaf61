// Messages that some servers refuse: more than one of the system, and empty ones of the assistant.
import type { Message } from "../../../core/openai/request.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { asUserText, joinedSystem, type SystemMessage } from "../turns/index.ts";

/** The messages that a server with these traits accepts. */
export const acceptedMessages = (
  messages: readonly Message[],
  { system_first }: Pick<Traits, "system_first">,
): readonly Message[] => (system_first ? withSystemFirst(messages) : withoutEmpty(messages));

/**
 * Leaves out answers without text or calls, such as one whose tokens were spent on thinking:
 * Moonshot and Mistral refuse them. Chat templates do not, and may demand that roles alternate.
 */
const withoutEmpty = (messages: readonly Message[]): readonly Message[] =>
  messages.some(isEmpty) ? messages.filter((message) => !isEmpty(message)) : messages;

const isEmpty = (message: Message): boolean =>
  message.role === "assistant" && message.tool_calls.length === 0 && !message.content?.trim();

/**
 * The system messages at the beginning as one. A later one stays in its place, as a text of the
 * user, so that the server finds the messages before it in its cache.
 */
function withSystemFirst(messages: readonly Message[]): readonly Message[] {
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
