// Tool calls that arrive in fragments. Providers disagree on which fragments belong to one call,
// and on what a fragment repeats.
import { randomHex } from "../../../core/ids.ts";
import type { Part } from "../../../core/openai/parts.ts";
import { namelessCall, textOf } from "../../../core/providers/decoding.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asObject, asString, asTokenCount } from "../../../core/schema/untrusted-json.ts";

/** The most calls whose name has not arrived: a stream may never end. */
const MAX_NAMELESS = 1_000;
/** The most characters of arguments that are held back until their call has a name. */
const MAX_HELD_CHARS = 1024 * 1024;

interface OpenCall {
  /** Unique in the reply. */
  readonly id: string;
  /** Undefined: the provider has stated none. */
  readonly statedId: string | undefined;
  /** Undefined: it has not arrived. */
  name?: string;
  /** The call's index in the reply. 0 until the name has arrived. */
  index: number;
  /** Arguments that have not become a part: all of them until the name has arrived. */
  held: string;
  /** All arguments so far, without a placeholder. */
  readonly text: JsonText;
  /** A placeholder instead of arguments, which may still follow. Undefined: there was none. */
  placeholder?: "object" | "text" | undefined;
  /** The number of the message that had its latest fragment. */
  message?: number;
}

/** A message with tool calls, or with fragments of them. */
export interface CallMessage {
  readonly calls: readonly Record<string, unknown>[];
  /** The place of its choice: each choice numbers its own calls. Absent: 0. */
  readonly choice?: number;
  /** Whether it is a whole reply, in which each entry is a call. */
  readonly isWhole?: boolean;
}

/** Reads the tool calls of one reply from their fragments. */
export function createToolCallReader() {
  /** By the index that the provider states, or if it states none, by the id. */
  const openCalls = new Map<unknown, OpenCall>();
  const ids = new Set<string>();
  let messages = 0;
  let nameless = 0;
  let named = 0;
  /**
   * The key of the latest fragment. A fragment without index, id and name belongs to the same call.
   */
  let lastKey: unknown;
  /** The call of the latest fragment. Only its placeholder may still be replaced. */
  let latest: OpenCall | undefined;

  /** The call that a fragment belongs to. */
  function callOf(fragment: Fragment, message: CallMessage): OpenCall {
    const { id, name, key } = fragment;
    const statedKey = message.isWhole ? Symbol() : keyIn(message.choice, key);
    lastKey = statedKey ?? (name === undefined ? lastKey : Symbol());
    const current = openCalls.get(lastKey);
    if (current && !startsAnother(current, fragment, messages)) return current;
    // Ids must be unique, because clients answer a call by its id.
    const uniqueId = id === undefined || ids.has(id) ? `call_${randomHex(12)}` : id;
    ids.add(uniqueId);
    const text = createJsonText();
    const started: OpenCall = { id: uniqueId, statedId: id, index: 0, held: "", text };
    openCalls.set(lastKey, started);
    nameless += 1;
    return started;
  }

  function readFragment(entry: Record<string, unknown>, message: CallMessage): Part[] {
    const fragment = fragmentOf(entry);
    const { name } = fragment;
    const before = latest;
    const call = callOf(fragment, message);
    latest = call;
    call.message = messages;
    // The previous call is complete: clients expect the calls one after the other.
    const parts = before && before !== call ? placeholderOf(before) : [];
    addArguments(call, fragment);
    if (call.name === undefined && name !== undefined) {
      call.name = name;
      call.index = named;
      named += 1;
      nameless -= 1;
      parts.push({ type: "tool_call", call: call.index, id: call.id, name });
    }
    if (call.name === undefined) {
      if (nameless > MAX_NAMELESS || call.held.length > MAX_HELD_CHARS)
        throw new ProviderError("upstream_error", "too much data before the name of a tool call");
    } else if (call.held !== "") {
      parts.push({ type: "tool_arguments", call: call.index, text: call.held });
      call.held = "";
    }
    return parts;
  }

  /** The parts of one message. Throws a ProviderError if the bounds are exceeded. */
  function read(message: CallMessage): Part[] {
    messages += 1;
    return message.calls.flatMap((fragment) => readFragment(fragment, message));
  }

  /**
   * Returns what was held back. Throws a ProviderError if a call has no name although the reply is
   * complete.
   */
  function end(): Part[] {
    if (nameless > 0) throw namelessCall();
    return latest ? placeholderOf(latest) : [];
  }

  return { read, end };
}

