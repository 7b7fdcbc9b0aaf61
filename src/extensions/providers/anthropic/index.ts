// Anthropic's Messages API as a wire format of providers. wire.md "Anthropic requests".
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { NativeRequest } from "../../../core/openai/native-request.ts";
import { serverSentEvents } from "../../../core/http/event-reader.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { detailedRefusal, refusal } from "../provider-words/index.ts";
import { findLack, type FindLack } from "../../routing/capabilities/index.ts";
import { findSchemaLack } from "../schemas/index.ts";
import { findMediaLack, scopedStore, type SignatureStore } from "../turns/index.ts";
import { documentRule } from "./blocks.ts";
import { createAnthropicDecoder } from "./decoder.ts";
import { allowedParts, firstUnlisted } from "../native-requests/index.ts";
import { nativeRequestBody, requestBody } from "./request.ts";
import { bindingHeaders } from "./thinking.ts";

const NAME = "anthropic";

/** The native request, if it is in this format. */
const nativeIn = (native: NativeRequest | undefined) =>
  native?.dialect === NAME ? native : undefined;

export const createAnthropicDialect = (signatures: SignatureStore): Dialect => ({
  framing: serverSentEvents,
  request(chat, target) {
    const path = "/v1/messages";
    const native = nativeIn(chat.native);
    if (!native) {
      const body = requestBody(chat, target, signatures);
      return { path, ...bindingHeaders(body, target), body };
    }
    const { body, headers } = allowedParts(native, target.traits);
    return { path, headers, body: nativeRequestBody(body, chat, target) };
  },
  isReply: (json) => asObject(json)["type"] === "message",
  decoder: ({ reasoning }, native) =>
    createAnthropicDecoder(signatures, reasoning, nativeIn(native) !== undefined),
  refusal: (status, headers, body) =>
    detailedRefusal(status, body) ?? refusal(status, headers, body),
});

/** The part of a native request that the model's provider does not accept, if there is one. */
const permissionLack: FindLack = ({ provider, traits }, { native }) => {
  const request = provider.dialect === NAME ? nativeIn(native) : undefined;
  return request && firstUnlisted(request.body, traits.passes);
};

export function install(gateway: Installer): void {
  gateway.fill(slots.dialect(NAME), {
    thinkingSwitches: ["adaptive", "budget", "none"],
    unsupported: ["logprobs", "audio"],
    appended: { path: "/v1/messages", end: /\/(v1|v1\/messages)$/ },
    mediaRules: "anthropic",
    create: (scope) => createAnthropicDialect(scopedStore(NAME, scope)),
  });
  gateway.on(findLack, permissionLack);
  gateway.on(findLack, findSchemaLack(NAME));
  gateway.on(findLack, findMediaLack(NAME, documentRule));
}
