// Anthropic's Messages API as a wire format of providers. WIRE.md 7.
import type { Extension } from "../../core/extension/extension.ts";
import type { NativeRequest } from "../../core/openai/native-request.ts";
import type { Dialect, DialectDefinition } from "../../core/providers/dialect.ts";
import { asObject } from "../../core/schema/untrusted-json.ts";
import { refusal } from "../provider-words/index.ts";
import { createSignatureStore, scopedStore, type SignatureStore } from "../turns/index.ts";
import { createAnthropicDecoder } from "./decoder.ts";
import { nativeBody, requestBody } from "./request.ts";

/** What all providers of this format have signed while the process runs. */
const allSignatures = createSignatureStore();

const NAME = "anthropic";

/** The client's own request, if it is in this format. */
const ownFormat = (native: NativeRequest | undefined) =>
  native?.dialect === NAME ? native : undefined;

export const createAnthropicDialect = (signatures: SignatureStore): Dialect => ({
  auth: (key) => ({ "x-api-key": key }),
  request(chat, target) {
    const native = ownFormat(chat.native);
    return {
      path: "/v1/messages",
      headers: { "anthropic-version": "2023-06-01", ...native?.headers },
      body: native ? nativeBody(native, chat, target) : requestBody(chat, target, signatures),
    };
  },
  isReply: (json) => asObject(json)["type"] === "message",
  decoder: (_, native) => createAnthropicDecoder(signatures, ownFormat(native) !== undefined),
  refusal,
});

const anthropicDialectDefinition: DialectDefinition = {
  name: NAME,
  thinkingSwitches: ["adaptive", "budget", "none"],
  unsupported: ["logprobs", "audio"],
  appended: { path: "/v1/messages", end: /\/(v1|v1\/messages)$/ },
  mediaRules: "anthropic",
  create: (scope) => createAnthropicDialect(scopedStore(allSignatures, scope)),
};

export const extension: Extension = { name: NAME, dialects: [anthropicDialectDefinition] };
