// The output items of a response while they grow, and the events that tell of them: texts, which
// are messages or reasoning with one part each, and calls of the client's tools.
import { randomHex } from "../../../core/ids.ts";
import type { TextPart, TokenLogprob } from "../../../core/openai/parts.ts";
import { isObject } from "../../../core/schema/checker.ts";
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import type { Seal } from "../../scale/data-files/index.ts";
import { freeFormInput, type ToolOrigin } from "../responses-input/index.ts";

/** Tells of one event. `fields` are those beside its type and its number. */
export type Emit = (type: string, fields: object) => void;

/** How an item ended. "incomplete": it was cut. */
export type ItemStatus = "completed" | "incomplete";

/** An item that still grows. */
export interface OpenItem<Piece> {
  add(piece: Piece): void;
  /**
   * "incomplete": the reply was cut. An item that was whole before that is complete all the same.
   */
  end(status: ItemStatus): void;
}

/** Begins an item and tells of it. */
export type BeginItem = (item: { readonly id: string; readonly type: string }) => ItemEvents;

/** The events of one item that has begun. */
export interface ItemEvents {
  /** Tells of an event within the item. Its fields begin with the item's place. */
  readonly emit: Emit;
  /** Tells that the item has ended, and what it is. */
  end(item: object): void;
}

export interface TextOptions {
  /** Whether reasoning is shown, as its summary. */
  readonly showsReasoning: boolean;
  readonly showsLogprobs: boolean;
  /** Undefined: reasoning is not sent back sealed. */
  readonly seal: Seal["seal"] | undefined;
}

const MESSAGE = {
  prefix: "msg",
  item: { type: "message", role: "assistant" },
  list: "content",
  index: "content_index",
  partEvents: "response.content_part",
};
/** How texts of each kind, and their events, are called. */
const TEXTS = {
  text: { ...MESSAGE, part: "output_text", field: "text", events: "response.output_text" },
  refusal: { ...MESSAGE, part: "refusal", field: "refusal", events: "response.refusal" },
  reasoning: {
    prefix: "rs",
    item: { type: "reasoning" },
    list: "summary",
    index: "summary_index",
    partEvents: "response.reasoning_summary_part",
    part: "summary_text",
    field: "text",
    events: "response.reasoning_summary_text",
  },
} as const;

export function openText(
  kind: TextPart["type"],
  { showsReasoning, showsLogprobs, seal }: TextOptions,
  begin: BeginItem,
): OpenItem<TextPart> {
  const { prefix, item, list, index, partEvents, part, field, events } = TEXTS[kind];
  const isReasoning = kind === "reasoning";
  const isShown = !isReasoning || showsReasoning;
  const head = { id: `${prefix}_${randomHex(16)}`, ...item };
  const logprobs: TokenLogprob[] = [];
  let text = "";

  const started = begin({ ...head, ...(isReasoning ? {} : { status: "in_progress" }), [list]: [] });
  function emit(event: string, fields: object): void {
    if (isShown) started.emit(event, { [index]: 0, ...fields });
  }
  const withLogprobs = (list: readonly TokenLogprob[]) => kind === "text" && { logprobs: list };
  const partNow = () => ({
    type: part,
    [field]: text,
    ...(kind === "text" && { annotations: [], logprobs }),
  });

  emit(`${partEvents}.added`, { part: partNow() });
  return {
    add(piece) {
      const more = (showsLogprobs && piece.logprobs) || [];
      for (const logprob of more) logprobs.push(logprob);
      text += piece.text;
      emit(`${events}.delta`, { delta: piece.text, ...withLogprobs(more) });
    },
    end(status) {
      emit(`${events}.done`, { [field]: text, ...withLogprobs(logprobs) });
      emit(`${partEvents}.done`, { part: partNow() });
      const sealed = isReasoning && seal && { encrypted_content: seal(text) };
      const outcome = isReasoning ? sealed : { status };
      started.end({ ...head, ...outcome, [list]: isShown ? [partNow()] : [] });
    },
  };
}

/**
 * How calls of each kind are called, the field that has what the model wrote, and the events of
 * that; a search for tools has none.
 */
const CALLS = {
  function: {
    prefix: "fc",
    type: "function_call",
    field: "arguments",
    events: "response.function_call_arguments",
  },
  custom: {
    prefix: "ctc",
    type: "custom_tool_call",
    field: "input",
    events: "response.custom_tool_call_input",
  },
  tool_search: { prefix: "tsc", type: "tool_search_call", field: "arguments", events: undefined },
} as const;

/**
 * `call_id`: the provider's, by which the client answers the call. A call of a reply that was cut
 * is complete if its arguments are.
 */
export function openCall(
  call_id: string,
  { type: kind, name, namespace }: ToolOrigin,
  begin: BeginItem,
): OpenItem<string> {
  const { prefix, type, field, events } = CALLS[kind];
  const isSearch = kind === "tool_search";
  const head = {
    id: `${prefix}_${randomHex(16)}`,
    type,
    call_id,
    ...(isSearch ? { execution: "client" } : { name, namespace }),
  };
  let json = "";

  const beginning = { ...head, status: "in_progress", [field]: isSearch ? {} : "" };
  const started = begin(beginning);
  function emit(step: string, fields: object): void {
    if (events !== undefined) started.emit(`${events}.${step}`, fields);
  }
  function value(isCut: boolean): unknown {
    if (isSearch) return asObject(parseJson(json));
    return kind === "custom" ? freeFormInput(json, isCut) : json || "{}";
  }
  return {
    add(text) {
      json += text;
      // The input of a free-form tool is known at the end: its JSON is around it.
      if (kind === "function" && text !== "") emit("delta", { delta: text });
    },
    end(ended) {
      const isCut = ended === "incomplete" && !isObject(parseJson(json));
      const whole = value(isCut);
      if (kind === "custom" || json === "") emit("delta", { delta: whole });
      emit("done", { ...(kind === "function" && { name }), [field]: whole });
      started.end({ ...head, status: isCut ? "incomplete" : "completed", [field]: whole });
    },
  };
}
