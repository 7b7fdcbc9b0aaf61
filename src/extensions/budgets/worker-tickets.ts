// What each worker holds, as the first process knows it. What a worker holds when it dies is given
// back: a request that it had settled costs what the spend log says, any other nothing.
import type { Worker } from "node:cluster";
import { resolve as resolvePath } from "node:path";
import { randomHex } from "../../core/ids.ts";
import type { Host } from "../installation/index.ts";
import {
  NO_OUTCOME,
  type Accountant,
  type Decision,
  type Outcome,
  type Ticket,
} from "./contracts.ts";
import { readSettled } from "./read-settled.ts";

/** When the spend log is read again that could not be read, in milliseconds. */
const RETRY_MS = 1_000;
/**
 * A worker tells at once what it has settled. What it could not tell any more when it died it
 * wrote into the spend log at most this long before, in milliseconds.
 */
const UNTOLD_MS = 60_000;

export interface WorkerTickets {
  /** A worker has said something: what it holds is given back when it dies. */
  follow(worker: Worker): void;
  /** Notes what a worker holds by a decision, and gives it the token for the spend log. */
  note(worker: Worker, decision: Decision): Decision;
  /** Forgets a ticket. Returns false if the worker does not hold it. */
  take(worker: Worker, ticket: Ticket): boolean;
  /** Nothing is given back any more: the first process ends. */
  close(): void;
}

type KeptTicket = Ticket & { readonly token: string };

/** `gaveBack` is called when everything that a dead worker held was given back. */
export function createWorkerTickets(
  { config, clock }: Host,
  accountant: () => Accountant,
  gaveBack: () => void,
): WorkerTickets {
  /** By the ids of the workers, and of the tickets. */
  const held = new Map<number, Map<number, KeptTicket>>();
  let isClosed = false;

  async function bury({ id }: Worker): Promise<void> {
    const tickets = [...(held.get(id)?.values() ?? [])];
    held.delete(id);
    if (tickets.length === 0) return;
    const outcomes = await outcomesOf(tickets, clock.now() - UNTOLD_MS);
    if (isClosed) return;
    for (const ticket of tickets)
      accountant().settle(ticket, outcomes.get(ticket.token) ?? NO_OUTCOME);
    gaveBack();
  }

  /** How requests of a dead worker have ended. They go on to hold until the log can be read. */
  async function outcomesOf(
    tickets: readonly KeptTicket[],
    since: number,
  ): Promise<ReadonlyMap<string, Outcome>> {
    const spendDir = resolvePath(config.data_dir, "spend");
    const tokens = new Set(tickets.map(({ token }) => token));
    while (!isClosed) {
      try {
        return await readSettled({ spendDir, tokens, since });
      } catch {
        await new Promise<void>((resolve) => {
          clock.after(RETRY_MS, resolve);
        });
      }
    }
    return new Map();
  }

  return {
    follow(worker) {
      if (held.has(worker.id)) return;
      held.set(worker.id, new Map());
      // By then everything has been read that it has said. It may have ended before.
      const { process: childProcess } = worker;
      childProcess.once("close", () => bury(worker));
    },
    note(worker, decision) {
      if (!decision.ticket) return decision;
      const ticket = { ...decision.ticket, token: randomHex(12) };
      const tickets = held.get(worker.id);
      if (tickets) tickets.set(ticket.id, ticket);
      else accountant().settle(ticket, NO_OUTCOME); // it has died meanwhile
      return { ...decision, ticket };
    },
    take: (worker, { id }) => held.get(worker.id)?.delete(id) ?? false,
    close() {
      isClosed = true;
    },
  };
}
