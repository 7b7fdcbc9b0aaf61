// Budgets in the first process of several: the accountant of all workers. What a worker holds when
// it dies is given back; the books settle its requests at no cost.
import cluster, { type Worker } from "node:cluster";
import type { Host, HostPart } from "../installation/index.ts";
import { createAccountant } from "./accountant.ts";
import type { Accountant, Decision, Outcome, ReserveRequest, Ticket } from "./contracts.ts";
import type { Envelope, FromPrimary, FromWorker, Numbered } from "./messages.ts";

/**
 * How long it takes until all workers have a changed configuration, in milliseconds. What they
 * spend meanwhile is counted from the books.
 */
const QUIET_MS = 1_000;
const NOTHING: Outcome = { cost: 0n, tokens: 0, model: null };

/** What one worker holds, by the ids of the tickets. */
type Held = Map<number, Ticket>;

/** Answers the workers, if there are any. */
export function serveWorkers(host: Host): HostPart {
  const held = new Map<number, Held>();
  let created: Accountant | undefined;

  function accountant(): Accountant {
    const { config, clock, diagnose, extensions } = host;
    created ??= createAccountant({ config, clock, diagnose, extensions, quietMs: QUIET_MS });
    return created;
  }

  /** Notes what a worker holds by a decision. */
  function noted(worker: Worker, decision: Decision): Decision {
    const { ticket } = decision;
    if (!ticket) return decision;
    const tickets = held.get(worker.id);
    if (tickets) tickets.set(ticket.id, ticket);
    else accountant().settle(ticket, NOTHING); // it has died meanwhile
    return decision;
  }

  /** Decides in the order of the requests. What is known at once is answered in one message. */
  function reserve(worker: Worker, requests: readonly Numbered<ReserveRequest>[]): void {
    const decisions: Numbered<Decision>[] = [];
    for (const { id, value: request } of requests) {
      const made = accountant().reserve(request);
      if (made instanceof Promise)
        made.then((value) => send(worker, { decisions: [{ id, value: noted(worker, value) }] }));
      else decisions.push({ id, value: noted(worker, made) });
    }
    if (decisions.length > 0) send(worker, { decisions });
  }

  function settle(worker: Worker, { ticket, outcome }: NonNullable<FromWorker["settled"]>): void {
    if (!held.get(worker.id)?.delete(ticket.id)) return;
    accountant().settle(ticket, outcome);
    const names = new Set(ticket.spender.limits.map(({ name }) => name));
    const standing = accountant()
      .known()
      .filter(({ name }) => names.has(name));
    if (standing.length > 0) send(worker, { standing });
  }

  async function look(
    worker: Worker,
    { id, value: limits }: NonNullable<FromWorker["look"]>,
    isStart: boolean,
  ): Promise<void> {
    if (isStart) await accountant().start(limits);
    send(worker, { seen: { id, value: await accountant().figures(limits) } });
  }

  function hear(worker: Worker, { budgets }: Envelope<FromWorker>): void {
    if (!budgets) return;
    if (!held.has(worker.id) && !worker.isDead()) held.set(worker.id, new Map());
    if (budgets.settled) settle(worker, budgets.settled);
    if (budgets.spent) accountant().spend(budgets.spent.spender, budgets.spent.outcome);
    if (budgets.look) look(worker, budgets.look, budgets.isStart ?? false);
    // In a turn of its own: what another worker settled before this was asked is read in the same
    // turn, in any order.
    const { reserve: requests = [] } = budgets;
    if (requests.length > 0) setImmediate(reserve, worker, requests);
  }

  function bury({ id }: Worker): void {
    const tickets = held.get(id);
    held.delete(id);
    if (!tickets || tickets.size === 0) return;
    for (const ticket of tickets.values()) accountant().settle(ticket, NOTHING);
    const standing = accountant().known();
    for (const worker of Object.values(cluster.workers ?? {}))
      if (worker) send(worker, { standing });
  }

  cluster.on("message", hear);
  cluster.on("exit", bury);
  return {
    close() {
      cluster.off("message", hear);
      cluster.off("exit", bury);
      created?.close();
    },
  };
}

function send(worker: Worker, message: FromPrimary): void {
  const envelope: Envelope<FromPrimary> = { budgets: message };
  if (worker.isConnected()) worker.send(envelope);
}
