// The blocks of a reply in the Messages API. Each ends before the next one begins.
import type { TextPart, ToolCallPart } from "../../../core/openai/parts.ts";
import { parseJson } from "../../../core/schema/untrusted-json.ts";
import { isUsableId, usableId } from "../../providers/provider-words/index.ts";
import type { ReplyEvent, Sealer } from "../client-apis/index.ts";
import { GATEWAY_SIGNATURE, signatureWith } from "../messages-input/index.ts";

/** Sends an event. */
type Emit = (event: ReplyEvent) => void;

/** A part that begins or continues a block. */
type ContentPart = TextPart | ToolCallPart;

interface OpenBlock {
  readonly type: "text" | "thinking" | "tool_use";
  readonly index: number;
  /** The index of the call, in a block of type tool_use. */
  readonly call?: number | undefined;
  /** The arguments so far, or a hidden thought. */
  json: string;
  /** Whether the arguments begin like an object. Undefined: they have only blanks so far. */
  isObject?: boolean;
}

/** `seal`: seals hidden thoughts into their signatures. Undefined: thoughts are shown. */
export function createBlocks(emit: Emit, seal: Sealer["seal"] | undefined) {
  let open: OpenBlock | undefined;
  let nextIndex = 0;
  /** Parts that are sent at the end, because a provider may interleave the calls' arguments. */
  const waiting: ContentPart[] = [];
  /** The arguments of the waiting calls. */
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
    if (type === "thinking") {
      const signature = seal ? signatureWith(seal(json)) : GATEWAY_SIGNATURE;
      grow({ type: "signature_delta", signature });
    }
    // A client cannot send back arguments that are not an object.
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
      if (seal) open!.json += part.text;
      else grow({ type: "thinking_delta", thinking: part.text });
    } else {
      if (open?.type !== "text") start("text", { type: "text", text: "" });
      grow({ type: "text_delta", text: part.text });
    }
  }

  /** Holds back arguments that do not begin as an object until the block ends. */
  function writeArguments(block: OpenBlock, piece: string): void {
    block.json += piece;
    const isBegun = block.isObject !== undefined;
    if (!isBegun && piece.trim() !== "") block.isObject = piece.trimStart().startsWith("{");
    const due = isBegun ? piece : block.json;
    if (block.isObject && due !== "") grow(argumentsDelta(due));
  }

  return {
    /**
     * Writes a part, and ends the open block if it is of another kind. If the open block is a call
     * with incomplete arguments, the part waits until the end of the reply.
     */
    add(part: ContentPart): void {
      // Parses the arguments of a call only once: the part ends the call, or all later parts wait.
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

/** Makes the ids of calls unique, and usable in later requests. */
function createIds(): (id: string) => string {
  const taken = new Set<string>();
  return (id) => {
    const usable = isUsableId(id) && !taken.has(id) ? id : usableId(id);
    taken.add(usable);
    return usable;
  };
}

/** Whether the block is a call with incomplete arguments. Parses the whole text. */
const isWithinCall = (block: OpenBlock | undefined): boolean =>
  block?.type === "tool_use" && parseJson(block.json) === undefined;
