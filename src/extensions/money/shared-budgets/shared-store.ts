// Budgets in Redis or Valkey: a script decides by what all gateways have spent and hold. Each
// gateway has a row in each budget there, and rewrites it from its books and its memory. So a store
// that has lost its rows gets them back.
import type { Timer } from "../../../core/clock.ts";
import {
  REFUSED_AS_UNAVAILABLE,
  type Budget,
  type Figures,
  type SharedStore,
} from "../budgets/index.ts";
import type { OnError } from "../../scale/redis/index.ts";
import { createTaskQueue, type TaskQueueOptions } from "./task-queue.ts";
import { LEASE_MS, type Answer, type SharedFigures, type Task } from "./protocol.ts";

/**
 * Milliseconds between heartbeats, which write rows without a request: all rows with a hold, so
 * that it does not expire, and some of the others in turn.
 */
const HEARTBEAT_MS = 2_000;
/** Rows without a hold that a heartbeat writes. */
const ROWS_PER_HEARTBEAT = 100;
/** Rows that are written at once when all are written: others wait for the store meanwhile. */
const MAX_PARALLEL_ROWS = 100;

export interface SharedStoreOptions extends TaskQueueOptions {
  /** Whether to decide locally or refuse while the store cannot be reached or lacks rows. */
  readonly onError: OnError;
}

export function createSharedStore(options: SharedStoreOptions): SharedStore {
  const { script, counters, warn, onError, clock } = options;
  /** The budgets of which this gateway has rows, by their names. */
  const budgets = new Map<string, Budget>();
  /** The names of budgets that may have holds: a heartbeat cannot look at all 100,000. */
  let holding = new Set<string>();
  /** The figures of the latest answer about each budget, by its name. */
  const latest = new Map<string, SharedFigures>();
  /** Undefined after a reload that gives the budget another period or account: its row is new. */
  const latestOf = ({ name, account, period }: Budget): SharedFigures | undefined => {
    const figures = latest.get(name);
    return figures?.period === period && figures.account === account ? figures : undefined;
  };
  const enqueue = createTaskQueue(options, (budget) => ({
    ...counters.figures(budget),
    writes: latestOf(budget)?.writes ?? 0,
  }));
  let timer: Timer | undefined;
  /** The index of the first budget whose turn it is at the next heartbeat. */
  let next = 0;

  /** Runs a task, and takes in its figures. Undefined: the store cannot be reached. */
  async function runTask(task: Task): Promise<Answer | undefined> {
    timer ??= clock.after(HEARTBEAT_MS, heartbeat);
    const answer = await enqueue(task);
    if (answer?.figures.some(wasLost)) rows.restore(budgets.values());
    for (const figures of answer?.figures ?? []) {
      latest.set(figures.name, figures);
      warn(figures);
    }
    return answer;
  }

  /** Whether the store had lost the row or had an old one. In both cases it creates it again. */
  const wasLost = (row: SharedFigures): boolean =>
    row.createdAt !== (latestOf(row)?.createdAt ?? row.createdAt);

  const rows = createRowWriter(runTask, options);

  function heartbeat(): void {
    timer = clock.after(HEARTBEAT_MS, heartbeat);
    rows.write([]);
    const held = [...holding]
      .map((name) => budgets.get(name)!)
      .filter((budget) => counters.figures(budget).held > 0n);
    holding = new Set(held.map(({ name }) => name));
    const inTurn = [...budgets.values()].slice(next, next + ROWS_PER_HEARTBEAT);
    next = next + ROWS_PER_HEARTBEAT < budgets.size ? next + ROWS_PER_HEARTBEAT : 0;
    for (const budget of new Set([...held, ...inTurn])) rows.writeOne(budget);
  }

  return {
    async open(configured) {
      for (const budget of configured) {
        budgets.set(budget.name, budget);
        holding.add(budget.name);
      }
      await rows.write(configured);
    },
    async reserve(request) {
      // A reload may have changed the budgets.
      for (const budget of request.spender.budgets) budgets.set(budget.name, budget);
      const answer = await runTask(request);
      // Not before the hold: a heartbeat would remove the names.
      for (const { name } of request.spender.budgets) holding.add(name);
      if (onError === "local") return answer;
      if (!answer?.offer || !rows.mayLack()) return answer ?? REFUSED_AS_UNAVAILABLE;
      counters.hold(request.spender, -answer.offer.cost);
      runTask({ ...request, tokens: 0, offers: [] });
      return REFUSED_AS_UNAVAILABLE;
    },
    settle(request, tokens) {
      runTask({ ...request, tokens, offers: [] });
    },
    figures: (wanted) =>
      wanted.flatMap((budget) => currentFigures(counters.figures(budget), latestOf(budget))),
    async close() {
      if (!timer) return; // no task has run
      timer.cancel();
      // The store needs the latest spending: this gateway may never start again.
      await rows.write(budgets.values());
      script.close();
    },
  };
}

