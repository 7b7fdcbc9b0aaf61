// Anthropic's Messages API as a wire format of providers. WIRE.md 7.
import type { Extension } from "../../core/extension/extension.ts";
import type { Dialect, DialectDefinition } from "../../core/providers/dialect.ts";
import { asObject } from "../../core/schema/untrusted-json.ts";
import { refusal } from "../provider-words/index.ts";
import { createSignatureStore, scopedStore, type SignatureStore } from "../turns/index.ts";
import { createAnthropicDecoder } from "./decoder.ts";
import { requestBody } from "./request.ts";

/** What all providers of this format have signed while the process runs. */
const allSignatures = createSignatureStore();

export const createAnthropicDialect = (signatures: SignatureStore): Dialect => ({
  auth: (key) => ({ "x-api-key": key }),
  request: (chat, target) => ({
    path: "/v1/messages",
    headers: { "anthropic-version": "2023-06-01" },
    body: requestBody(chat, target, signatures),
  }),
  isReply: (json) => asObject(json)["type"] === "message",
  decoder: () => createAnthropicDecoder(signatures),
  refusal,
});

const anthropicDialectDefinition: DialectDefinition = {
  name: "anthropic",
  thinkingSwitches: ["adaptive", "budget", "none"],
  unsupported: ["logprobs", "audio"],
  appended: { path: "/v1/messages", end: /\/(v1|v1\/messages)$/ },
  mediaRules: "anthropic",
  create: (scope) => createAnthropicDialect(scopedStore(allSignatures, scope)),
};

export const extension: Extension = { name: "anthropic", dialects: [anthropicDialectDefinition] };
