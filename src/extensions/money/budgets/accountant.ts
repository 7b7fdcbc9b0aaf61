// Grants and settles requests for one process, or for all workers of one gateway. It decides by the
// figures in memory or, if gateways share their budgets, asks the shared store. In both cases it
// counts this gateway's own spending and holds in memory.
import type { Config } from "../../../core/config.ts";
import type { Offer } from "../estimates/index.ts";
import { waitAtMost } from "../ledger/index.ts";
import {
  REFUSED_AS_UNAVAILABLE,
  sharedBudgetsSlot,
  type Accountant,
  type Decision,
  type ReserveRequest,
} from "./contracts.ts";
import { budgetsIn } from "./limits.ts";
import { createSpendCounters, type Budget, type Figures } from "./spend-counters.ts";
import { createOpeningSpend, type ReadingContext } from "./read-books.ts";
import { createTokenWindows, type Admission } from "../token-windows/index.ts";
import { createWarnings } from "./warnings.ts";

/** How long close() waits until requests that have just ended are settled. */
const LAST_SETTLES_MS = 2_000;

/** A granted request that is not settled yet. */
interface Granted {
  readonly request: ReserveRequest;
  /** The amount held for it, in pico-units. */
  readonly cost: bigint;
  /** Its tokens in the token windows. */
  readonly admission: Admission;
}

/** Whether a budget has room for an offer. An offer that costs nothing always fits. */
const hasRoom = ({ amount, spent, held }: Figures, { cost, room }: Offer): boolean =>
  cost === 0n || spent + held + room <= amount;

/** Throws a ValidationError as sharedBudgetsSlot does. */
export function createAccountant(context: ReadingContext): Accountant {
  const { clock, installed } = context;
  const counters = createSpendCounters(clock.now);
  const windows = createTokenWindows(clock.monotonic);
  const warn = createWarnings(context.diagnose);
  const shared = installed.filled(sharedBudgetsSlot)?.({ ...context, counters, warn });
  /** The granted requests, by ReserveRequest.holdId. */
  const running = new Map<string, Granted>();
  let onAllSettled = (): void => undefined;
  let config: Config | undefined;
  /**
   * The budgets of the configuration, and of created keys that have asked since it came into force,
   * by their names. Undefined: the configuration has this account or key without a budget, so that
   * a request of an earlier configuration does not bring its budget back.
   */
  let budgets = new Map<string, Budget | undefined>();
  const knownBudgets = (): readonly Budget[] =>
    [...budgets.values()].filter((budget) => budget !== undefined);
  const openingSpend = createOpeningSpend(context, async (spent) => {
    for (const each of spent) counters.spend(each);
    await shared?.open(knownBudgets());
  });

  /** Decides by the figures in memory. */
  function reserveInMemory({ spender, offers, tokens }: ReserveRequest): Decision {
    const figures = spender.budgets.map(counters.figures);
    for (const each of figures) warn(each);
    const offer = offers.find((each) => figures.every((budget) => hasRoom(budget, each)));
    if (!offer) {
      const smallest = offers.at(-1)!;
      const exceeded = figures.find((budget) => !hasRoom(budget, smallest))!;
      return { refusal: { by: "budget", figures: exceeded, cost: smallest.cost } };
    }
    const resetMs = windows.msUntilRoom(spender.windows, tokens);
    if (resetMs > 0) return { refusal: { by: "tokens", resetMs } };
    counters.hold(spender, offer.cost);
    return { offer };
  }

  return {
    async open(next) {
      const isFirst = config === undefined;
      if (next !== config) budgets = budgetsIn(next);
      config = next;
      if (openingSpend.isKnown()) await shared?.open(knownBudgets());
      else if (knownBudgets().length > 0) await openingSpend.ensureKnown(isFirst);
    },
    async reserve(request) {
      const { spender, holdId, tokens } = request;
      for (const budget of spender.budgets)
        if (!budgets.has(budget.name)) budgets.set(budget.name, budget);
      if (spender.budgets.length > 0 && !(await openingSpend.ensureKnown()))
        return REFUSED_AS_UNAVAILABLE;
      const decision = (await shared?.reserve(request)) ?? reserveInMemory(request);
      const { offer } = decision;
      if (offer) {
        const admission = windows.admit(spender.windows, tokens);
        running.set(holdId, { request, cost: offer.cost, admission });
      }
      return { tokens: windows.state(spender.windows), ...decision };
    },
    settle(holdId = "", outcome) {
      if (outcome) counters.spend(outcome);
      const ended = running.get(holdId);
      if (!ended) return;
      running.delete(holdId);
      const { request, cost, admission } = ended;
      const { spender } = request;
      const tokens = outcome?.tokens ?? 0;
      counters.hold(spender, -cost);
      windows.correct(spender.windows, admission, tokens);
      for (const budget of spender.budgets) warn(counters.figures(budget));
      shared?.settle(request, tokens);
      if (running.size === 0) onAllSettled();
    },
    figures() {
      if (!openingSpend.isKnown()) return [];
      return shared ? shared.figures(knownBudgets()) : knownBudgets().map(counters.figures);
    },
    async close() {
      const settled = new Promise<void>((resolve) => {
        onAllSettled = resolve;
      });
      if (shared && running.size > 0) await waitAtMost(clock, LAST_SETTLES_MS, settled);
      await shared?.close();
    },
  };
}
