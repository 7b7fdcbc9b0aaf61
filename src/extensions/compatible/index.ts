// OpenAI's format as the many servers speak it that are compatible with it, each a little
// differently (WIRE.md 6). It takes the place of the core's dialect `openai`, which reads the format
// only as it is documented.
import type { Extension } from "../../core/extension/extension.ts";
import type { Dialect } from "../../core/providers/dialect.ts";
import { choiceIn } from "../../core/providers/openai/decoder.ts";
import { openaiDialect, openaiDialectDefinition } from "../../core/providers/openai/index.ts";
import { finishReasonOf, refusal } from "../provider-words/index.ts";
import { createCompatibleDecoder } from "./decoder.ts";

export const compatibleDialect: Dialect = {
  ...openaiDialect,
  isReply(json) {
    const choice = choiceIn(json);
    // A reply of which the provider's filter left nothing may come without a message (Azure).
    const isFiltered = finishReasonOf(choice["finish_reason"]) === "content_filter";
    return choice["message"] !== undefined || isFiltered;
  },
  decoder: ({ traits }) => createCompatibleDecoder(traits),
  refusal,
};

export const extension: Extension = {
  name: "compatible",
  dialects: [{ ...openaiDialectDefinition, create: () => compatibleDialect }],
};
