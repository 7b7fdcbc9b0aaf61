// A conversation as the native formats want it: the system texts apart, user and assistant in turns, neighbours of one role
// merged, the user first, and every tool call answered at the beginning of the very next turn; and what stands in it that
// clients of our format cannot carry. WIRE.md 7.1, 7b.
import type { ContentPart, Message } from "../openai/request.ts";
import { jsonObject, lenient } from "../schema/checker.ts";
import { asString, parseJson } from "../schema/untrusted-json.ts";
import { createJsonCounter, type JsonCounter } from "../schema/json-bounds.ts";
import { ProviderError } from "./dialect.ts";

interface Call {
  readonly type: "call";
  readonly id: string;
  readonly name: string;
  readonly args: Record<string, unknown>;
}
interface Result {
  readonly type: "result";
  readonly id: string;
  readonly name: string;
  content: string;
}
export type Item = ContentPart | Call | Result;
export interface Turn {
  readonly role: "user" | "assistant";
  readonly items: Item[];
}
const OPENING: Turn = {
  role: "user",
  items: [{ type: "text", text: "(The conversation begins.)" }],
}; // before a user has said anything

/** `texts` counts what is parsed of the conversation's texts, here and by the dialect (`objectIn`). */
export function turnsOf(
  messages: readonly Message[],
  texts: JsonCounter = createTextCounter(),
): {
  readonly system: string[];
  readonly turns: Turn[];
} {
  const system: string[] = [];
  const turns: Turn[] = [];
  const uniqueId = createIdMaker();
  const answers = new Map<string, Result>(); // the latest of each id that the client made
  const add = (role: Turn["role"], items: readonly Item[]): void => {
    if (items.length > 0 && turns.at(-1)?.role !== role) turns.push({ role, items: [] });
    for (const item of items) turns.at(-1)!.items.push(item); // there may be too many to spread
  };
  for (const message of messages) {
    if (message.role === "system" && message.content.trim() !== "") system.push(message.content);
    else if (message.role === "user") add("user", itemsOf(message.content));
    else if (message.role === "assistant") {
      add("assistant", itemsOf(message.content ?? ""));
      const results = message.tool_calls.map(
        ({ id: given, function: { name, arguments: text } }) => {
          const id = uniqueId(given);
          add("assistant", [
            { type: "call", id, name, args: objectIn(text || "{}", texts) ?? { _raw: text } },
          ]); // a model wrote it: it need not be JSON
          answers.set(given, { type: "result", id, name, content: "" });
          return answers.get(given)!;
        },
      );
      add("user", results);
    } else if (message.role === "tool") {
      const result = answers.get(message.tool_call_id);
      if (result)
        result.content += result.content === "" ? message.content : `\n${message.content}`;
    }
  }
  return { system, turns: turns[0]?.role === "user" ? turns : [OPENING, ...turns] };
}

/** Without empty texts, which the native formats refuse. */
const itemsOf = (content: string | readonly ContentPart[]): readonly ContentPart[] =>
  (typeof content === "string" ? [{ type: "text" as const, text: content }] : content).filter(
    (part) => part.type !== "text" || part.text.trim() !== "",
  );

/** Some clients begin to count anew in each turn, so an id that was used before gets a number: `call_0`, the second time `call_0_7`. */
function createIdMaker(): (given: string) => string {
  const used = new Set<string>();
  /** By the client's id, the number after the last one that was tried: those before it are taken, and looking again would cost
   * quadratic time. */
  const nextNumbers = new Map<string, number>();
  return (given) => {
    let id = given;
    if (used.has(id)) {
      let number = Math.max(used.size, nextNumbers.get(given) ?? 0);
      while (used.has(id)) {
        id = `${given}_${number}`;
        number += 1;
      }
      nextNumbers.set(given, number);
    }
    used.add(id);
    return id;
  };
}

/** Texts of a conversation are parsed where a native format has an object. All of one request together may have so many values and
 * new property names: the parse and what follows it are one turn of the event loop. What goes beyond stays a text. */
const [MAX_TEXT_VALUES, MAX_TEXT_NAMES] = [200_000, 20_000];
export const createTextCounter = (): JsonCounter =>
  createJsonCounter(MAX_TEXT_VALUES, MAX_TEXT_NAMES);
const object = lenient(jsonObject());
/** A text as a JSON object that is not too deep to be written again; undefined if it is none, or too much with those before it. */
export const objectIn = (text: string, texts: JsonCounter): Record<string, unknown> | undefined =>
  isObjectText(text) && texts.add(text) === undefined ? object(parseJson(text)) : undefined;
/** Whether a text may be a JSON object: nothing else is worth a parse. */
const isObjectText = (text: string): boolean => text.trimStart().startsWith("{");

/** The media type of the part of a `data:` address before its comma, `data:image/png;base64`; undefined if it is malformed. Without a
 * regular expression: the client's parameters may be megabytes, for which a backtracking one has no stack. */
function mediaTypeIn(head: string): string | undefined {
  const semicolon = head.indexOf(";");
  const isBase64 = isDataUrl(head) && head.slice(-BASE64.length).toLowerCase() === BASE64;
  if (!isBase64 || semicolon <= DATA.length || head.includes(";;")) return undefined;
  return head.slice(DATA.length, semicolon);
}
const DATA = "data:";
const BASE64 = ";base64";
const isDataUrl = (url: string): boolean => url.slice(0, DATA.length).toLowerCase() === DATA;

/** The address of an image or a file, with the two halves of one that is a `data:` address; throws if it is nowhere to be had. */
export function mediaOf(item: Exclude<ContentPart, { readonly type: "text" }>) {
  let url = "";
  if (item.type === "image_url") url = item.image_url.url;
  else if (item.type === "file") url = asString(item.file["file_data"]) ?? "";
  const comma = url.indexOf(",");
  const mediaType = comma === -1 ? undefined : mediaTypeIn(url.slice(0, comma));
  const known = mediaType !== undefined || (item.type === "image_url" && !isDataUrl(url));
  if (!known)
    throw new ProviderError(
      "upstream_rejected",
      `the ${item.type} is without data that can be said in this format`,
    );
  return { url, mediaType, data: url.slice(comma + 1) };
}

const ENTRY_CHARS = 200; // what an entry takes beside its text
export type Signatures = ReturnType<typeof createSignatures>;
/** What a provider signed of its thinking, and wants back with the tool calls that followed from it: kept by tool call id, the least recently
 * used forgotten first. `maxChars`: a thought may have thousands of characters, and a client that calls tools all day must not fill the memory. */
export function createSignatures(maxChars = 64 * 1024 * 1024) {
  const entries = new Map<string, string>(); // in the order of their last use
  let chars = 0;

  function remove(id: string): void {
    const text = entries.get(id);
    if (entries.delete(id)) chars -= id.length + text!.length + ENTRY_CHARS;
  }
  function set(id: string, text: string): void {
    remove(id);
    entries.set(id, text);
    chars += id.length + text.length + ENTRY_CHARS;
    while (chars > maxChars) remove(entries.keys().next().value!);
  }
  function get(id: string): string | undefined {
    const text = entries.get(id);
    if (text !== undefined) set(id, text);
    return text;
  }
  return { get, set };
}
