// Grants and settles requests for one process, or for all workers of one gateway. Decides by the
// figures in memory or, if gateways share their budgets, asks the shared store. This process's own
// spending and holds are in memory in both cases.
import type { Config } from "../../../core/config.ts";
import type { Offer } from "../estimates/index.ts";
import {
  createOpening,
  type BooksContext,
  createPurses,
  type Budget,
  type Figures,
} from "../spent/index.ts";
import {
  REFUSED_BY_STORE,
  sharedBudgetsSlot,
  type Accountant,
  type Decision,
  type ReserveRequest,
} from "./contracts.ts";
import { budgetsIn } from "./limits.ts";
import { createTokenWindows, type Admission } from "./token-windows.ts";
import { createWarnings } from "./warnings.ts";

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

/** The first offer for which all budgets have room; else the refusal of the last, by the first. */
function firstWithRoom(budgets: readonly Figures[], offers: readonly Offer[]): Decision {
  const offer = offers.find((each) => budgets.every((figures) => hasRoom(figures, each)));
  if (offer) return { offer };
  const least = offers.at(-1)!;
  const figures = budgets.find((each) => !hasRoom(each, least))!;
  return { refusal: { by: "budget", figures, cost: least.cost } };
}

/** Throws as sharedBudgetsSlot. */
export function createAccountant(context: BooksContext): Accountant {
  const { clock, installed } = context;
  const purses = createPurses(clock.now);
  const windows = createTokenWindows(clock.monotonic);
  const opening = createOpening(context, purses);
  const warn = createWarnings(context.diagnose);
  const shared = installed.filled(sharedBudgetsSlot)?.({ ...context, purses, warn });
  /** By the tokens of the requests. */
  const running = new Map<string, Running>();
  let config: Config | undefined;
  /** By their names: those of the configuration, and of other keys that have asked since. */
  let budgets = new Map<string, Budget | undefined>();

  /** How they stand. The operator is warned where much of one is spent. */
  function look(budgets: readonly Budget[]): readonly Figures[] {
    const figures = budgets.map(purses.figures);
    for (const each of figures) warn(each);
    return figures;
  }

  /** Decides at once, by the figures in memory. */
  function reserveHere({ spender, offers, tokens }: ReserveRequest): Decision {
    // Warns of levels that were reached before this request.
    const decision = firstWithRoom(look(spender.budgets), offers);
    if (!decision.offer) return decision;
    const resetMs = windows.roomIn(spender.windows, tokens);
    if (resetMs > 0) return { refusal: { by: "tokens", resetMs } };
    purses.hold(spender, decision.offer.cost);
    return decision;
  }

  const shown = (): readonly Budget[] =>
    [...budgets.values()].filter((budget) => budget !== undefined);

  return {
    async open(next) {
      if (next !== config) budgets = budgetsIn(next);
      config = next;
      if (await opening.need(shown())) await shared?.open(shown());
    },
    async reserve(request) {
      const { spender, token, tokens } = request;
      for (const budget of spender.budgets)
        if (!budgets.has(budget.name)) budgets.set(budget.name, budget);
      const wasKnown = opening.isKnown();
      if (!(await opening.need(spender.budgets))) return REFUSED_BY_STORE;
      // What could not be told at the start, of all budgets.
      if (!wasKnown && opening.isKnown()) await shared?.open(shown());
      const decision = await shared?.reserve(request);
      const { offer, refusal } = decision ?? reserveHere(request);
      if (offer) {
        const admission = windows.admit(spender.windows, tokens);
        running.set(token, { request, cost: offer.cost, admission });
      }
      return {
        offer,
        refusal,
        tokens: decision ? decision.tokens : windows.state(spender.windows),
      };
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
    },
    standing() {
      if (!opening.isKnown()) return [];
      return shared ? shared.standing(shown()) : shown().map(purses.figures);
    },
    close: () => shared?.close(),
  };
}