/** Writes rows, and keeps those that the store lacks until they are written. */
function createRowWriter(
  runTask: (task: Task) => Promise<unknown>,
  { script, clock, diagnose }: SharedStoreOptions,
) {
  const missing = new Set<Budget>();
  let inFlight = 0;
  /** Resolves when the current write has ended. The next one waits for it. */
  let writing = Promise.resolve();
  /** When this gateway noticed that the store has lost rows, by the monotonic clock. */
  let lostAt = -Infinity;
  const isReachable = (): boolean => script.fault() === null;

  /** Writes one row. Its answer also has the figures of the other gateways. */
  function writeOne(budget: Budget): Promise<unknown> {
    const spender = { account: budget.account, key_id: "", budgets: [budget], windows: [] };
    return runTask({ spender, holdId: "", tokens: 0, offers: [] });
  }

  /**
   * Writes the missing rows batch by batch, until the store cannot be reached. A row that alone
   * fails, because another program has damaged its key, is given up.
   */
  async function writeMissing(): Promise<void> {
    const rows = [...missing];
    for (let at = 0; at < rows.length && (at === 0 || isReachable()); at += MAX_PARALLEL_ROWS) {
      const batch = rows.slice(at, at + MAX_PARALLEL_ROWS);
      // A row that is added again from now on may have changed, so it is written again.
      for (const row of batch) missing.delete(row);
      inFlight = batch.length;
      const answers = await Promise.all(batch.map(writeOne));
      inFlight = 0;
      for (const [index, row] of batch.entries())
        if (!answers[index] && !isReachable()) missing.add(row);
    }
  }

  /** Writes these rows and all missing ones. Those that fail are missing until the next call. */
  async function write(rows: Iterable<Budget>): Promise<void> {
    for (const budget of rows) missing.add(budget);
    writing = writing.then(writeMissing);
    await writing;
  }

  /** Whether the store may still lack rows of running gateways. */
  const mayLack = (): boolean =>
    clock.monotonic() - lostAt < LEASE_MS || (lostAt > -Infinity && missing.size + inFlight > 0);

  return {
    writeOne,
    write,
    mayLack,
    /** Writes all rows: a store that has lost one of them has lost all. */
    restore(rows: Iterable<Budget>): void {
      const isRestoring = mayLack();
      lostAt = clock.monotonic();
      if (isRestoring) return;
      const detail = "the store of the limits has lost what was spent; the gateways write it again";
      diagnose({ event: "budgets_store_forgot", level: "error", detail });
      write(rows);
    },
  };
}

/**
 * The figures of all gateways or, after the end of their period, of this one. Empty: the store has
 * not stated any yet.
 */
const currentFigures = (own: Figures, all: SharedFigures | undefined): readonly Figures[] =>
  all ? [all.ends === own.ends ? all : own] : [];
