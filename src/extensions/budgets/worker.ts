// The accountant of a worker: what is spent and held is in the first process, which is asked.
import cluster from "node:cluster";
import type { Accountant, Decision, Figures, ReserveRequest, SpendLimit } from "./contracts.ts";
import type { Envelope, FromPrimary, FromWorker, Numbered } from "./messages.ts";

export function createRemoteAccountant(): Accountant {
  const { worker } = cluster;
  const deciding = new Map<number, (decision: Decision) => void>();
  const looking = new Map<number, (figures: readonly Figures[]) => void>();
  const known = new Map<string, Figures>();
  let requests: Numbered<ReserveRequest>[] = [];
  let lastId = 0;

  function send(message: FromWorker): void {
    const envelope: Envelope<FromWorker> = { budgets: message };
    if (worker?.isConnected()) worker.send(envelope);
  }

  /** What is asked in one turn of the event loop goes out in one message. */
  function flush(): void {
    const reserve = requests;
    requests = [];
    if (reserve.length > 0) send({ reserve });
  }

  function note(figures: readonly Figures[]): void {
    for (const each of figures) known.set(each.name, each);
  }

  function hear({ budgets }: Envelope<FromPrimary>): void {
    if (!budgets) return;
    const { decisions = [], seen, standing = [] } = budgets;
    note(standing);
    for (const { id, value } of decisions) {
      note(value.figures);
      answer(deciding, id, value);
    }
    if (!seen) return;
    note(seen.value);
    answer(looking, seen.id, seen.value);
  }

  function ask(limits: readonly SpendLimit[], isStart: boolean): Promise<readonly Figures[]> {
    lastId += 1;
    const id = lastId;
    send({ look: { id, value: limits }, isStart });
    return new Promise((resolve) => {
      looking.set(id, resolve);
    });
  }

  worker?.on("message", hear);
  return {
    async start(limits) {
      if (limits.length > 0) await ask(limits, true);
    },
    reserve(request) {
      if (requests.length === 0) setImmediate(flush);
      lastId += 1;
      const id = lastId;
      requests.push({ id, value: request });
      return new Promise((resolve) => {
        deciding.set(id, resolve);
      });
    },
    // At once: the first process must know of it before the client knows that its answer has ended.
    settle(ticket, outcome) {
      flush();
      send({ settled: { ticket, outcome } });
    },
    spend: (spender, outcome) => send({ spent: { spender, outcome } }),
    async figures(limits) {
      return limits.length > 0 ? await ask(limits, false) : [];
    },
    known: () => [...known.values()],
    close() {
      worker?.off("message", hear);
    },
  };
}

/** Gives an answer to who waits for it. */
function answer<T>(waiting: Map<number, (value: T) => void>, id: number, value: T): void {
  waiting.get(id)?.(value);
  waiting.delete(id);
}
