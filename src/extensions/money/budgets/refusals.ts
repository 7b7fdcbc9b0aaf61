// What clients are told: that a budget or their tokens per minute are used up, and in headers how
// many tokens are left. src/manual/budgets.md "What is held", "Tokens per minute".
import type { ServerResponse } from "node:http";
import { formatMoney } from "../../../core/ledger/price.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import type { TokenState } from "../token-limits/index.ts";
import type { Figures } from "../spent/index.ts";
import type { Refusal } from "./contracts.ts";
import { accountOf } from "./limits.ts";

const secondsIn = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/** The error of a refused request. `currency`: that of its amounts. */
export function refusalError(refusal: Refusal, currency: string): ApiError {
  if (refusal.by === "store")
    return new ApiError("server_overloaded", "The budgets cannot be looked up at the moment.", {
      headers: { "Retry-After": "1" },
    });
  if (refusal.by === "budget")
    return new ApiError("insufficient_balance", balanceText(refusal, currency));
  const seconds = secondsIn(refusal.resetMs);
  return new ApiError(
    "tokens_per_minute_exceeded",
    `Tokens-per-minute limit exceeded. Retry after ${seconds} seconds.`,
    { headers: { "Retry-After": String(seconds) } },
  );
}

function balanceText(
  { figures, cost }: Extract<Refusal, { by: "budget" }>,
  currency: string,
): string {
  const { name, amount, spent, held, ends } = figures;
  const whose = accountOf(name) === undefined ? "this API key" : "this account";
  const left = leftOf(figures);
  const heldText = held > 0n ? `, and ${formatMoney(held)} is held for requests that run` : "";
  const endText = ends === null ? "It is not renewed." : `It is renewed at ${ends}.`;
  return (
    `Insufficient balance: of the budget of ${whose}, ${formatMoney(amount)} ${currency}, ` +
    `${formatMoney(spent)} is spent${heldText}. ${formatMoney(left)} is left, and this request ` +
    `may cost ${formatMoney(cost)}. ${endText}`
  );
}

/** What of a budget is neither spent nor held. */
export function leftOf({ amount, spent, held }: Figures): bigint {
  const left = amount - spent - held;
  return left > 0n ? left : 0n;
}

/** Tells the client of its limit of tokens per minute. */
export function setTokenHeaders(res: ServerResponse, { limit, remaining, resetMs }: TokenState) {
  res.setHeader("x-ratelimit-limit-tokens", limit);
  res.setHeader("x-ratelimit-remaining-tokens", remaining);
  res.setHeader("x-ratelimit-reset-tokens", `${secondsIn(resetMs)}s`);
}
