// OpenAI's format, which most providers and all local servers speak. What a request has in it is
// data: traits.ts and vendors.json.
import type { Dialect, DialectDefinition } from "../dialect.ts";
import { createOpenaiDecoder, choiceIn } from "./decoder.ts";
import { refusal } from "./refusal.ts";
import { requestBody, THINKING_SWITCHES } from "./request.ts";

export const openaiDialect: Dialect = {
  auth: (key) => ({ Authorization: `Bearer ${key}` }),
  request: (chat, target) => ({ path: "/chat/completions", body: requestBody(chat, target) }),
  isReply: (json) => choiceIn(json)["message"] !== undefined,
  decoder: createOpenaiDecoder,
  refusal,
};

export const openaiDialectDefinition: DialectDefinition = {
  name: "openai",
  thinkingSwitches: [...THINKING_SWITCHES.keys(), "none"],
  unsupported: [],
  appended: { path: "/chat/completions", end: /\/(chat|chat\/completions)$/ },
  mediaRules: "openai",
  create: () => openaiDialect,
};
