// The accountant of a worker: what is spent and held is in the first process, which is asked.
import { callFirstProcess } from "../../cluster/index.ts";
import type { Outcome } from "../spent/index.ts";
import {
  REFUSED_BY_STORE,
  type Accountant,
  type Decision,
  type ReserveRequest,
  type Spender,
} from "./contracts.ts";

/** Names these calls among those of other extensions. */
export const SUBJECT = "budgets";

/** A request, or that the budgets of the configuration in force have to be known. */
export type Question = ReserveRequest | "open";

/** Undefined: what was asked to be known is known, or cannot be. */
export type Answer = Decision | undefined;

/** A request has ended. */
export interface Note {
  /** As Ticket.id. Absent: nothing was held for it. */
  readonly id?: number;
  /** Who spends, if nothing was held. */
  readonly spender?: Spender;
  readonly outcome: Outcome;
}

export function createRemoteAccountant(): Accountant {
  const first = callFirstProcess<Question, Note, Answer>(SUBJECT);
  return {
    async open() {
      await first.ask("open");
    },
    reserve: async (request) => (await first.ask(request)) ?? REFUSED_BY_STORE,
    // At once: the first process must know of it before the client knows that its answer has ended.
    settle: ({ id }, outcome) => first.tell({ id, outcome }),
    spend: (spender, outcome) => first.tell({ spender, outcome }),
    standing: () => undefined,
    close: first.close,
  };
}
