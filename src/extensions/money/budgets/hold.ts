// Fills the slot `hold` of the chat handler: holds the most that a request can cost, and releases
// that when the request is settled. Makes the errors for clients whose budget or tokens per minute
// are used up.
import type { Caller } from "../../../core/accounts/keyring.ts";
import type { AcceptedRequest, HoldFor } from "../../../core/chat/context.ts";
import { randomHex } from "../../../core/ids.ts";
import type { Hold, Settlement } from "../../../core/ledger/ledger.ts";
import { formatMoney } from "../../../core/ledger/price.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import { estimateOf } from "../estimates/index.ts";
import { dayOf, parseMoney } from "../records/index.ts";
import type { Accountant, Refusal, Spender } from "./contracts.ts";
import { spenderOf } from "./limits.ts";
import { printedFigures } from "./status.ts";
import { secondsIn, setTokenHeaders } from "../token-windows/index.ts";

/** As slots.hold. */
export function createHold(accountant: Accountant): HoldFor {
  /** The spender of each caller. A reload makes new callers. */
  const spenders = new WeakMap<Caller, Spender>();

  /** Also counts requests without a hold, because a reload may add a budget. */
  const createSettle =
    ({ account, key_id }: Spender, holdId?: string): Hold["settle"] =>
    (settlement) =>
      accountant.settle(holdId, settlement && { account, key_id, ...amountsOf(settlement) });

  async function reserve(request: AcceptedRequest, spender: Spender): Promise<Hold> {
    const hasBudget = spender.budgets.length > 0;
    const holdId = randomHex(12);
    const estimate = estimateOf(request, hasBudget);
    const { offer, refusal, tokens } = await accountant.reserve({ spender, holdId, ...estimate });
    if (tokens) setTokenHeaders(request.exchange.res, tokens);
    if (!offer) {
      refundRateLimit(request);
      throw refusalError(refusal ?? { by: "unavailable" }, request.config.currency);
    }
    return {
      amount: hasBudget ? formatMoney(offer.cost) : undefined,
      id: holdId,
      maxTokens: offer.maxTokens,
      settle: createSettle(spender, holdId),
    };
  }

  return (request) => {
    const { caller, config } = request;
    const spender = spenders.get(caller) ?? spenderOf(caller, config);
    spenders.set(caller, spender);
    if (spender.budgets.length === 0 && spender.windows.length === 0)
      return { amount: undefined, settle: createSettle(spender) };
    return reserve(request, spender);
  };
}

/** Takes a refused request out of its rate limits, and corrects the header that states the rest. */
function refundRateLimit({ refund, exchange: { res } }: AcceptedRequest): void {
  refund();
  const name = "x-ratelimit-remaining-requests";
  const left = res.getHeader(name);
  if (left !== undefined) res.setHeader(name, Number(left) + 1);
}

/** The day is the one on which the request ended. Its line may be written on the next one. */
const amountsOf = ({ endedAt, cost, usage }: Settlement) => ({
  day: dayOf(endedAt),
  cost: parseMoney(cost),
  tokens: usage.total_tokens,
});

/** Makes the error of a refused request. `currency`: of the amounts in its message. */
function refusalError(refusal: Refusal, currency: string): ApiError {
  if (refusal.by === "budget")
    return new ApiError("insufficient_balance", balanceText(refusal, currency));
  const seconds = refusal.by === "tokens" ? secondsIn(refusal.resetMs) : 1;
  const options = { headers: { "Retry-After": String(seconds) } };
  if (refusal.by === "unavailable") {
    const text = "The budgets cannot be looked up at the moment.";
    return new ApiError("server_overloaded", text, options);
  }
  const text = `Tokens-per-minute limit exceeded. Retry after ${seconds} seconds.`;
  return new ApiError("tokens_per_minute_exceeded", text, options);
}

function balanceText(
  { figures, cost }: Extract<Refusal, { by: "budget" }>,
  currency: string,
): string {
  const { key_id, amount, spent, held, left, ends } = printedFigures(figures, currency);
  const whose = key_id === null ? "this account" : "this API key";
  const heldText = figures.held > 0n ? `, and ${held} is held for running requests` : "";
  const endText = ends === null ? "The budget does not renew." : `The budget renews at ${ends}.`;
  return (
    `Insufficient balance: ${whose} has spent ${spent} of its budget of ${amount} ${currency}` +
    `${heldText}. ${left} is left, and this request may cost ${formatMoney(cost)}. ${endText}`
  );
}
