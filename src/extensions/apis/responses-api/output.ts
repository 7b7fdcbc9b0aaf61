// The output items of a response, and their events. Messages and reasoning have one text each: the
// item ends when another kind of text begins. A call ends when the next item begins, as clients
// expect. If its arguments are incomplete then, it stays open until the end of the reply, because a
// provider may interleave the arguments of several calls.
import { randomHex } from "../../../core/ids.ts";
import type { Part, TextPart, TokenLogprob } from "../../../core/openai/parts.ts";
import { isObject } from "../../../core/schema/checker.ts";
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import type { Sealer } from "../client-apis/index.ts";
import { freeFormInput, type ToolOrigin } from "../responses-input/index.ts";

export interface OutputOptions {
  /** As in ReplyFacts. */
  readonly tools: ReadonlyMap<string, ToolOrigin>;
  /** Whether reasoning is shown, as its summary. */
  readonly showsReasoning: boolean;
  /** Whether log probabilities are shown. */
  readonly showsLogprobs: boolean;
  /** Undefined: reasoning is not sent back sealed. */
  readonly seal: Sealer["seal"] | undefined;
}

/** How an item ends. "incomplete": the reply was cut. */
type Ending = "completed" | "incomplete";

/** Writes one event. `fields`: its members, without its type and sequence number. */
type Emit = (type: string, fields: object) => void;

/** An unfinished item. */
interface OpenItem {
  /** Adds a piece of its text. */
  add(piece: Pick<TextPart, "text" | "logprobs">): void;
  /** Ends the item. A call with complete arguments is "completed" even if the reply was cut. */
  end(ending: Ending): void;
}

/** A call that has not ended. */
interface OpenCall extends OpenItem {
  /** Whether its arguments are a complete JSON object. Each call parses the whole text. */
  isWhole(): boolean;
}

/** Begins an item and writes its first event. */
type BeginItem = (item: { readonly id: string; readonly [field: string]: unknown }) => ItemEvents;

/** The events of one item that has begun. */
interface ItemEvents {
  /** Writes an event of the item. Adds the item's position to its fields. */
  readonly emit: Emit;
  /** Writes the item's last event, with the complete item. */
  end(item: object): void;
}

export function createOutput(options: OutputOptions, emit: Emit) {
  const { tools, seal, showsReasoning } = options;
  const ended: (object | undefined)[] = [];
  /** By the call's index in the reply. Undefined: the call has ended. */
  const calls: (OpenCall | undefined)[] = [];
  /** The index of the last call, until the next item begins. */
  let lastCall: number | undefined;
  let text: OpenItem | undefined;
  let kind: TextPart["type"] | undefined;
  let hasMessage = false;
  /** Log probabilities of tokens whose text is incomplete, such as the first half of an emoji. */
  let pending: TokenLogprob[] = [];

  const begin: BeginItem = (item) => {
    const output_index = ended.push(undefined) - 1;
    emit("response.output_item.added", { output_index, item });
    return {
      emit: (type, fields) => emit(type, { item_id: item.id, output_index, ...fields }),
      end(whole) {
        ended[output_index] = whole;
        emit("response.output_item.done", { output_index, item: whole });
      },
    };
  };

  function endText(ending: Ending): void {
    text?.end(ending);
    text = undefined;
  }

  /** Ends the last call if its arguments are complete. So they are parsed here only once. */
  function endCall(): void {
    if (lastCall === undefined) return;
    const call = calls[lastCall]!;
    if (call.isWhole()) {
      call.end("completed");
      calls[lastCall] = undefined;
    }
    lastCall = undefined;
  }

  function addText(part: TextPart): void {
    const isHidden = part.type === "reasoning" && !showsReasoning && !seal;
    const isMore = text !== undefined && kind === part.type;
    if (isHidden || (part.text === "" && !isMore)) {
      addPending(part);
      return;
    }
    if (part.text === "" && !part.logprobs?.length) return;
    if (kind !== part.type) endText("completed");
    kind = part.type;
    hasMessage ||= kind !== "reasoning";
    if (!text) endCall();
    text ??= openText(kind, options, begin);
    text.add(pending.length > 0 ? withPending(part) : part);
  }

  /**
   * Keeps the log probabilities of an empty text for the text that follows. Drops those that belong
   * to reasoning or to a call.
   */
  function addPending({ type, logprobs = [] }: TextPart): void {
    if (type !== "text") pending = [];
    else if (calls.length === 0) for (const logprob of logprobs) pending.push(logprob);
  }

  function withPending(part: TextPart): TextPart {
    const logprobs = [...pending, ...(part.logprobs ?? [])];
    pending = [];
    return { ...part, logprobs };
  }

  return {
    add(part: Part): void {
      if (part.type === "tool_call") {
        endText("completed");
        endCall();
        pending = [];
        const { id, name } = part;
        calls[part.call] = openCall(id, tools.get(name) ?? { ...UNKNOWN, name }, begin);
        lastCall = part.call;
      } else if (part.type === "tool_arguments") calls[part.call]?.add(part);
      else if ("text" in part) addText(part);
    },
    /**
     * Ends the items that are open. Like OpenAI's, a complete reply without text and calls has an
     * empty message: clients such as the OpenAI Agents SDK ask again if there is none.
     */
    end(ending: Ending): void {
      endText(ending);
      const isBare = !hasMessage && calls.length === 0;
      if (isBare && ending === "completed") openText("text", options, begin).end(ending);
      for (const call of calls) call?.end(ending);
    },
    /** The items that have ended, in the order in which they began. */
    items: (): object[] => ended.filter((item) => item !== undefined),
  };
}

