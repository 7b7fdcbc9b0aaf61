// OpenAI's Responses API as a wire format of providers. OpenAI's newest models think and call tools
// in one reply only here. Nothing is stored at the provider: each request has the whole
// conversation. wire.md "Responses API of providers".
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { serverSentEvents } from "../../../core/http/event-reader.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import { refusal } from "../provider-words/index.ts";
import { forgetting, scopedStore, type SignatureStore } from "../turns/index.ts";
import { createResponsesDecoder, isReply } from "./decoder.ts";
import { requestBody } from "./request.ts";

const NAME = "responses";
const PATH = "/responses";

/**
 * The words of a provider that cannot open the sealed reasoning, such as another account's, or
 * looks for it by its id. Azure states no code, and servers between may state their own or
 * refuse it inside a stream.
 */
const UNREADABLE = /encrypted.content|\brs_/i;

export const createResponsesDialect = (signatures: SignatureStore): Dialect =>
  forgetting(signatures, UNREADABLE, (storeFor) => ({
    framing: serverSentEvents,
    request: (chat, target) => ({
      path: PATH,
      body: requestBody(chat, target, storeFor(target.upstreamModel)),
    }),
    isReply,
    decoder: ({ upstreamModel }) => createResponsesDecoder(storeFor(upstreamModel)),
    refusal,
  }));

export function install(gateway: Installer): void {
  gateway.fill(slots.dialect(NAME), {
    thinkingSwitches: ["reasoning_effort", "no_summary", "none"],
    unsupported: ["audio"],
    appended: { path: PATH, end: /\/(responses|chat|chat\/completions)$/ },
    mediaRules: "openai",
    create: (scope) => createResponsesDialect(scopedStore(NAME, scope)),
  });
}
