// Grants and settles requests for one process, or for all workers of one gateway. Decides by the
// figures in memory or, if gateways share their budgets, asks the shared store. This process's own
// spending and holds are in memory in both cases.
import type { Config } from "../../../core/config.ts";
import type { Offer } from "../estimates/index.ts";
import { waitAtMost } from "../ledger/index.ts";
import {
  REFUSED_BY_STORE,
  sharedBudgetsSlot,
  type Accountant,
  type Decision,
  type ReserveRequest,
} from "./contracts.ts";
import { budgetsIn } from "./limits.ts";
import { createPurses, type Budget, type Figures } from "./purses.ts";
import { createOpeningSpend, type ReadingContext } from "./read-books.ts";
import { createTokenWindows, type Admission } from "../token-windows/index.ts";
import { createWarnings } from "./warnings.ts";

/** How long close() waits for requests that have just ended to be settled. */
const LAST_SETTLES_MS = 2_000;

/** A request that holds money or tokens. */
interface Running {
  readonly request: ReserveRequest;
  /** What is held, in pico-units. */
  readonly cost: bigint;
  readonly admission: Admission;
}

/** A request that costs nothing needs no budget. */
const hasRoom = ({ amount, spent, held }: Figures, { cost, room }: Offer): boolean =>
  cost === 0n || spent + held + room <= amount;

/** Throws as sharedBudgetsSlot. */
export function createAccountant(context: ReadingContext): Accountant {
  const { clock, installed } = context;
  const purses = createPurses(clock.now);
  const windows = createTokenWindows(clock.monotonic);
  const warn = createWarnings(context.diagnose);
  const shared = installed.filled(sharedBudgetsSlot)?.({ ...context, purses, warn });
  /** By the tokens of the requests. */
  const running = new Map<string, Running>();
  let allSettled = (): void => undefined;
  let config: Config | undefined;
  /**
   * By their names: those of the configuration, and of other keys that have asked since. Undefined:
   * the configuration has none for that name. A request that was admitted by an earlier one must
   * not bring it back.
   */
  let budgets = new Map<string, Budget | undefined>();
  const shown = (): readonly Budget[] =>
    [...budgets.values()].filter((budget) => budget !== undefined);
  const opening = createOpeningSpend(context, async (spent) => {
    for (const each of spent) purses.spend(each);
    await shared?.open(shown());
  });

  /** How they stand. The operator is warned where much of one is spent. */
  function look(asked: readonly Budget[]): readonly Figures[] {
    const figures = asked.map(purses.figures);
    for (const each of figures) warn(each);
    return figures;
  }

  /** Decides at once, by the figures in memory. */
  function reserveHere({ spender, offers, tokens }: ReserveRequest): Decision {
    // Warns of levels that were reached before this request.
    const figures = look(spender.budgets);
    const offer = offers.find((each) => figures.every((budget) => hasRoom(budget, each)));
    if (!offer) {
      const least = offers.at(-1)!;
      const short = figures.find((budget) => !hasRoom(budget, least))!;
      return { refusal: { by: "budget", figures: short, cost: least.cost } };
    }
    const resetMs = windows.roomIn(spender.windows, tokens);
    if (resetMs > 0) return { refusal: { by: "tokens", resetMs } };
    purses.hold(spender, offer.cost);
    return { offer };
  }

  return {
    async open(next) {
      const isFirst = config === undefined;
      if (next !== config) budgets = budgetsIn(next);
      config = next;
      if (opening.isKnown()) await shared?.open(shown());
      else if (shown().length > 0) await opening.know(isFirst);
    },
    async reserve(request) {
      const { spender, token, tokens } = request;
      for (const budget of spender.budgets)
        if (!budgets.has(budget.name)) budgets.set(budget.name, budget);
      if (spender.budgets.length > 0 && !(await opening.know())) return REFUSED_BY_STORE;
      const decision = (await shared?.reserve(request)) ?? reserveHere(request);
      const { offer } = decision;
      if (offer) {
        const admission = windows.admit(spender.windows, tokens);
        running.set(token, { request, cost: offer.cost, admission });
      }
      return { tokens: windows.state(spender.windows), ...decision };
    },
    settle(token = "", outcome) {
      if (outcome) purses.spend(outcome);
      const ended = running.get(token);
      if (!ended) return;
      running.delete(token);
      const { request, cost, admission } = ended;
      const { spender } = request;
      const tokens = outcome?.tokens ?? 0;
      purses.hold(spender, -cost);
      windows.correct(spender.windows, admission, tokens);
      look(spender.budgets);
      shared?.settle(request, tokens);
      if (running.size === 0) allSettled();
    },
    standing() {
      if (!opening.isKnown()) return [];
      return shared ? shared.standing(shown()) : shown().map(purses.figures);
    },
    async close() {
      const settled = new Promise<void>((resolve) => {
        allSettled = resolve;
      });
      if (shared && running.size > 0) await waitAtMost(clock, LAST_SETTLES_MS, settled);
      await shared?.close();
    },
  };
}
