// The accountant of one process: it decides at once, by what it has in memory.
import type { Clock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { randomHex } from "../../../core/ids.ts";
import type { Offer } from "../estimates/index.ts";
import {
  createOpening,
  createPurses,
  type Figures,
  type Outcome,
  type ReadSpent,
} from "../spent/index.ts";
import { createTokenLimits } from "../token-limits/index.ts";
import {
  REFUSED_BY_STORE,
  type Accountant,
  type Decision,
  type ReserveRequest,
  type SpendLimit,
  type Spender,
  type Ticket,
} from "./contracts.ts";
import { limitsIn, limitsShown } from "./limits.ts";
import type { BudgetWarnings } from "./warnings.ts";

export interface LocalOptions {
  /** Tells which period it is, and times the minutes of token limits. */
  readonly clock: Clock;
  /** As OpeningOptions.diagnose. */
  readonly diagnose: Diagnose;
  /** Hears how budgets stand, whenever that has changed or one had no room. */
  readonly warnings: BudgetWarnings;
  /** As OpeningOptions.readSpent. */
  readonly readSpent: ReadSpent;
}

/** It can also keep what this process knows, while a shared store decides. */
export interface LocalAccountant extends Accountant {
  /** Undefined: what was spent before is known. Else resolves with whether it is by then. */
  need(limits: readonly SpendLimit[]): Promise<boolean> | undefined;
  /** Holds one of its offers for a request without asking whether there is room. */
  grant(request: ReserveRequest, offer: Offer): Ticket;
  /** How these budgets stand by what this process knows. */
  own(limits: readonly SpendLimit[]): readonly Figures[];
  /** The limits of Accountant.standing. */
  shown(config: Config): readonly SpendLimit[];
}

/** A request that costs nothing needs no budget. */
const hasRoom = ({ amount, spent, held }: Figures, { cost, room }: Offer): boolean =>
  cost === 0n || spent + held + room <= amount;

export function createLocalAccountant(options: LocalOptions): LocalAccountant {
  const { clock, warnings } = options;
  const purses = createPurses(clock.now);
  const windows = createTokenLimits(clock.monotonic);
  const opening = createOpening({ ...options, purses });
  /** Limits that requests had, by their names: those of created keys are in no configuration. */
  const seen = new Map<string, SpendLimit>();
  let lastId = 0;

  function need(limits: readonly SpendLimit[]): Promise<boolean> | undefined {
    for (const limit of limits) if (limit.budget) seen.set(limit.name, limit);
    return opening.need(limits);
  }

  function grant({ spender, tokens }: ReserveRequest, { cost, maxTokens }: Offer): Ticket {
    lastId += 1;
    windows.admit(spender.limits, lastId, tokens);
    purses.hold(spender, cost);
    return { id: lastId, spender, cost, maxTokens, tokens, token: randomHex(12) };
  }

  function decide(request: ReserveRequest): Decision {
    const { spender, offers, tokens } = request;
    const { limits } = spender;
    const before = purses.figures(limits);
    // What this request spends is told from what was spent before it.
    for (const figures of before) warnings.take(figures);
    const least = offers.at(-1)!;
    const short = before.find((figures) => !hasRoom(figures, least));
    if (short) {
      const refusal = { by: "budget", figures: short, cost: least.cost } as const;
      return { refusal, tokens: windows.state(limits) };
    }
    const resetMs = windows.roomIn(limits, tokens);
    if (resetMs > 0) return { refusal: { by: "tokens", resetMs }, tokens: windows.state(limits) };
    const offer = offers.find((each) => before.every((figures) => hasRoom(figures, each)));
    const ticket = grant(request, offer ?? least);
    return { ticket, tokens: windows.state(limits) };
  }

  function spend(spender: Spender, { cost }: Outcome): void {
    purses.spend(spender, cost);
    for (const figures of purses.figures(spender.limits)) warnings.take(figures);
  }

  return {
    need,
    grant,
    own: purses.figures,
    shown: (config) => limitsShown(config, seen),
    async open(config) {
      const loading = opening.need(limitsIn(config));
      opening.begin();
      await loading;
    },
    reserve(request) {
      const loading = need(request.spender.limits);
      if (!loading) return decide(request);
      return loading.then((isKnown) => (isKnown ? decide(request) : REFUSED_BY_STORE));
    },
    settle(ticket, outcome) {
      const { spender, cost, id } = ticket;
      purses.hold(spender, -cost);
      windows.correct(spender.limits, id, outcome.tokens);
      spend(spender, outcome);
    },
    spend,
    standing: (config) => (opening.isKnown() ? purses.figures(limitsShown(config, seen)) : []),
    close: () => undefined,
  };
}
