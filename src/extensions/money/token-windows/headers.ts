// What clients are told of their limit of tokens per minute (wire.md "Rate limit headers").
import type { ServerResponse } from "node:http";
import type { TokenState } from "./token-windows.ts";

/** As whole seconds, at least one. */
export const secondsIn = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/** Adds the limit to the headers of a response that has not begun. */
export function setTokenHeaders(res: ServerResponse, { limit, remaining, resetMs }: TokenState) {
  res.setHeader("x-ratelimit-limit-tokens", limit);
  res.setHeader("x-ratelimit-remaining-tokens", remaining);
  res.setHeader("x-ratelimit-reset-tokens", `${secondsIn(resetMs)}s`);
}
