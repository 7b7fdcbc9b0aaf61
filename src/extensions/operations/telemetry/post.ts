// Sends one batch over HTTP (POST /v1/traces), and classifies the collector's answer.
import type { Clock } from "../../../core/clock.ts";
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { retryAfterMs } from "../../../core/providers/provider-error.ts";
import { readAll } from "../../../core/upstream/body.ts";
import type { SpanSender, SendResult } from "./exporter.ts";
import type { CollectorSettings } from "./settings.ts";

/** Status codes after which the same batch may be sent again. */
const RETRYABLE = [429, 502, 503, 504];
/** The most bytes of an answer, which is a short JSON document. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** `envelope` joins spans, as JSON, to the body of a request. */
export function createSend(
  { endpoint, headers }: CollectorSettings,
  envelope: (spans: readonly string[]) => string,
  clock: Clock,
): SpanSender {
  const allHeaders = { ...Object.fromEntries(headers), "content-type": "application/json" };
  return async (spans, signal) => {
    try {
      const response = await fetch(`${endpoint}/v1/traces`, {
        method: "POST",
        headers: allHeaders,
        body: envelope(spans),
        redirect: "manual", // following it would send the secret headers to another address
        signal,
      });
      const text = response.body ? await readAll(response.body, MAX_ANSWER_BYTES) : "";
      return resultOf(response, text, clock.now());
    } catch (error) {
      return { rejected: Infinity, detail: failureText(error, signal), isTemporary: true };
    }
  };
}

function resultOf({ status, headers, ok }: Response, text: string, now: number): SendResult {
  if (ok) return { rejected: rejectedIn(text), detail: "the collector rejected them" };
  return {
    rejected: Infinity,
    detail: `the collector answered with status ${status}`,
    isTemporary: RETRYABLE.includes(status),
    afterMs: retryAfterMs(headers.get("retry-after") ?? "", now),
  };
}

/** The number of rejected spans in a partial success. It may be a number or a string of digits. */
function rejectedIn(text: string): number {
  const { rejectedSpans } = asObject(asObject(parseJson(text))["partialSuccess"]);
  const rejected = Number(rejectedSpans ?? 0);
  return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
}

/** Why there is no answer, without the address, which may be internal. */
function failureText(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return "the collector did not answer in time";
  const { code } = ((error as Error).cause ?? {}) as { readonly code?: unknown };
  return `the collector cannot be reached: ${typeof code === "string" ? code : "no connection"}`;
}
