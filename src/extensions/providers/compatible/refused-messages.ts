// Replaces messages that some servers refuse: several system messages, consecutive user messages,
// empty assistant messages, a content that is null, arguments of calls that are no JSON object, and
// user or system messages after a tool's result.
import { joinText, type Message } from "../../../core/openai/request.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import {
  asUserMessage,
  joinedSystem,
  OPENING,
  paragraphs,
  type SystemMessage,
  withParsableArguments,
} from "../turns/index.ts";

/** The messages that a server with these traits accepts. */
export function acceptedMessages(
  stated: readonly Message[],
  { system_first, alternates, thinking, tool_choice }: Traits,
): readonly Message[] {
  const messages = thinking === "enable_thinking" ? withContent(stated) : stated;
  const parsable = system_first || alternates ? withParsableArguments(messages) : messages;
  if (tool_choice === "any" && !alternates)
    return withAcknowledgements(withSystemFirst(withoutEmpty(parsable)));
  if (!system_first && !alternates) return withoutEmpty(messages);
  const ordered = withSystemFirst(parsable);
  if (!alternates) return ordered;
  const accepted = withoutEmpty(ordered);
  return withJoinedUsers(withAcknowledgements(withUserFirst(accepted)));
}

/** Alibaba, whose switch for thinking is `enable_thinking`, refuses a content that is null. */
const withContent = (messages: readonly Message[]): readonly Message[] =>
  messages.map((message) => (message.content === null ? { ...message, content: "" } : message));

/**
 * Leaves out answers without text or calls, such as one whose tokens were spent on thinking:
 * Moonshot and Mistral refuse them. Chat templates (`system_first`) accept them, and may demand
 * that roles alternate, so they keep them unless the user's messages are joined (`alternates`). At
 * least one message stays.
 */
function withoutEmpty(messages: readonly Message[]): readonly Message[] {
  const kept = messages.filter((message) => !isEmpty(message));
  return kept.length > 0 ? kept : messages;
}

const isEmpty = (message: Message): boolean =>
  message.role === "assistant" && message.tool_calls.length === 0 && !message.content?.trim();

/**
 * Joins the system messages at the beginning. A later one stays in its place, as a user message, so
 * that the server finds the messages before it in its cache. One without text, with which Claude
 * Code states its effort, is left out unless it is the last message: the server might take an
 * assistant message at the end for the beginning of its answer.
 */
function withSystemFirst(messages: readonly Message[]): readonly Message[] {
  const end = messages.findIndex((message) => !isSystem(message));
  const first = (end === -1 ? messages : messages.slice(0, end)).filter(isSystem);
  const others = messages.slice(first.length);
  if (first.length < 2 && !others.some(isSystem)) return messages;
  return [
    ...(first.length > 0 ? [joinedSystem(first)] : []),
    ...others
      .filter((message, at) => !isSystem(message) || message.content.trim() || !others[at + 1])
      .map((message) => (isSystem(message) ? asUserMessage(message) : message)),
  ];
}

const isSystem = (message: Message): message is SystemMessage => message.role === "system";

const ACKNOWLEDGEMENT: Message = {
  role: "assistant",
  content: "I have read the results.",
  reasoning_content: undefined,
  tool_calls: [],
};

/** Mistral refuses any message but the model's own directly after the result of a call. */
const withAcknowledgements = (messages: readonly Message[]): readonly Message[] =>
  messages.flatMap((message, at) => {
    const isOther = message.role === "user" || message.role === "system";
    const isNext = isOther && messages[at - 1]?.role === "tool";
    return isNext ? [ACKNOWLEDGEMENT, message] : [message];
  });

/**
 * Adds an opening by the user to a conversation that the assistant begins, such as with a greeting.
 */
function withUserFirst(messages: readonly Message[]): readonly Message[] {
  const at = messages.findIndex((message) => !isSystem(message));
  if (messages[at]?.role !== "assistant") return messages;
  return messages.toSpliced(at, 0, { role: "user", content: OPENING });
}

/** Joins consecutive user messages. */
function withJoinedUsers(messages: readonly Message[]): readonly Message[] {
  const joined: Message[] = [];
  let users: UserMessage[] = [];
  for (const message of messages)
    if (message.role === "user") users.push(message);
    else {
      joined.push(...joinedUsers(users), message);
      users = [];
    }
  return [...joined, ...joinedUsers(users)];
}

type UserMessage = Extract<Message, { readonly role: "user" }>;

function joinedUsers(users: readonly UserMessage[]): readonly UserMessage[] {
  if (users.length < 2) return users;
  const content = joinText(paragraphs(users.map((message) => message.content)));
  if (users.every(({ marked }) => marked === undefined)) return [{ role: "user", content }];
  const marked = paragraphs(users.map((message) => message.marked ?? message.content));
  return [{ role: "user", content, marked }];
}
