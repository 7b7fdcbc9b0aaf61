// What is spent and held in one process, or by all workers of one gateway: by what is in memory
// or, where gateways share their budgets, by what they all know. What this process itself spends
// and holds is in memory in both cases.
import type { Config } from "../../../core/config.ts";
import type { Extension } from "../../../core/extension/extension.ts";
import type { Offer } from "../estimates/index.ts";
import {
  REFUSED_BY_STORE,
  type Accountant,
  type Decision,
  type ReserveRequest,
  type SharingExtension,
} from "./contracts.ts";
import { limitsIn } from "./limits.ts";
import { createOpening } from "./opening.ts";
import { createPurses, type Figures, type SpendLimit } from "./purses.ts";
import { readSpent, withBooks, type BooksContext } from "./read-books.ts";
import { createTokenWindows } from "./token-windows.ts";
import { createWarnings } from "./warnings.ts";

const sharesBudgets = (extension: Extension): extension is SharingExtension =>
  "shareBudgets" in extension;

/** A request that costs nothing needs no budget. */
const hasRoom = ({ amount, spent, held }: Figures, { cost, room }: Offer): boolean =>
  cost === 0n || spent + held + room <= amount;

/** Throws as SharingExtension.shareBudgets. */
export function createAccountant(context: BooksContext): Accountant {
  const { clock, extensions } = context;
  const purses = createPurses(clock.now);
  const windows = createTokenWindows(clock.monotonic);
  const opening = createOpening(context, purses, (before) =>
    withBooks(context, (books) => readSpent(books, { ownOnly: true, before })),
  );
  const warn = createWarnings(context.diagnose);
  const shared = extensions.find(sharesBudgets)?.shareBudgets({ ...context, purses, warn });
  /** Of keys that have made requests: those of created keys are in no configuration. */
  const seen = new Map<string, SpendLimit>();
  let config: Config | undefined;
  let configured: ReturnType<typeof limitsIn> = new Map();

  function warnOf(limits: readonly SpendLimit[]): readonly Figures[] {
    const figures = purses.figures(limits);
    for (const each of figures) warn(each);
    return figures;
  }

  /** Decides by what this process knows, at once. */
  function reserveHere({ spender, offers, tokens }: ReserveRequest): Decision {
    const { limits } = spender;
    // What this request spends is told from what was spent before it.
    const before = warnOf(limits);
    const offer = offers.find((each) => before.every((figures) => hasRoom(figures, each)));
    if (!offer) {
      const least = offers.at(-1)!;
      const figures = before.find((each) => !hasRoom(each, least))!;
      return { refusal: { by: "budget", figures, cost: least.cost } };
    }
    const resetMs = windows.roomIn(limits, tokens);
    if (resetMs > 0) return { refusal: { by: "tokens", resetMs } };
    purses.hold(spender, offer.cost);
    return { offer };
  }

  return {
    async open(next) {
      if (next !== config) configured = limitsIn(next);
      config = next;
      const limits = [...configured.values()].filter((limit) => limit !== undefined);
      const knowing = opening.need(limits);
      opening.begin();
      if (await knowing) await shared?.open(limits);
    },
    async reserve(request) {
      const { spender, token, tokens } = request;
      const { limits } = spender;
      for (const limit of limits) if (limit.keyId !== null) seen.set(limit.name, limit);
      if (!(await opening.need(limits))) return REFUSED_BY_STORE;
      const decision = await shared?.reserve(request);
      const { offer, refusal } = decision ?? reserveHere(request);
      if (offer) windows.admit(limits, token, tokens);
      return { offer, refusal, tokens: decision ? decision.tokens : windows.state(limits) };
    },
    settle(ticket, outcome) {
      const { spender, token, cost } = ticket;
      purses.hold(spender, -cost);
      windows.correct(spender.limits, token, outcome.tokens);
      purses.spend(spender, outcome.cost);
      warnOf(spender.limits);
      shared?.settle(ticket, outcome);
    },
    spend: purses.spend,
    standing() {
      const created = [...seen.values()].filter(({ name }) => !configured.has(name));
      const limits = [...configured.values(), ...created].filter((limit) => limit !== undefined);
      if (!opening.isKnown()) return [];
      return shared ? shared.standing(limits) : purses.figures(limits);
    },
    close: () => shared?.close(),
  };
}
