// Grants and settles requests for one process, or for all workers of one gateway. Decides by the
// figures in memory or, if gateways share their budgets, asks the shared store. This process's own
// spending and holds are in memory in both cases.
import type { Config } from "../../../core/config.ts";
import type { Offer } from "../estimates/index.ts";
import {
  createOpening,
  readSpent,
  withBooks,
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

/** Throws as sharedBudgetsSlot. */
export function createAccountant(context: BooksContext): Accountant {
  const { clock, installed } = context;
  const purses = createPurses(clock.now);
  const windows = createTokenWindows(clock.monotonic);
  const opening = createOpening(context, purses, (before) =>
    withBooks(context, (books) => readSpent(books, true, before)),
  );
  const warn = createWarnings(context.diagnose);
  const shared = installed.filled(sharedBudgetsSlot)?.({ ...context, purses, warn });
  /** By the tokens of the requests. */
  const running = new Map<string, Running>();
  /** Of keys that have made requests: those of created keys are in no configuration. */
  const seen = new Map<string, Budget>();
  let config: Config | undefined;
  let configured: ReadonlyMap<string, Budget | undefined> = new Map();

  /** How they stand. The operator is warned where much of one is spent. */
  function look(budgets: readonly Budget[]): readonly Figures[] {
    const figures = budgets.map(purses.figures);
    for (const each of figures) warn(each);
    return figures;
  }

  /** Decides at once, by the figures in memory. */
  function reserveHere({ spender, offers, tokens }: ReserveRequest): Decision {
    // Warns of levels that were reached before this request.
    const before = look(spender.budgets);
    const offer = offers.find((each) => before.every((figures) => hasRoom(figures, each)));
    if (!offer) {
      const least = offers.at(-1)!;
      const figures = before.find((each) => !hasRoom(each, least))!;
      return { refusal: { by: "budget", figures, cost: least.cost } };
    }
    const resetMs = windows.roomIn(spender.windows, tokens);
    if (resetMs > 0) return { refusal: { by: "tokens", resetMs } };
    purses.hold(spender, offer.cost);
    return { offer };
  }

  /** Those of the configuration, and of other keys that have asked. */
  function shown(): readonly Budget[] {
    const created = [...seen.values()].filter(({ name }) => !configured.has(name));
    return [...configured.values(), ...created].filter((budget) => budget !== undefined);
  }

  return {
    async open(next) {
      if (next !== config) configured = budgetsIn(next);
      config = next;
      if (await opening.need(shown())) await shared?.open(shown());
    },
    async reserve(request) {
      const { spender, token, tokens } = request;
      for (const budget of spender.budgets)
        if (budget.keyId !== null) seen.set(budget.name, budget);
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
    settle(token, { cost: spent, tokens } = { cost: 0n, tokens: 0 }) {
      const ended = running.get(token);
      if (!ended) return;
      running.delete(token);
      const { request, cost, admission } = ended;
      const { spender } = request;
      purses.hold(spender, -cost);
      purses.spend({ ...spender, cost: spent });
      windows.correct(spender.windows, admission, tokens);
      look(spender.budgets);
      shared?.settle(request, tokens);
    },
    spend: purses.spend,
    standing() {
      if (!opening.isKnown()) return [];
      return shared ? shared.standing(shown()) : shown().map(purses.figures);
    },
    close: () => shared?.close(),
  };
}
