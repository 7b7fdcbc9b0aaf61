// The hook of the chat handler: holds what a request may cost, and gives it back when the request
// is settled.
import type { Caller } from "../../../core/accounts/keyring.ts";
import type { AcceptedRequest } from "../../../core/chat/context.ts";
import type { Config } from "../../../core/config.ts";
import type { Hold, Settlement } from "../../../core/ledger/ledger.ts";
import { formatMoney } from "../../../core/ledger/price.ts";
import { parseMoney } from "../records/index.ts";
import { estimateOf } from "../estimates/index.ts";
import type { Outcome } from "../spent/index.ts";
import { NO_OUTCOME, type Accountant, type Decision, type Spender } from "./contracts.ts";
import { accountLimit, keyLimit } from "./limits.ts";
import { refusalError, setTokenHeaders } from "./refusals.ts";

const outcomeOf = (settlement: Settlement | undefined): Outcome =>
  settlement
    ? { cost: parseMoney(settlement.cost), tokens: settlement.usage.total_tokens }
    : NO_OUTCOME;

const hasBudget = ({ limits }: Spender): boolean => limits.some(({ budget }) => budget);

/** GatewayPart.hold. */
export function createHold(accountant: Accountant) {
  /** A caller lives as long as its configuration does. */
  const spenders = new WeakMap<Caller, Spender>();

  function spenderOf(caller: Caller, config: Config): Spender {
    const known = spenders.get(caller);
    if (known) return known;
    const { account, keyId, terms } = caller;
    const limits = [accountLimit(account, config), keyLimit(keyId, terms)];
    const spender = {
      account,
      key_id: keyId,
      limits: limits.filter((limit) => limit !== undefined),
    };
    spenders.set(caller, spender);
    return spender;
  }

  /** Holds nothing, and counts what the request comes to: a budget may be put in force later. */
  const counted = (spender: Spender): Hold => ({
    amount: undefined,
    settle(settlement) {
      if (settlement) accountant.spend(spender, outcomeOf(settlement));
    },
  });

  function take(decision: Decision, { exchange, config }: AcceptedRequest): Hold {
    const { ticket, refusal, tokens } = decision;
    if (tokens) setTokenHeaders(exchange.res, tokens);
    if (!ticket) throw refusalError(refusal ?? { by: "store" }, config.currency);
    return {
      amount: hasBudget(ticket.spender) ? formatMoney(ticket.cost) : undefined,
      token: ticket.token,
      maxTokens: ticket.maxTokens,
      settle: (settlement) => accountant.settle(ticket, outcomeOf(settlement)),
    };
  }

  return (request: AcceptedRequest): Hold | Promise<Hold> => {
    const { caller, config } = request;
    const spender = spenderOf(caller, config);
    if (spender.limits.length === 0) return counted(spender);
    const estimate = estimateOf(request, hasBudget(spender));
    const decision = accountant.reserve({ spender, ...estimate });
    return decision instanceof Promise
      ? decision.then((made) => take(made, request))
      : take(decision, request);
  };
}
