// The OpenAI-compatible format, which most providers and all local servers speak, each a little
// differently (WIRE.md 6). Their differences are data: traits.ts and vendors.json.
import type { Dialect, DialectDefinition } from "../dialect.ts";
import { finishReasonOf } from "../decoding.ts";
import { createOpenaiDecoder, choiceIn } from "./decoder.ts";
import { requestBody, THINKING_SWITCHES } from "./request.ts";

export const openaiDialect: Dialect = {
  auth: (key) => ({ Authorization: `Bearer ${key}` }),
  request: (chat, target) => ({ path: "/chat/completions", body: requestBody(chat, target) }),
  isReply(json) {
    const choice = choiceIn(json);
    // A reply of which the provider's filter left nothing may come without a message (Azure).
    const isFiltered = finishReasonOf(choice["finish_reason"]) === "content_filter";
    return choice["message"] !== undefined || isFiltered;
  },
  decoder: ({ traits }) => createOpenaiDecoder(traits),
};

export const openaiDialectDefinition: DialectDefinition = {
  name: "openai",
  thinkingSwitches: [...THINKING_SWITCHES.keys(), "none"],
  unsupported: [],
  appended: { path: "/chat/completions", end: /\/(chat|chat\/completions)$/ },
  mediaRules: "openai",
  create: () => openaiDialect,
};
