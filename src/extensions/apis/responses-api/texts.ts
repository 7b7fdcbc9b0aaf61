// The output items that are texts: messages, and reasoning. Each has one part.
import { randomHex } from "../../../core/ids.ts";
import type { TextPart, TokenLogprob } from "../../../core/openai/parts.ts";
import type { BeginItem, OpenItem } from "./item-events.ts";
import type { Seal } from "../../scale/data-files/index.ts";

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
/** How the items of each kind, and their events, are called. */
const KINDS = {
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
  const { prefix, item, list, index, partEvents, part, field, events } = KINDS[kind];
  const isReasoning = kind === "reasoning";
  const isShown = !isReasoning || showsReasoning;
  const head = { id: `${prefix}_${randomHex(16)}`, ...item };
  const logprobs: TokenLogprob[] = [];
  let text = "";

  const started = begin({ ...head, ...(isReasoning ? {} : { status: "in_progress" }), [list]: [] });
  const here = { ...started.place, [index]: 0 };
  function emit(event: string, fields: object): void {
    if (isShown) started.emit(event, { ...here, ...fields });
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
