// Anthropic's Messages API as a wire format of providers. wire.md "Anthropic requests".
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { NativeRequest } from "../../../core/openai/native-request.ts";
import { serverSentEvents } from "../../../core/http/event-reader.ts";
import type { Dialect, DialectDefinition } from "../../../core/providers/dialect.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { detailedRefusal, refusal } from "../provider-words/index.ts";
import { mediaFault } from "../../routing/capabilities/index.ts";
import {
  createSignatureStore,
  mediaFaultIn,
  scopedStore,
  type SignatureStore,
} from "../turns/index.ts";
import { documentRule } from "./blocks.ts";
import { createAnthropicDecoder } from "./decoder.ts";
import { firstUnlisted, refuseUnlisted, withoutUnlisted } from "./passes.ts";
import { nativeBody, requestBody } from "./request.ts";

/** The signed reasoning of all providers of this format since the process started. */
const allSignatures = createSignatureStore();

const NAME = "anthropic";

/** The client's own request, if it is in this format. */
const ownFormat = (native: NativeRequest | undefined) =>
  native?.dialect === NAME ? native : undefined;

export const createAnthropicDialect = (signatures: SignatureStore): Dialect => ({
  framing: serverSentEvents,
  request(chat, target) {
    const path = "/v1/messages";
    const native = ownFormat(chat.native);
    if (!native) return { path, body: requestBody(chat, target, signatures) };
    const { passes } = target.traits;
    refuseUnlisted(native.body, passes);
    const { body, headers } = withoutUnlisted(native, passes);
    return { path, headers, body: nativeBody(body, chat, target) };
  },
  isReply: (json) => asObject(json)["type"] === "message",
  decoder: ({ reasoning }, native) =>
    createAnthropicDecoder(signatures, reasoning, ownFormat(native) !== undefined),
  refusal: (status, headers, body) =>
    detailedRefusal(status, body) ?? refusal(status, headers, body),
});

const anthropicDialectDefinition: DialectDefinition = {
  name: NAME,
  thinkingSwitches: ["adaptive", "budget", "none"],
  unsupported: ["logprobs", "audio"],
  appended: { path: "/v1/messages", end: /\/(v1|v1\/messages)$/ },
  mediaRules: "anthropic",
  create: (scope) => createAnthropicDialect(scopedStore(allSignatures, scope)),
};

/**
 * Of the candidates that speak the Messages API those are asked to which all of a client's own
 * request may pass. Where there is none, the refusal of the first candidate is the answer.
 */
const amongPermitted =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const native = ownFormat(chat.native);
    const permitted = candidates.filter(
      ({ provider, traits }) =>
        !native || provider.dialect !== NAME || !firstUnlisted(native.body, traits.passes),
    );
    return complete(chat, permitted.length > 0 ? permitted : candidates, deliver, context);
  };

export function install(gateway: Installer): void {
  gateway.fill(slots.dialect(NAME), anthropicDialectDefinition);
  gateway.around(() => amongPermitted);
  gateway.on(mediaFault, mediaFaultIn(NAME, documentRule));
}
