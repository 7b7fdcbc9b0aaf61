// The output items of a response. Texts follow each other: an item ends when another kind of text
// begins. Calls stay open until the end of the reply, because a provider may mix the arguments of
// several.
import type { Part, TextPart } from "../../../core/openai/parts.ts";
import type { ToolOrigin } from "../responses-input/index.ts";
import {
  openCall,
  openText,
  type BeginItem,
  type Emit,
  type ItemStatus,
  type OpenItem,
  type TextOptions,
} from "./items.ts";

export interface OutputOptions extends TextOptions {
  /** As in ReplyFacts. */
  readonly tools: ReadonlyMap<string, ToolOrigin>;
}

export interface Output {
  add(part: Part): void;
  /** Ends the items that are open. "incomplete": the reply was cut. */
  end(status: ItemStatus): void;
  /** The items that have ended, in the order in which they began. */
  items(): object[];
}

export function createOutput(options: OutputOptions, emit: Emit): Output {
  const { tools, seal, showsReasoning } = options;
  const ended: (object | undefined)[] = [];
  /** By the call's index in the reply. */
  const calls: OpenItem<string>[] = [];
  let text: OpenItem<TextPart> | undefined;
  let kind: TextPart["type"] | undefined;

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

  function endText(status: ItemStatus): void {
    text?.end(status);
    text = undefined;
  }

  function addText(part: TextPart): void {
    const isHidden = part.type === "reasoning" && !showsReasoning && !seal;
    if (isHidden || (part.text === "" && !part.logprobs?.length)) return;
    if (kind !== part.type) endText("completed");
    kind = part.type;
    text ??= openText(kind, options, begin);
    text.add(part);
  }

  return {
    add(part) {
      if (part.type === "tool_call") {
        endText("completed");
        const { id, name } = part;
        calls[part.call] = openCall(id, tools.get(name) ?? { ...UNKNOWN, name }, begin);
      } else if (part.type === "tool_arguments") calls[part.call]!.add(part.text);
      else if ("text" in part) addText(part);
    },
    end(status) {
      endText(status);
      for (const call of calls) call.end(status);
    },
    items: () => ended.filter((item) => item !== undefined),
  };
}

/** A model may call what was not declared. The client decides what that means. */
const UNKNOWN = { type: "function", namespace: undefined } as const;
