// Gemini's generateContent and streamGenerateContent as a wire format of providers. wire.md "Gemini
// requests".
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { serverSentEvents } from "../../../core/http/event-reader.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import { candidateIn, createGeminiDecoder, isBlocked } from "./decoder.ts";
import { refusal } from "../provider-words/index.ts";
import { findLack } from "../../routing/capabilities/index.ts";
import { findMediaLack, forgetting, scopedStore, type SignatureStore } from "../turns/index.ts";
import { requestBody } from "./request.ts";

/** The words of Google for a signature of another project, model or cloud. */
const UNREADABLE = /thought.signature/i;

export const createGeminiDialect = (signatures: SignatureStore): Dialect =>
  forgetting(signatures, UNREADABLE, (storeFor) => ({
    framing: serverSentEvents,
    request(chat, target) {
      const { upstreamModel } = target;
      const model = upstreamModel.includes("/") ? upstreamModel : `models/${upstreamModel}`;
      const method = chat.stream ? "streamGenerateContent?alt=sse" : "generateContent";
      const body = requestBody(chat, target, storeFor(upstreamModel));
      return { path: `/v1beta/${model}:${method}`, body };
    },
    isReply: (json) => candidateIn(json) !== undefined || isBlocked(json),
    // Only the Messages API renames calls.
    decoder: ({ upstreamModel }, native) =>
      createGeminiDecoder(storeFor(upstreamModel), native?.dialect === "anthropic"),
    refusal,
  }));

export function install(gateway: Installer): void {
  gateway.fill(slots.dialect("gemini"), {
    thinkingSwitches: ["level", "budget", "none"],
    unsupported: [],
    appended: { path: "/v1beta/models/...", end: /\/v1beta(\/.*)?$/ },
    mediaRules: "gemini",
    create: (scope) => createGeminiDialect(scopedStore("gemini", scope)),
  });
  gateway.on(findLack, findMediaLack("gemini"));
}
