// The accountant of one process: it decides at once, by what it has in memory. What was spent
// before it began it reads from the books when the first budget is in force.
import { accountLimitName, keyLimitName } from "../../core/accounts/limiter.ts";
import type { Clock } from "../../core/clock.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import type {
  Accountant,
  Decision,
  Figures,
  Offer,
  Outcome,
  ReserveRequest,
  SpendLimit,
  Spender,
  Ticket,
} from "./contracts.ts";
import { createOpening, type ReadBooks } from "./opening-balance.ts";
import { createPurses } from "./purses.ts";
import { createStanding } from "./standing.ts";
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

/** It can also keep what this process knows, while a shared store decides. */
export interface LocalAccountant extends Accountant {
  /** Undefined: what was spent before is known. Else resolves with whether it is by then. */
  need(limits: readonly SpendLimit[]): Promise<boolean> | undefined;
  /** Holds one of its offers for a request without asking whether there is room. */
  grant(request: ReserveRequest, offer: Offer): Ticket;
  /** How these budgets stand by what this process knows. */
  own(limits: readonly SpendLimit[]): readonly Figures[];
}

/** The names under which somebody's money is counted. */
export const namesOf = ({ account, keyId }: Spender): readonly string[] => [
  accountLimitName(account),
  keyLimitName(keyId),
];

/** A request that costs nothing needs no budget. */
const hasRoom = ({ amount, spent, held }: Figures, { cost, room }: Offer): boolean =>
  cost === 0n || spent + held + room <= amount;

export function createLocalAccountant(options: LocalOptions): LocalAccountant {
  const { clock, warnings } = options;
  const purses = createPurses(clock.now);
  const windows = createTokenLimits(clock.monotonic);
  const standing = createStanding(purses, clock);
  const opening = createOpening({ ...options, purses });
  let lastId = 0;

  function refuse(limits: readonly SpendLimit[], refusal: Decision["refusal"]): Decision {
    const tokens = windows.state(limits);
    return { ticket: undefined, refusal, tokens, figures: standing.of(limits) };
  }

  function grant({ spender, tokens }: ReserveRequest, { cost, maxTokens }: Offer): Ticket {
    lastId += 1;
    windows.admit(spender.limits, lastId, tokens);
    for (const name of namesOf(spender)) purses.hold(name, cost);
    return { id: lastId, spender, cost, maxTokens, tokens };
  }

  function decide(request: ReserveRequest): Decision {
    const { spender, offers, tokens } = request;
    const { limits } = spender;
    const before = standing.of(limits);
    // What this request spends is told from what was spent before it.
    for (const figures of before) warnings.take(figures);
    const least = offers.at(-1)!;
    const short = before.find((figures) => !hasRoom(figures, least));
    if (short) return refuse(limits, { by: "budget", figures: short, cost: least.cost });
    const resetMs = windows.roomIn(limits, tokens);
    if (resetMs > 0) return refuse(limits, { by: "tokens", resetMs });
    const offer = offers.find((each) => before.every((figures) => hasRoom(figures, each)));
    const ticket = grant(request, offer ?? least);
    const figures = standing.of(limits);
    return { ticket, refusal: undefined, tokens: windows.state(limits), figures };
  }

  function spend(spender: Spender, outcome: Outcome): void {
    for (const name of namesOf(spender)) purses.spend(name, outcome.cost);
    for (const figures of standing.of(spender.limits)) warnings.take(figures);
  }

  /** Does something when it is known what was spent before. */
  function whenKnown<T>(limits: readonly SpendLimit[], work: () => T, instead: () => T) {
    const loading = opening.need(limits);
    return loading ? loading.then((isKnown) => (isKnown ? work() : instead())) : work();
  }

  return {
    need: opening.need,
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
