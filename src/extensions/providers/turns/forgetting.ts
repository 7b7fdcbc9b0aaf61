// What happens if a provider refuses signed reasoning that was sent back to it: it is forgotten,
// and the gateway asks again without it.
import type { Dialect } from "../../../core/providers/dialect.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";
import { modelStore, type SignatureStore } from "./signatures.ts";

/**
 * A dialect for one attempt, which `create` makes for the stores of models. If the provider's words
 * for an error match `unreadable`, the next attempt goes without the reasoning that this one sent.
 */
export function forgetting(
  signatures: SignatureStore,
  unreadable: RegExp,
  create: (storeFor: (model: string) => SignatureStore) => Dialect,
): Dialect {
  /** The ids of the reasoning that was sent. */
  const sent: string[] = [];
  function get(id: string): string | undefined {
    const text = signatures.get(id);
    if (text) sent.push(id);
    return text;
  }
  const dialect = create((model) => modelStore({ ...signatures, get }, model));

  /** The error of this JSON, or one after which the gateway asks again, without the reasoning. */
  function orTemporary(error: ProviderError, json: unknown): ProviderError {
    const { response = json } = asObject(json);
    const { error: stated = response } = asObject(response);
    const words = `${asString(asObject(stated)["code"])} ${error.detail.providerMessage}`;
    if (!unreadable.test(words) || sent.length === 0) return error;
    for (const id of sent) signatures.set(id, "");
    const detail = { ...error.detail, operator: undefined, fromContent: true } as const;
    const temporary = new ProviderError("upstream_error", error.message, detail);
    temporary.usage = error.usage;
    return temporary;
  }

  return {
    ...dialect,
    decoder(target, native) {
      const decoder = dialect.decoder(target, native);
      if (sent.length === 0) return decoder;
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
    refusal: (status, headers, body) => orTemporary(dialect.refusal(status, headers, body), body),
  };
}
