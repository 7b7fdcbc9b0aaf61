// OpenAI's Responses API as a wire format of providers. OpenAI's newest models think and call tools
// in one reply only here. Nothing is stored at the provider: each request has the whole
// conversation. wire.md "Responses API of providers".
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { serverSentEvents } from "../../../core/http/event-reader.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { refusal } from "../provider-words/index.ts";
import { modelStore, scopedStore, type SignatureStore } from "../turns/index.ts";
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

/** A dialect for one attempt: if the provider cannot open its reasoning, the next goes without. */
export function createResponsesDialect(signatures: SignatureStore): Dialect {
  /** Forgets the reasoning that was sent. False: none was. */
  let forget = (): boolean => false;

  /** The error of this JSON, or one after which the gateway asks again, without the reasoning. */
  function orTemporary(error: ProviderError, json: unknown): ProviderError {
    const { response = json } = asObject(json);
    const { error: stated = response } = asObject(response);
    const words = `${asObject(stated)["code"]} ${error.detail.providerMessage}`;
    if (!UNREADABLE.test(words) || !forget()) return error;
    const detail = { ...error.detail, operator: undefined, fromContent: true };
    const temporary = new ProviderError("upstream_error", error.message, detail);
    temporary.usage = error.usage;
    return temporary;
  }

  return {
    framing: serverSentEvents,
    request(chat, target) {
      const kept = modelStore(signatures, target.upstreamModel);
      const sent: string[] = [];
      forget = () => {
        for (const id of sent) kept.set(id, "");
        return sent.length > 0;
      };
      const noting: SignatureStore = {
        ...kept,
        get(id) {
          const text = kept.get(id);
          if (text) sent.push(id);
          return text;
        },
      };
      return { path: PATH, body: requestBody(chat, target, noting) };
    },
    isReply,
    decoder({ upstreamModel }) {
      const decoder = createResponsesDecoder(modelStore(signatures, upstreamModel));
      return {
        ...decoder,
        push(json) {
          try {
            return decoder.push(json);
          } catch (error) {
            throw error instanceof ProviderError ? orTemporary(error, json) : error;
          }
        },
      };
    },
    refusal: (status, headers, body) => orTemporary(refusal(status, headers, body), body),
  };
}

export function install(gateway: Installer): void {
  gateway.fill(slots.dialect(NAME), {
    thinkingSwitches: ["reasoning_effort", "no_summary", "none"],
    unsupported: ["audio"],
    appended: { path: PATH, end: /\/(responses|chat|chat\/completions)$/ },
    mediaRules: "openai",
    create: (scope) => createResponsesDialect(scopedStore(NAME, scope)),
  });
}
