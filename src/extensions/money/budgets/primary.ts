// Budgets in the first process of several: the accountant of all workers. What a worker holds when
// it dies is kept until the books tell what its requests came to; those that the books do not know
// were never opened, and come to nothing.
import { answerWorkers } from "../../cluster/index.ts";
import type { Host, HostPart } from "../../installation/index.ts";
import { createAccountant } from "./accountant.ts";
import { booksOf, readOutcomes, type Outcome } from "../spent/index.ts";
import { NO_OUTCOME, type Accountant, type Ticket } from "./contracts.ts";
import { SUBJECT, type Answer, type Note, type Question } from "./worker.ts";

/** When the books are read again that could not be read, in milliseconds. */
const RETRY_MS = 1_000;

/** Answers the workers, if there are any. */
export function serveWorkers(host: Host): HostPart {
  const { clock } = host;
  const withBooks = booksOf(host);
  /** What each worker holds, by the ids of the workers and of the tickets. */
  const held = new Map<number, Map<number, Ticket>>();
  let created: Accountant | undefined;
  let isClosed = false;

  function accountant(): Accountant {
    created ??= createAccountant(host);
    return created;
  }

  function ticketsOf(worker: number): Map<number, Ticket> {
    const tickets = held.get(worker) ?? new Map<number, Ticket>();
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
    const { ticket } = decision;
    if (!ticket) return decision;
    if (held.get(worker) === tickets) tickets.set(ticket.id, ticket);
    else accountant().settle(ticket, NO_OUTCOME); // the worker has died meanwhile
    return decision;
  }

  function hear({ id, spender, outcome }: Note, worker: number): void {
    if (spender) accountant().spend(spender, outcome);
    if (id === undefined) return;
    const tickets = ticketsOf(worker);
    const ticket = tickets.get(id);
    if (ticket) accountant().settle(ticket, outcome);
    tickets.delete(id);
  }

  /** Gives back what a dead worker held. */
  async function ended(worker: number): Promise<void> {
    const tickets = [...ticketsOf(worker).values()];
    held.delete(worker);
    if (tickets.length === 0) return;
    const outcomes = await outcomesOf(new Set(tickets.map(({ token }) => token)));
    if (!outcomes) return;
    for (const ticket of tickets)
      accountant().settle(ticket, outcomes.get(ticket.token) ?? NO_OUTCOME);
  }

  /** Reads the books until they can be read. Undefined: the first process ends before. */
  async function outcomesOf(
    tokens: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, Outcome> | undefined> {
    while (!isClosed) {
      try {
        return await withBooks((books) => readOutcomes(books, tokens));
      } catch {
        await new Promise<void>((resolve) => {
          clock.after(RETRY_MS, resolve);
        });
      }
    }
    return undefined;
  }

  const stop = answerWorkers<Question, Note, Answer>(SUBJECT, { answer, hear, ended });
  return {
    report: () => created?.standing(host.current()),
    close() {
      isClosed = true;
      stop();
      created?.close();
    },
  };
}
