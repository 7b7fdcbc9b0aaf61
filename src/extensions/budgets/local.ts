// The accountant of one process: it decides at once, by what it has in memory. What was spent
// before it began it reads from the books when the first budget is in force.
import { accountLimitName, keyLimitName } from "../../core/accounts/limiter.ts";
import type { Clock } from "../../core/clock.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import type {
  Accountant,
  Decision,
  Estimate,
  Figures,
  Outcome,
  ReserveRequest,
  SpendLimit,
  Spender,
  Ticket,
} from "./contracts.ts";
import { createOpening, type ReadBooks } from "./opening-balance.ts";
import { createPurses } from "./purses.ts";
import { createStanding } from "./standing.ts";
import { createRecent, type Recent } from "./recent.ts";
import { createTokenLimits } from "./token-limits.ts";
import type { BudgetWarnings } from "./warnings.ts";

export interface LocalOptions {
  /** Tells which period it is, and times the minutes of token limits. */
  readonly clock: Clock;
  /** As OpeningOptions.diagnose. */
  readonly diagnose: Diagnose;
  /** Hears how budgets stand, whenever that has changed or one had no room. */
  readonly warnings: BudgetWarnings;
  /** As OpeningOptions.readBooks. */
  readonly readBooks: ReadBooks;
  /** As OpeningOptions.quietMs. */
  readonly quietMs: number;
}

/** What a request can take. */
export type Most = Pick<Estimate, "cost" | "tokens">;

/** It can also keep what this process knows, while a shared store decides. */
export interface LocalAccountant extends Accountant {
  /** Undefined: what was spent before is known. Else resolves with whether it is by then. */
  need(limits: readonly SpendLimit[]): Promise<boolean> | undefined;
  /** The most that a request can take, whichever candidate serves it. */
  most(request: ReserveRequest): Most;
  /** Holds this for a request without asking whether there is room. */
  grant(spender: Spender, most: Most): Ticket;
  /** How these budgets stand by what this process knows. */
  own(limits: readonly SpendLimit[]): readonly Figures[];
}

/** The names under which somebody's money is counted. */
export const namesOf = ({ account, keyId }: Spender): readonly string[] => [
  accountLimitName(account),
  keyLimitName(keyId),
];

function dearest(recent: Recent, { spender, estimates, isOpen }: ReserveRequest): Most {
  let cost = 0n;
  let tokens = 0;
  for (const estimate of estimates) {
    const most = isOpen ? recent.bound(spender.account, estimate) : estimate;
    if (most.cost > cost) cost = most.cost;
    if (most.tokens > tokens) tokens = most.tokens;
  }
  return { cost, tokens };
}

export function createLocalAccountant(options: LocalOptions): LocalAccountant {
  const { clock, warnings } = options;
  const purses = createPurses(clock.now);
  const windows = createTokenLimits(clock.monotonic);
  const recent = createRecent();
  const standing = createStanding(purses, clock);
  const opening = createOpening({ ...options, purses, recent });
  let lastId = 0;

  function refuse(limits: readonly SpendLimit[], refusal: Decision["refusal"]): Decision {
    const tokens = windows.state(limits);
    return { ticket: undefined, refusal, tokens, figures: standing.of(limits) };
  }

  function grant(spender: Spender, { cost, tokens }: Most): Ticket {
    lastId += 1;
    windows.admit(spender.limits, lastId, tokens);
    for (const name of namesOf(spender)) purses.hold(name, cost);
    return { id: lastId, spender, cost, tokens };
  }

  function decide(request: ReserveRequest): Decision {
    const { spender } = request;
    const { limits } = spender;
    const { cost, tokens } = dearest(recent, request);
    for (const figures of standing.of(limits)) {
      const { spent, held, amount } = figures;
      // A request that costs nothing needs no budget.
      if (cost === 0n || spent + held + cost <= amount) continue;
      warnings.take(figures, held === 0n);
      return refuse(limits, { by: "budget", figures, cost });
    }
    const resetMs = windows.roomIn(limits, tokens);
    if (resetMs > 0) return refuse(limits, { by: "tokens", resetMs });
    const ticket = grant(spender, { cost, tokens });
    const figures = standing.of(limits);
    // What this request spends is told from what was spent before it.
    for (const each of figures) warnings.take(each, false);
    return { ticket, refusal: undefined, tokens: windows.state(limits), figures };
  }

  function spend(spender: Spender, outcome: Outcome): void {
    if (outcome.model !== null) recent.add(spender.account, outcome.model, outcome);
    for (const name of namesOf(spender)) purses.spend(name, outcome.cost);
    for (const figures of standing.of(spender.limits)) warnings.take(figures, false);
  }

  /** Does something when it is known what was spent before. */
  function whenKnown<T>(limits: readonly SpendLimit[], work: () => T, instead: () => T) {
    const loading = opening.need(limits);
    return loading ? loading.then((isKnown) => (isKnown ? work() : instead())) : work();
  }

  return {
    need: opening.need,
    most: (request) => dearest(recent, request),
    grant,
    own: standing.of,
    start: opening.start,
    reserve: (request) =>
      whenKnown(
        request.spender.limits,
        () => decide(request),
        () => refuse(request.spender.limits, { by: "store" }),
      ),
    settle(ticket, outcome) {
      const { spender, cost, id } = ticket;
      for (const name of namesOf(spender)) purses.hold(name, -cost);
      windows.correct(spender.limits, id, outcome.tokens);
      spend(spender, outcome);
    },
    spend,
    figures: (limits) =>
      whenKnown(
        limits,
        () => standing.of(limits),
        () => [],
      ),
    known: standing.known,
    close: () => undefined,
  };
}
