// The blocks of a reply in the Messages API: each begins, grows and ends before the next one.
import type { TextPart, ToolCallPart } from "../../../core/openai/parts.ts";
import { parseJson } from "../../../core/schema/untrusted-json.ts";
import { isUsableId, usableId } from "../../providers/provider-words/index.ts";
import type { ReplyEvent } from "../client-apis/index.ts";
import { GATEWAY_SIGNATURE } from "../messages-input/index.ts";

/** Takes an event that may leave now. */
type Emit = (event: ReplyEvent) => void;

/** A part that begins or continues a block. */
type ContentPart = TextPart | ToolCallPart;

interface OpenBlock {
  readonly type: "text" | "thinking" | "tool_use";
  readonly index: number;
  /** The index of the call, in a block of type tool_use. */
  readonly call?: number | undefined;
  /** The arguments so far. */
  json: string;
  /** Whether they begin like an object. Undefined: only blanks have arrived. */
  isObject?: boolean;
}

export function createBlocks(emit: Emit) {
  let open: OpenBlock | undefined;
  let nextIndex = 0;
  /** Sent at the end: some providers interleave the arguments of several calls. */
  const waiting: ContentPart[] = [];
  /** The arguments of the calls that wait. */
  const waitingArguments = new Map<number, string>();
  const idOf = createIds();

  function start(type: OpenBlock["type"], content_block: object, call?: number): void {
    close();
    const index = nextIndex;
    nextIndex += 1;
    open = { type, index, call, json: "" };
    emit({ type: "content_block_start", index, content_block });
  }

  function grow(delta: object): void {
    emit({ type: "content_block_delta", index: open!.index, delta });
  }

  function close(): void {
    if (!open) return;
    const { type, index, json, isObject } = open;
    if (type === "thinking") grow({ type: "signature_delta", signature: GATEWAY_SIGNATURE });
    // A client could not send back arguments that are not an object.
    if (isObject === false) grow(argumentsDelta(JSON.stringify({ _raw: json })));
    emit({ type: "content_block_stop", index });
    open = undefined;
  }

  function write(part: ContentPart): void {
    if (part.type === "tool_call") {
      const { id, name, call } = part;
      start("tool_use", { type: "tool_use", id: idOf(id), name, input: {} }, call);
    } else if (part.type === "reasoning") {
      const block = { type: "thinking", thinking: "", signature: "" };
      if (open?.type !== "thinking") start("thinking", block);
      grow({ type: "thinking_delta", thinking: part.text });
    } else {
      if (open?.type !== "text") start("text", { type: "text", text: "" });
      grow({ type: "text_delta", text: part.text });
    }
  }

  /** Arguments that do not begin as an object are kept until the block ends. */
  function writeArguments(block: OpenBlock, piece: string): void {
    block.json += piece;
    const isBegun = block.isObject !== undefined;
    if (!isBegun && piece.trim() !== "") block.isObject = piece.trimStart().startsWith("{");
    const due = isBegun ? piece : block.json;
    if (block.isObject && due !== "") grow(argumentsDelta(due));
  }

  return {
    /**
     * Writes a part. One of another kind than the block that is open ends that. While the
     * arguments of a call are incomplete, it waits until the end.
     */
    add(part: ContentPart): void {
      // The arguments of a call are parsed once: this part ends the call, or waits with all others.
      if (waiting.length === 0 && !isWithinCall(open)) write(part);
      else waiting.push(part);
    },
    /** Continues the arguments of a call. */
    addArguments(call: number, json: string): void {
      if (open?.call === call) writeArguments(open, json);
      else waitingArguments.set(call, (waitingArguments.get(call) ?? "") + json);
    },
    end() {
      for (const part of waiting) {
        write(part);
        if (part.type === "tool_call") writeArguments(open!, waitingArguments.get(part.call) ?? "");
      }
      close();
    },
  };
}

const argumentsDelta = (partial_json: string) => ({ type: "input_json_delta", partial_json });

/** Creates the client's ids of calls: each is unique, and usable in later turns. */
function createIds(): (id: string) => string {
  const taken = new Set<string>();
  return (id) => {
    const usable = isUsableId(id) && !taken.has(id) ? id : usableId(id);
    taken.add(usable);
    return usable;
  };
}

/** Whether this is a call whose arguments are not all there. Parses all of them. */
const isWithinCall = (block: OpenBlock | undefined): boolean =>
  block?.type === "tool_use" && parseJson(block.json) === undefined;