function addArguments(call: OpenCall, { piece, isObject }: Fragment): void {
  if (PLACEHOLDER.test(piece) && call.text.state() === "blank")
    call.placeholder = isObject ? "object" : "text";
  else if (piece !== "") {
    call.placeholder = undefined;
    call.text.add(piece);
    call.held += piece;
  }
}

/** The arguments of a call that had only a placeholder. Empty if it had others. */
function placeholderOf(call: OpenCall): Part[] {
  if (call.placeholder === undefined || call.name === undefined) return [];
  call.placeholder = undefined;
  call.text.add("{}");
  return [{ type: "tool_arguments", call: call.index, text: "{}" }];
}

/** Placeholders for arguments. Some servers send one before the arguments. */
const PLACEHOLDER = /^(\{\}|null)$/;

/** What a fragment states. An empty id or name is none. */
interface Fragment {
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** The index, or if there is none, the id. */
  readonly key: number | string | undefined;
  /** The next arguments. */
  readonly piece: string;
  /** Whether the arguments are an object, not a text, and so complete. */
  readonly isObject: boolean;
}

function fragmentOf(entry: Record<string, unknown>): Fragment {
  const { name, arguments: piece } = asObject(entry["function"]);
  const id = asString(entry["id"]) || undefined;
  const key = asTokenCount(entry["index"]) ?? id;
  const isObject = typeof piece === "object" && piece !== null;
  return { id, name: asString(name) || undefined, key, piece: textOf(piece), isObject };
}

const keyIn = (choice = 0, key: number | string | undefined) =>
  choice === 0 || key === undefined ? key : `${choice} ${key}`;

/**
 * Whether a fragment starts another call than the one with its key: some providers give all
 * parallel calls the index 0, some the same id too. Another name starts another call. The same name
 * does so if it comes again in one message; or with another id, unless the arguments so far are
 * incomplete; or with more arguments after complete ones. Otherwise the fragment repeats the name
 * of its call.
 */
function startsAnother(call: OpenCall, fragment: Fragment, message: number): boolean {
  const { id, name, piece, isObject } = fragment;
  if (call.name === undefined || name === undefined) return false;
  if (name !== call.name || call.message === message) return true;
  const state = call.text.state();
  if (id !== undefined && id !== call.statedId) return state !== "open";
  // Arguments as text may follow a placeholder object, but not a placeholder text.
  const isWhole = state === "whole" || call.placeholder === "text";
  return (isWhole || (isObject && call.placeholder === "object")) && piece.trim() !== "";
}

/** A text of JSON that grows. */
interface JsonText {
  add(piece: string): void;
  /** "open": a bracket or a string is not closed. "blank": there are only blanks. */
  state(): "blank" | "open" | "whole";
}

/** Reads each added piece once, and does not keep it. */
function createJsonText(): JsonText {
  let depth = 0;
  let isInString = false;
  let isEscaped = false;
  let isBlank = true;

  function step(char: string): void {
    if (isEscaped) isEscaped = false;
    else if (char === '"') isInString = !isInString;
    else if (isInString) isEscaped = char === "\\";
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
  }

  return {
    add(piece) {
      isBlank &&= piece.trim() === "";
      for (const char of piece) step(char);
    },
    state() {
      if (isBlank) return "blank";
      return depth === 0 && !isInString ? "whole" : "open";
    },
  };
}
