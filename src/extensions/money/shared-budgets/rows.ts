// The rows of this gateway in the budgets of a shared store. A row is changed by what is held and
// settled; from time to time, and after each failure, it is written anew from what this gateway
// knows. What is asked on one connection is carried out in its order, so a row that is written
// while no hold is asked for misses nothing.
import type { Clock, Timer } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import type { SpendLimit, Spender } from "../budgets/index.ts";
import type { Answer, AskScript, Task } from "./ask-script.ts";

/**
 * How often rows are written anew, in milliseconds: those that hold something, which the store
 * would take for those of a dead gateway else, and so many others.
 */
const BEAT_MS = 2_000;
const ROWS_A_BEAT = 100;

const PUBLISH: Task = { name: "publish", id: "", tokens: 0, held: 0n, spent: 0n, offers: [] };

/** A limit, and whose it is. */
interface Row {
  readonly account: string;
  readonly limit: SpendLimit;
}

export interface Rows {
  /**
   * Asks for a hold, with the rows of these limits written before. Undefined: the store cannot be
   * asked, or has no such rows.
   */
  reserve(spender: Spender, task: Task): Promise<Answer | undefined>;
  /** Tells of an end. Undefined: as above; the rows will be written with it. */
  settle(spender: Spender, task: Task): Promise<Answer | undefined>;
  /** Writes a row. Undefined: not now. */
  publish(row: Row): Promise<Answer | undefined>;
  /** The store has lost rows a moment ago; those of other gateways may not be there again. */
  isForgetful(): boolean;
  /** Begins to write rows anew from time to time. A second call changes nothing. */
  start(): void;
  /** Ends that. The rows in the store stay. */
  stop(): void;
}

export interface RowsOptions {
  /** Asks the script. What is asked first is carried out first. */
  readonly ask: AskScript;
  /** Whether this gateway holds something under a limit. */
  readonly holds: (limit: SpendLimit) => boolean;
  /** Times the beats. */
  readonly clock: Clock;
  /** Told when the store has lost rows. */
  readonly diagnose: Diagnose;
  /** Takes what the store says when a row is written anew. */
  readonly heard: (answer: Answer | undefined) => void;
}

export function createRows({ ask, holds, clock, diagnose, heard }: RowsOptions): Rows {
  /** Rows that the store has, as far as is known. */
  const written = new Set<string>();
  /** Rows that this process has ever written. */
  const everWritten = new Set<string>();
  /** Holds that are being asked for, by the names of their limits. */
  const open = new Map<string, number>();
  const loss = createLoss(clock, diagnose);

  async function run(account: string, limits: readonly SpendLimit[], task: Task) {
    const answer = await ask(account, limits, task);
    if (!answer) written.clear();
    return answer;
  }

  async function publish({ account, limit }: Row): Promise<Answer | undefined> {
    const { name } = limit;
    beat.add({ account, limit });
    if ((open.get(name) ?? 0) > 0) return undefined;
    written.add(name);
    const answer = await run(account, [limit], PUBLISH);
    if (!answer) return undefined;
    if (!answer.isKnown && everWritten.has(name)) lost();
    everWritten.add(name);
    return answer;
  }

  /** The store has lost a row, and so all: they are written at once, before others miss them. */
  function lost(): void {
    const isNew = !loss.isRecent();
    loss.noticed();
    if (isNew) beat.writeAll();
  }

  const beat = createBeat(clock, holds, async (row) => heard(await publish(row)));

  /** Writes rows that are not there. False: that cannot be done now. */
  function ensureWritten({ account, limits }: Spender): boolean {
    for (const limit of limits) {
      if (!limit.budget) continue;
      beat.add({ account, limit }); // a reload may have changed it
      if (written.has(limit.name)) continue;
      if ((open.get(limit.name) ?? 0) > 0) return false;
      publish({ account, limit });
    }
    return true;
  }

  function count(limits: readonly SpendLimit[], change: number): void {
    for (const { name } of limits) open.set(name, (open.get(name) ?? 0) + change);
  }

  async function reserveOnce(spender: Spender, task: Task): Promise<Answer | undefined> {
    if (!ensureWritten(spender)) return undefined;
    const { account, limits } = spender;
    count(limits, 1);
    const answer = await run(account, limits, task);
    count(limits, -1);
    return answer;
  }

  return {
    publish,
    async reserve(spender, task) {
      const answer = await reserveOnce(spender, task);
      if (!answer || answer.isKnown) return answer;
      lost();
      for (const { name } of spender.limits) written.delete(name);
      const again = await reserveOnce(spender, task);
      return again?.isKnown ? again : undefined;
    },
    async settle(spender, task) {
      const { account, limits } = spender;
      const areWritten = limits.every(({ name, budget }) => !budget || written.has(name));
      return areWritten ? await run(account, limits, task) : undefined;
    },
    isForgetful: loss.isRecent,
    start: beat.start,
    stop: beat.stop,
  };
}

/** Writes rows again and again: those that hold something at each beat, the others in turn. */
function createBeat(
  clock: Clock,
  holds: (limit: SpendLimit) => boolean,
  publish: (row: Row) => unknown,
) {
  const rows = new Map<string, Row>();
  let next = 0;
  let timer: Timer | undefined;

  function beat(): void {
    const all = [...rows.values()];
    const due = new Set(all.filter(({ limit }) => holds(limit)));
    for (let count = 0; count < Math.min(ROWS_A_BEAT, all.length); count += 1) {
      due.add(all[next % all.length]!);
      next = (next + 1) % all.length;
    }
    for (const row of due) publish(row);
    timer = clock.after(BEAT_MS, beat);
  }

  return {
    add: (row: Row) => rows.set(row.limit.name, row),
    writeAll(): void {
      for (const row of rows.values()) publish(row);
    },
    start() {
      timer ??= clock.after(BEAT_MS, beat);
    },
    stop: () => timer?.cancel(),
  };
}

/** What is known of rows that the store has lost. */
function createLoss(clock: Clock, diagnose: Diagnose) {
  let noticedAt = -Infinity;
  const isRecent = (): boolean => clock.monotonic() - noticedAt < 2 * BEAT_MS;
  return {
    isRecent,
    noticed(): void {
      const detail = "the store of the limits has lost what was spent; the gateways write it again";
      if (!isRecent()) diagnose({ event: "budgets_store_forgot", level: "error", detail });
      noticedAt = clock.monotonic();
    },
  };
}
