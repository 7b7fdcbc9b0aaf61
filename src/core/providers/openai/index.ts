// OpenAI's format, which most providers and all local servers speak. The fields of a request are
// data: traits.ts and src/config/vendors.json.
import { serverSentEvents } from "../../http/event-reader.ts";
import type { Dialect, DialectDefinition } from "../dialect.ts";
import { createOpenaiDecoder, choiceIn } from "./decoder.ts";
import { refusal } from "./refusal.ts";
import { requestBody } from "./request.ts";

/** Is appended to base_url. */
export const PATH = "/chat/completions";

export const openaiDialect: Dialect = {
  framing: serverSentEvents,
  request: (chat, target) => ({ path: PATH, body: requestBody(chat, target) }),
  isReply: (json) => Boolean(choiceIn(json)["message"]),
  decoder: createOpenaiDecoder,
  refusal,
};

export const openaiDialectDefinition: DialectDefinition = {
  thinkingSwitches: ["thinking", "reasoning_effort", "none"],
  unsupported: [],
  appended: { path: PATH, end: /\/(chat|chat\/completions)$/ },
  mediaRules: "openai",
  create: () => openaiDialect,
};
