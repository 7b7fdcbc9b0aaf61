// The outcome of a request: the few groups in which the console counts requests.
import type { AccessRecord } from "../../../core/http/exchange.ts";

/** "4xx": any other 4xx status. "5xx": the request failed. "cancelled": the client disconnected. */
export const OUTCOMES = ["ok", "401", "402", "429", "4xx", "5xx", "cancelled"] as const;
export type Outcome = (typeof OUTCOMES)[number];

export function outcomeOf({ status, error_code }: AccessRecord): Outcome {
  if (status === 499) return "cancelled";
  if (status >= 500) return "5xx";
  // A stream that broke after its first event has the status 200, but failed.
  if (status < 400) return error_code === undefined ? "ok" : "5xx";
  return OUTCOMES.find((name) => name === String(status)) ?? "4xx";
}

export const isRefused = (outcome: Outcome): boolean =>
  !["ok", "5xx", "cancelled"].includes(outcome);

/** Routes that monitoring programs poll. */
const QUIET = ["/healthz", "/health", "/readyz", "/openapi.json"];
const LISTS = ["/v1/models", "/v1/models/{id}"];

/** Whether the console counts a response of this route. For lists, it counts only failures. */
export const isCounted = (route: string, { status }: AccessRecord): boolean =>
  !QUIET.includes(route) && (!LISTS.includes(route) || status >= 400);
