// Converts a conversation for the native formats: system texts apart, the rest as turns of user and
// assistant. Consecutive messages of a role are merged. The first turn is the user's, and so is the
// last, unless the client's last message is the assistant's. Each tool call is answered at the
// beginning of the next turn.
import { sha256 } from "../../../core/hash.ts";
import type { ChatRequest, ContentPart, Message } from "../../../core/openai/request.ts";
import { asUserMessage, type SystemMessage } from "./system.ts";
import { argumentsIn, createTextCounter, type TextCounter } from "./text-objects.ts";

export interface Call {
  readonly type: "call";
  /** Unique in the conversation. */
  readonly id: string;
  readonly name: string;
  readonly args: Record<string, unknown>;
}

interface Result {
  readonly type: "result";
  /** The id of the call that it answers. */
  readonly id: string;
  readonly name: string;
  /** "" for a call that the client left unanswered. */
  content: string;
  /** The client's mark for the provider's cache. Absent: there is none. */
  cache_control?: object;
}

/** The results of calls that have the same id, in the order of the calls. */
interface Results {
  readonly all: Result[];
  /** The index of the result that the client sends next. */
  next: number;
}

export type Item = ContentPart | Call | Result;

export interface Turn {
  readonly role: "user" | "assistant";
  /** At least one. */
  readonly items: Item[];
}

type AssistantMessage = Extract<Message, { readonly role: "assistant" }>;
type ToolMessage = Extract<Message, { readonly role: "tool" }>;

export interface Conversation {
  /**
   * The system messages that have a text, in their order: all of them, or those at the beginning.
   */
  readonly system: SystemMessage[];
  /** At least one, the user's first. */
  readonly turns: Turn[];
}

const userTurn = (text: string): Turn => ({ role: "user", items: [textPart(text)] });

/** The user's first turn in a conversation that the assistant begins. */
export const OPENING = "(The conversation begins.)";

/** Follows a turn of the assistant if the messages after it are left out. */
const CLOSING = "(Please go on.)";

/**
 * In chat completions all system texts are moved to the beginning (wire.md "Turns"). Clients of the
 * other APIs send instructions in the middle of a conversation. Such a text stays at its place, as
 * a user text, so that the provider finds the messages before it in its cache. `texts` counts the
 * texts that are parsed, here and by the dialect (`objectIn`).
 */
export function turnsOf(
  { messages, native }: Pick<ChatRequest, "messages" | "native">,
  texts: TextCounter = createTextCounter(),
): Conversation {
  const system: SystemMessage[] = [];
  const turns: Turn[] = [];
  const uniqueId = createIdMaker();
  /** By the client's id of a call: the results of the calls with this id in its latest message. */
  const results = new Map<string, Results>();

  function add(role: Turn["role"], item: Item): void {
    const turn = turns.at(-1);
    if (turn?.role === role) turn.items.push(item);
    else turns.push({ role, items: [item] });
  }

  /** Skips blank texts, which the native formats refuse. */
  function addContent(role: Turn["role"], content: string | readonly ContentPart[]): void {
    const parts = typeof content === "string" ? [textPart(content)] : content;
    for (const part of parts) if (part.type !== "text" || part.text.trim() !== "") add(role, part);
  }

  function addSystem(message: SystemMessage): void {
    if (message.content.trim() === "") return;
    if (native && turns.length > 0) addContent("user", contentOf(asUserMessage(message)));
    else system.push(message);
  }

  const contentOf = ({ content, marked }: Message) => marked ?? content ?? "";

  function addAssistant(message: AssistantMessage): void {
    const { tool_calls } = message;
    addContent("assistant", contentOf(message));
    const answers: Result[] = [];
    for (const call of tool_calls) results.delete(call.id);
    for (const call of tool_calls) {
      const id = uniqueId(call.id);
      const { name: stated, arguments: text } = call.function;
      const name = acceptedName(stated);
      const args = argumentsIn(text, texts);
      add("assistant", { type: "call", id, name, args });
      const result: Result = { type: "result", id, name, content: "" };
      const same = results.get(call.id) ?? { all: [], next: 0 };
      same.all.push(result);
      results.set(call.id, same);
      answers.push(result);
    }
    for (const answer of answers) add("user", answer);
  }

  function addResult({ tool_call_id: id, content, marked }: ToolMessage): void {
    const same = results.get(id);
    const result = same?.all[same.next];
    if (!result) return;
    // Surplus results belong to the last call.
    if (same.next < same.all.length - 1) same.next += 1;
    result.content += result.content === "" ? content : `\n${content}`;
    const mark = marked?.findLast(({ cache_control }) => cache_control)?.cache_control;
    if (mark) result.cache_control = mark;
  }

  /**
   * Ends an assistant's turn if the messages after it were left out: providers would continue it.
   */
  function endAnswer(previous: Message | undefined): void {
    if (previous?.role !== "assistant" && turns.at(-1)?.role === "assistant")
      turns.push(userTurn(CLOSING));
  }

  for (const [index, message] of messages.entries()) {
    switch (message.role) {
      case "system":
        addSystem(message);
        break;
      case "user":
        addContent("user", contentOf(message));
        break;
      case "assistant":
        endAnswer(messages[index - 1]);
        addAssistant(message);
        break;
      case "tool":
        addResult(message);
    }
  }
  endAnswer(messages.at(-1));
  trimPrefill(turns.at(-1));
  return { system, turns: turns[0]?.role === "user" ? turns : [userTurn(OPENING), ...turns] };
}

/** The beginning of an answer must not end in blanks. */
function trimPrefill(turn: Turn | undefined): void {
  const last = turn?.items.at(-1);
  if (turn?.role === "assistant" && last?.type === "text")
    turn.items.splice(-1, 1, { ...last, text: last.text.trimEnd() });
}

/** A text as a part of a message. */
export const textPart = (text: string) => ({ type: "text" as const, text });

/**
 * Some clients restart their ids in each turn. A repeated id is replaced by the next free one of
 * the numbered ids, the same in each request of the conversation.
 */
function createIdMaker(): (clientId: string) => string {
  const used = new Set<string>();
  let repeats = 0;
  return (clientId) => {
    let id = clientId;
    while (used.has(id)) {
      repeats += 1;
      id = `repeated_${repeats}`;
    }
    used.add(id);
    return id;
  };
}

/** A model may call a tool that does not exist, by a name that the native formats refuse. */
const acceptedName = (name: string): string => name.slice(0, 64).replace(/[^\w-]/g, "_");

/** The names of the tools that were called in a conversation, each once. */
export function calledNames(turns: readonly Turn[]): readonly string[] {
  const calls = turns.flatMap(({ items }) => items.filter((item) => item.type === "call"));
  return [...new Set(calls.map(({ name }) => name))];
}

/** An id of characters that every provider accepts. */
export const hashedId = (text: string): string => `call_${sha256(text).slice(0, 24)}`;
