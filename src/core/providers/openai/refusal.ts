// The meaning of a refusal in OpenAI's format: by its status, and by those codes of OpenAI that are
// more specific. wire.md "Provider errors".
import { systemClock } from "../../clock.ts";
import { asObject, asString } from "../../schema/untrusted-json.ts";
import type { RefusalHeaders } from "../dialect.ts";
import { ProviderError, retryAfterMs, type ProviderErrorCode } from "../provider-error.ts";

interface Meaning {
  readonly code: ProviderErrorCode;
  /** See ProviderErrorDetail. */
  readonly operator?: "key" | "other";
}

/** By the error's code, else by its type, which may be more general. */
const BY_CODE = new Map<unknown, Meaning>([
  ["context_length_exceeded", { code: "context_length_exceeded" }],
  ["content_filter", { code: "content_filter" }],
  ["insufficient_quota", { code: "model_unavailable", operator: "key" }],
]);

/** The first row that matches counts. The last one matches everything. */
const BY_STATUS: readonly (readonly [status: RegExp, meaning: Meaning])[] = [
  [/^(400|413|422)$/, { code: "upstream_rejected" }],
  [/^(401|402|403)$/, { code: "model_unavailable", operator: "key" }],
  [/^(408|409|425|429|503|529)$/, { code: "model_overloaded" }],
  [/^4..$/, { code: "model_unavailable", operator: "other" }],
  [/^.*$/, { code: "upstream_error" }],
];

/** As Dialect.refusal. `now` is the wall clock in milliseconds. */
export function refusal(
  status: number,
  headers: RefusalHeaders,
  body: unknown,
  now = systemClock.now(),
): ProviderError {
  const { code: stated, type, message } = asObject(asObject(body)["error"]);
  const [, byStatus] = BY_STATUS.find(([pattern]) => pattern.test(String(status)))!;
  const { code, operator } = BY_CODE.get(stated) ?? BY_CODE.get(type) ?? byStatus;
  return new ProviderError(code, `the provider answered with status ${status}`, {
    status,
    operator,
    retryAfterMs: retryAfterMs(headers.get("retry-after") ?? "", now),
    providerMessage: asString(message),
  });
}
