// Budgets in the first process of several: the accountant of all workers.
import cluster, { type Worker } from "node:cluster";
import type { Host, HostPart } from "../installation/index.ts";
import { createAccountant } from "./accountant.ts";
import type { Accountant, Decision, ReserveRequest } from "./contracts.ts";
import type { Envelope, FromPrimary, FromWorker, Numbered } from "./messages.ts";
import { createWorkerTickets } from "./worker-tickets.ts";

/**
 * How long it takes until all workers have a changed configuration, in milliseconds. What they
 * spend meanwhile is counted from the books.
 */
const QUIET_MS = 1_000;
/** How often workers hear what other gateways have spent, in milliseconds. */
const TELL_MS = 2_000;

/** Answers the workers, if there are any. */
export function serveWorkers(host: Host): HostPart {
  const tickets = createWorkerTickets(host, accountant, tellAll);
  let created: Accountant | undefined;

  function accountant(): Accountant {
    const { config, clock, diagnose, extensions } = host;
    created ??= createAccountant({ config, clock, diagnose, extensions, quietMs: QUIET_MS });
    return created;
  }

  /** Decides in the order of the requests. What is known at once is answered in one message. */
  function reserve(worker: Worker, requests: readonly Numbered<ReserveRequest>[]): void {
    const decisions: Numbered<Decision>[] = [];
    for (const { id, value: request } of requests) {
      const made = accountant().reserve(request);
      if (made instanceof Promise)
        made.then((value) =>
          send(worker, { decisions: [{ id, value: tickets.note(worker, value) }] }),
        );
      else decisions.push({ id, value: tickets.note(worker, made) });
    }
    if (decisions.length > 0) send(worker, { decisions });
  }

  function settle(worker: Worker, { ticket, outcome }: NonNullable<FromWorker["settled"]>): void {
    if (!tickets.take(worker, ticket)) return;
    accountant().settle(ticket, outcome);
    const names = new Set(ticket.spender.limits.map(({ name }) => name));
    const standing = accountant()
      .known()
      .filter(({ name }) => names.has(name));
    if (standing.length > 0) send(worker, { standing });
  }

  /** Tells what is known of the budgets, also to workers that ask nothing. */
  function tellAll(): void {
    const standing = created?.known() ?? [];
    if (standing.length === 0) return;
    for (const worker of Object.values(cluster.workers ?? {}))
      if (worker) send(worker, { standing });
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
    tickets.follow(worker);
    if (budgets.settled) settle(worker, budgets.settled);
    if (budgets.spent) accountant().spend(budgets.spent.spender, budgets.spent.outcome);
    if (budgets.look) look(worker, budgets.look, budgets.isStart ?? false);
    // In a turn of its own: what another worker settled before this was asked is read in the same
    // turn, in any order.
    const { reserve: requests = [] } = budgets;
    if (requests.length > 0) setImmediate(reserve, worker, requests);
  }

  function beat(): void {
    tellAll();
    timer = host.clock.after(TELL_MS, beat);
  }

  let timer = host.clock.after(TELL_MS, beat);
  cluster.on("message", hear);
  return {
    close() {
      timer.cancel();
      tickets.close();
      cluster.off("message", hear);
      created?.close();
    },
  };
}

function send(worker: Worker, message: FromPrimary): void {
  const envelope: Envelope<FromPrimary> = { budgets: message };
  if (worker.isConnected()) worker.send(envelope);
}
