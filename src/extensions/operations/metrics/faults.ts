// The kinds of provider faults. Error codes hide details from clients; kinds help the operator to
// find the cause.
import type { AttemptRecord } from "../../../core/ledger/ledger.ts";

/** All kinds and their meanings. "It" is the provider. */
export const FAULT_KINDS = {
  timeout: "a deadline has passed: it was silent for too long, or its reply reached total_ms",
  overloaded: "it has no room at the moment: 429, 503, 529 and the like",
  unreachable: "no connection could be made",
  refused: "it refuses the gateway's key, account, address or model (401, 402, 403, 404)",
  server: "it failed with another status",
  connection: "the connection broke off, or the request could not be sent",
  reply: "the answer began with a 2xx status, and could not be read to its end",
  request: "it refuses this one request: too long, filtered, invalid",
} as const;

export type FaultKind = keyof typeof FAULT_KINDS;

/** Undefined: the attempt met no fault of the provider. */
export function faultKind({ outcome, status }: AttemptRecord): FaultKind | undefined {
  if (outcome === "model_unavailable") return status === undefined ? "unreachable" : "refused";
  if (outcome === "upstream_error") return brokenKind(status);
  return KINDS[outcome];
}

function brokenKind(status: number | undefined): FaultKind {
  if (status === undefined) return "connection";
  return status < 300 ? "reply" : "server";
}

/** The kinds of outcomes whose HTTP status does not matter. */
const KINDS: { readonly [outcome: string]: FaultKind | undefined } = {
  upstream_timeout: "timeout",
  model_overloaded: "overloaded",
  context_length_exceeded: "request",
  content_filter: "request",
  upstream_rejected: "request",
};
