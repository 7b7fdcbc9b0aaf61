// How a request ended, in the few words by which the console tells requests apart.
import type { AccessRecord } from "../../../core/http/exchange.ts";

/** "4xx" is any other than those named. "5xx": it failed. "cancelled": its client left. */
export const OUTCOMES = ["ok", "401", "402", "429", "4xx", "5xx", "cancelled"] as const;
export type Outcome = (typeof OUTCOMES)[number];

export function outcomeOf({ status, error_code }: AccessRecord): Outcome {
  if (status === 499) return "cancelled";
  if (status >= 500) return "5xx";
  // A stream that broke off after its first event has the status 200, and failed all the same.
  if (status < 400) return error_code === undefined ? "ok" : "5xx";
  return OUTCOMES.find((name) => name === String(status)) ?? "4xx";
}

export const isRefused = (outcome: Outcome): boolean =>
  !["ok", "5xx", "cancelled"].includes(outcome);

/** Monitoring programs ask for these all the time. */
const QUIET = ["/healthz", "/health", "/readyz", "/openapi.json"];
const LISTS = ["/v1/models", "/v1/models/{id}"];

/** Whether the console counts a response of this route. Of lists it counts failures only. */
export const isCounted = (route: string, { status }: AccessRecord): boolean =>
  !QUIET.includes(route) && (!LISTS.includes(route) || status >= 400);
