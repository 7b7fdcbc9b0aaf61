// Budgets where several processes serve: the first process has the accountant, and workers ask it.
// What a worker holds when it dies is kept until the books tell what its requests came to; those
// that the books do not know were never opened, and come to nothing.
import { answerWorkers, callFirstProcess } from "../../cluster/index.ts";
import type { Host, HostPart } from "../../installation/index.ts";
import { createAccountant } from "./accountant.ts";
import {
  NO_OUTCOME,
  REFUSED_BY_STORE,
  type Accountant,
  type Decision,
  type Outcome,
  type ReserveRequest,
  type Ticket,
} from "./contracts.ts";
import type { Owner } from "./purses.ts";
import { readOutcomes, withBooks } from "./read-books.ts";

/** Names these calls among those of other extensions. */
const SUBJECT = "budgets";
/** When the books are read again that could not be read, in milliseconds. */
const RETRY_MS = 1_000;

/** A request, or that the budgets of the configuration in force have to be known. */
type Question = ReserveRequest | "open";

/** Undefined: what was asked to be known is known, or cannot be. */
type Answer = Decision | undefined;

/** What somebody has spent for whom nothing was held. */
interface Charge extends Owner {
  /** In pico-units of the currency. */
  readonly cost: bigint;
}

/** What a request came to for which something was held, or what was spent beside such requests. */
type Note = { readonly token: string; readonly outcome: Outcome } | readonly Charge[];

/** The accountant of a worker. */
export function createRemoteAccountant(): Accountant {
  const first = callFirstProcess<Question, Note, Answer>(SUBJECT);
  /** What the first process has not been told yet, by key: all that is spent in this turn. */
  let charges = new Map<string, Charge>();

  function tellCharges(): void {
    if (charges.size > 0) first.tell([...charges.values()]);
    charges = new Map();
  }

  return {
    async open() {
      await first.ask("open");
    },
    reserve: async (request) => (await first.ask(request)) ?? REFUSED_BY_STORE,
    // At once: the first process must know of it before the client knows that its answer has ended.
    settle: ({ token }, outcome) => first.tell({ token, outcome }),
    spend({ account, key_id }, cost) {
      if (charges.size === 0) setImmediate(tellCharges);
      const { cost: before = 0n } = charges.get(key_id) ?? {};
      charges.set(key_id, { account, key_id, cost: before + cost });
    },
    standing: () => undefined,
    close() {
      tellCharges();
      first.close();
    },
  };
}

/** Answers the workers, if there are any. */
export function serveWorkers(host: Host): HostPart {
  /** What each worker holds, by the ids of the workers and by Ticket.token. */
  const held = new Map<number, Map<string, Ticket>>();
  let created: Accountant | undefined;
  let isClosed = false;

  function accountant(): Accountant {
    created ??= createAccountant(host);
    return created;
  }

  function ticketsOf(worker: number): Map<string, Ticket> {
    const tickets = held.get(worker) ?? new Map<string, Ticket>();
    held.set(worker, tickets);
    return tickets;
  }

  async function answer(question: Question, worker: number): Promise<Answer> {
    if (question === "open") {
      await accountant().open(host.current());
      return undefined;
    }
    const tickets = ticketsOf(worker);
    const decision = await accountant().reserve(question);
    if (!decision.offer) return decision;
    const { spender, token } = question;
    const ticket = { spender, token, cost: decision.offer.cost };
    if (held.get(worker) === tickets) tickets.set(token, ticket);
    else accountant().settle(ticket, NO_OUTCOME); // the worker has died meanwhile
    return decision;
  }

  function hear(note: Note, worker: number): void {
    if (!("token" in note)) {
      for (const charge of note) accountant().spend(charge, charge.cost);
      return;
    }
    const { token, outcome } = note;
    const ticket = ticketsOf(worker).get(token);
    if (ticket) accountant().settle(ticket, outcome);
    ticketsOf(worker).delete(token);
  }

  /** Gives back what a dead worker held, when the books can be read. */
  async function settleByBooks(tickets: ReadonlyMap<string, Ticket>): Promise<void> {
    if (tickets.size === 0 || isClosed) return;
    const tokens = new Set(tickets.keys());
    const outcomes = await withBooks(host, (books) => readOutcomes(books, tokens)).catch(() => {
      host.clock.after(RETRY_MS, () => settleByBooks(tickets));
    });
    if (!outcomes) return;
    for (const ticket of tickets.values())
      accountant().settle(ticket, outcomes.get(ticket.token) ?? NO_OUTCOME);
  }

  function ended(worker: number): void {
    const tickets = ticketsOf(worker);
    held.delete(worker);
    settleByBooks(tickets);
  }

  const stop = answerWorkers<Question, Note, Answer>(SUBJECT, { answer, hear, ended });
  return {
    report: () => created?.standing(),
    close() {
      isClosed = true;
      stop();
      created?.close();
    },
  };
}
