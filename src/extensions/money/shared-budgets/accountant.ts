// The accountant of several gateways: a script in Redis or Valkey decides by what all of them have
// spent and hold. Each gateway has a row in each budget there. It knows its own row from its books
// and from memory, so that a store that has forgotten everything learns it again.
import type { Clock } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { randomHex } from "../../../core/ids.ts";
import {
  NO_OUTCOME,
  REFUSED_BY_STORE,
  accountOf,
  limitsIn,
  type Accountant,
  type BudgetWarnings,
  type Decision,
  type ReserveRequest,
  type SpendLimit,
  type Ticket,
} from "../budgets/index.ts";
import type { Figures, Outcome } from "../spent/index.ts";
import type { OnError } from "../../redis/index.ts";
import { createAskScript, type Answer, type ScriptOptions } from "./ask-script.ts";
import { createRows, type Rows } from "./rows.ts";

export interface SharedOptions extends ScriptOptions {
  /** Hears how the budgets stand by what all gateways have spent. */
  readonly warnings: BudgetWarnings;
  /** What happens while the store cannot be asked, or has forgotten. */
  readonly onError: OnError;
  /** As RowsOptions.diagnose. */
  readonly diagnose: Diagnose;
  /** As in ScriptOptions and RowsOptions. */
  readonly clock: Clock;
}

export function createSharedAccountant(options: SharedOptions): Accountant {
  const { script, local, warnings, onError, clock, diagnose } = options;
  const rows = createRows({
    ask: createAskScript(options),
    holds: (limit) => local.own([limit]).some(({ held }) => held > 0n),
    clock,
    diagnose,
    // So that a gateway without requests knows what the others have spent meanwhile.
    heard: (answer) => note(answer),
  });
  const latest = new Map<string, Figures>();
  const instance = randomHex(8);
  let lastId = 0;
  const readiness = createReadiness(options, rows);

  function note(answer: Answer | undefined): readonly Figures[] {
    const figures = answer?.figures ?? [];
    for (const each of figures) latest.set(each.name, each);
    return figures;
  }

  async function reserve(request: ReserveRequest): Promise<Decision> {
    const { spender } = request;
    if (!(await readiness.isReady(spender.limits))) return REFUSED_BY_STORE;
    lastId += 1;
    const id = `${instance}:${lastId}`;
    const { tokens, offers } = request;
    const task = { name: "reserve", id, tokens, held: 0n, spent: 0n, offers } as const;
    const answer = await rows.reserve(spender, task);
    if (!answer) return onError === "local" ? await local.reserve(request) : REFUSED_BY_STORE;
    note(answer);
    const decision = decisionOf(answer, request, id);
    const isDoubtful = onError === "refuse" && rows.isForgetful();
    if (!isDoubtful || !decision.ticket) return decision;
    settle(decision.ticket, NO_OUTCOME);
    return REFUSED_BY_STORE;
  }

  function decisionOf(answer: Answer, request: ReserveRequest, shared: string): Decision {
    const { figures, tokens, granted, shortOf, resetMs } = answer;
    // What this request spends is told from what was spent before it.
    for (const each of figures) warnings.take(each);
    if (granted) {
      const ticket: Ticket = { ...local.grant(request, granted), shared };
      return { ticket, tokens };
    }
    const short = figures.find(({ name }) => name === shortOf);
    if (!short) return { refusal: { by: "tokens", resetMs }, tokens };
    const { cost } = request.offers.at(-1)!;
    return { refusal: { by: "budget", figures: short, cost }, tokens };
  }

  async function settle(ticket: Ticket, outcome: Outcome): Promise<void> {
    const { spender, cost: held, shared: id = "" } = ticket;
    // First here: a row that is written from now on has it.
    local.settle(ticket, outcome);
    const { cost: spent, tokens } = outcome;
    const task = { name: "settle", id, tokens, held, spent, offers: [] } as const;
    const answer = await rows.settle(spender, task);
    for (const figures of note(answer)) warnings.take(figures);
  }

  return {
    reserve,
    settle(ticket, outcome) {
      settle(ticket, outcome);
    },
    spend: local.spend,
    async open(config) {
      await local.open(config);
      const budgets = limitsIn(config).filter(({ budget }) => budget);
      if (budgets.length === 0 || !(await readiness.isReady(budgets))) return;
      const answers = budgets.map(async (limit) => {
        const account = accountOf(limit.name);
        if (account !== undefined) note(await rows.publish({ account, limit }));
      });
      await Promise.all(answers);
    },
    standing: (config) =>
      local.shown(config).flatMap(({ name, budget }) => {
        const known = latest.get(name);
        if (!known || !budget) return [];
        // Nobody has asked since its period ended.
        const isOver = known.ends !== null && Date.parse(known.ends) <= clock.now();
        return [isOver ? { ...known, spent: 0n } : known];
      }),
    close() {
      rows.stop();
      if (readiness.hasBegun()) script.close();
    },
  };
}

/** Connects to the store when the first limit is asked about. */
function createReadiness({ script, local, gatewayId }: SharedOptions, rows: Rows) {
  let beginning: Promise<void> | undefined;

  /** Rejects without a data_dir. */
  async function begin(): Promise<void> {
    gatewayId();
    await script.start();
    rows.start();
  }

  return {
    hasBegun: (): boolean => beginning !== undefined,
    /** Whether it is known what was spent under these limits before. */
    async isReady(limits: readonly SpendLimit[]): Promise<boolean> {
      beginning ??= begin();
      try {
        await beginning;
      } catch {
        // Without a data_dir the ledger refuses requests too, and tells the operator.
        beginning = undefined;
        return false;
      }
      return (await local.need(limits)) ?? true;
    },
  };
}