/** The origin of an undeclared tool that a model calls. The client decides how to handle it. */
const UNKNOWN = { type: "function", namespace: undefined } as const;

const MESSAGE = {
  prefix: "msg",
  item: { type: "message", role: "assistant" },
  list: "content",
  events: "response.",
};
/**
 * Names by kind of text. Events of a part contain `list` (`response.content_part.added`), events of
 * its text contain `part` (`response.output_text.delta`).
 */
const TEXTS = {
  text: { ...MESSAGE, part: "output_text", field: "text" },
  refusal: { ...MESSAGE, part: "refusal", field: "refusal" },
  reasoning: {
    prefix: "rs",
    item: { type: "reasoning" },
    list: "summary",
    events: "response.reasoning_",
    part: "summary_text",
    field: "text",
  },
} as const;

/** In this API `bytes` is always a list. It is empty if the provider sends none. */
const withBytes = <T extends Pick<TokenLogprob, "bytes">>(token: T) => ({
  ...token,
  bytes: token.bytes ?? [],
});
const listedLogprob = ({ top_logprobs, ...token }: TokenLogprob): object => ({
  ...withBytes(token),
  top_logprobs: top_logprobs.map(withBytes),
});

function openText(
  kind: TextPart["type"],
  { showsReasoning, showsLogprobs, seal }: OutputOptions,
  begin: BeginItem,
): OpenItem {
  const { prefix, item, list, events, part, field } = TEXTS[kind];
  const isReasoning = kind === "reasoning";
  const isShown = !isReasoning || showsReasoning;
  const head = { id: `${prefix}_${randomHex(16)}`, ...item };
  const logprobs: object[] = [];
  let text = "";

  const started = begin({ ...head, ...(isReasoning ? {} : { status: "in_progress" }), [list]: [] });
  function emit(event: string, fields: object): void {
    if (isShown) started.emit(event, { [`${list}_index`]: 0, ...fields });
  }
  const withLogprobs = (list: readonly object[]) => kind === "text" && { logprobs: list };
  const partNow = () => ({
    type: part,
    [field]: text,
    ...(kind === "text" && { annotations: [], logprobs }),
  });

  emit(`${events}${list}_part.added`, { part: partNow() });
  return {
    add(piece) {
      const more = ((showsLogprobs && piece.logprobs) || []).map(listedLogprob);
      for (const logprob of more) logprobs.push(logprob);
      text += piece.text;
      emit(`${events}${part}.delta`, { delta: piece.text, ...withLogprobs(more) });
    },
    end(status) {
      emit(`${events}${part}.done`, { [field]: text, ...withLogprobs(logprobs) });
      emit(`${events}${list}_part.done`, { part: partNow() });
      const sealed = isReasoning && seal && { encrypted_content: seal(text) };
      const outcome = isReasoning ? sealed : { status };
      started.end({ ...head, ...outcome, [list]: isShown ? [partNow()] : [] });
    },
  };
}

/**
 * By kind of tool: the type of its calls, and the field for the model's arguments. Event names
 * contain both (`response.function_call_arguments.delta`).
 */
const CALLS = {
  function: { prefix: "fc", type: "function_call", field: "arguments" },
  custom: { prefix: "ctc", type: "custom_tool_call", field: "input" },
  tool_search: { prefix: "tsc", type: "tool_search_call", field: "arguments" },
} as const;

/**
 * `call_id`: the provider's id, with which the client answers the call. In a reply that was cut, a
 * call is still complete if its arguments are.
 */
function openCall(
  call_id: string,
  { type: kind, name, namespace }: ToolOrigin,
  begin: BeginItem,
): OpenCall {
  const { prefix, type, field } = CALLS[kind];
  const isSearch = kind === "tool_search";
  const head = {
    id: `${prefix}_${randomHex(16)}`,
    type,
    call_id,
    ...(isSearch ? { execution: "client" } : { name, namespace }),
  };
  let json = "";

  const started = begin({ ...head, status: "in_progress", [field]: isSearch ? {} : "" });
  /** A tool search only has the events that begin and end its item. */
  function emit(step: string, fields: object): void {
    if (!isSearch) started.emit(`response.${type}_${field}.${step}`, fields);
  }
  function value(isCut: boolean): unknown {
    if (isSearch) return asObject(parseJson(json));
    return kind === "custom" ? freeFormInput(json, isCut) : json || "{}";
  }
  return {
    isWhole: () => isObject(parseJson(json)),
    add({ text }) {
      json += text;
      // The input of a free-form tool is known only at the end: the model wraps it in JSON.
      if (kind === "function" && text !== "") emit("delta", { delta: text });
    },
    end(ending) {
      const isCut = ending === "incomplete" && !isObject(parseJson(json));
      const whole = value(isCut);
      if (kind === "custom" || json === "") emit("delta", { delta: whole });
      emit("done", { ...(kind === "function" && { name }), [field]: whole });
      started.end({ ...head, status: isCut ? "incomplete" : "completed", [field]: whole });
    },
  };
}
