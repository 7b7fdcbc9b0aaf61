// Ollama's own API as a wire format of providers. Unlike Ollama's OpenAI-compatible API, it takes
// the size of the context window, so that long prompts are not cut.
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { findLack } from "../../routing/capabilities/index.ts";
import { refusal } from "../provider-words/index.ts";
import { createOllamaDecoder } from "./decoder.ts";
import { jsonLines } from "./json-lines.ts";
import { findMediaLack } from "../turns/index.ts";
import { imageRule, requestBody } from "./request.ts";

const PATH = "/api/chat";

export const ollamaDialect: Dialect = {
  framing: jsonLines,
  request: (chat, target) => ({ path: PATH, body: requestBody(chat, target) }),
  isReply: (json) => asObject(json)["done"] === true,
  decoder: createOllamaDecoder,
  refusal,
};

export function install(gateway: Installer): void {
  gateway.fill(slots.dialect("ollama"), {
    thinkingSwitches: ["think", "none"],
    unsupported: ["logprobs", "audio", "files"],
    appended: { path: PATH, end: /\/(v1|api|api\/chat)$/ },
    mediaRules: "openai",
    create: () => ollamaDialect,
  });
  gateway.on(findLack, findMediaLack("ollama", imageRule));
}
