// What was spent before this process began to count: read from the books when a budget is first in
// force. From then on every request is counted in memory.
import type { Clock } from "../../core/clock.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import type { SpendLimit } from "./contracts.ts";
import { periodName } from "./periods.ts";
import type { Purses, Spent } from "./purses.ts";

/** How long after a failure the books are not read again, in milliseconds. */
const RETRY_MS = 1_000;

/** What is read of the books. */
export interface BooksQuery {
  /** The month that is read: `YYYY-MM`. Its days are there too. */
  readonly month: string;
  /** What ended at this moment or later is left out, in milliseconds since 1970. */
  readonly before: number;
  /** Also what all months before that one come to. */
  readonly withEarlier: boolean;
}

/** What the books know to be spent, by the names of accounts and keys. */
export type BooksBalance = ReadonlyMap<string, Partial<Spent>>;

/** Rejects if the books cannot be read at the moment. */
export type ReadBooks = (query: BooksQuery) => Promise<BooksBalance>;

export interface OpeningOptions {
  /** Tells which month it is, and times `quietMs` and the retries. */
  readonly clock: Clock;
  /** Told once that the books cannot be read, and once that they can again. */
  readonly diagnose: Diagnose;
  /** Called when the first budget needs it, and again if a budget needs earlier months. */
  readonly readBooks: ReadBooks;
  /**
   * How long it may take until all processes count, in milliseconds, once a budget was put in force
   * while they serve.
   */
  readonly quietMs: number;
  /** Gets what was spent before. */
  readonly purses: Purses;
}

export interface Opening {
  /** Reads what these limits need. The first call is made before the first request. */
  start(limits: readonly SpendLimit[]): Promise<void>;
  /**
   * Undefined: all that these limits need is known. Else resolves with whether it is by then.
   */
  need(limits: readonly SpendLimit[]): Promise<boolean> | undefined;
}

/** How much is known: nothing, the current month, or everything. */
type Known = 0 | 1 | 2;

const neededBy = (limits: readonly SpendLimit[]): Known => {
  let needed: Known = 0;
  for (const { budget } of limits) {
    if (budget?.period === "total") return 2;
    if (budget) needed = 1;
  }
  return needed;
};

export function createOpening(options: OpeningOptions): Opening {
  const { clock, diagnose, readBooks, quietMs, purses } = options;
  let known: Known = 0;
  /** The first month that is counted. */
  let sinceMonth = "";
  let loading: Promise<boolean> | undefined;
  let retryAt = -Infinity;
  let isFailing = false;
  let hasStarted = false;

  function take(balance: BooksBalance): void {
    for (const [name, spent] of balance) purses.addBefore(name, spent);
  }

  async function loadMonth(needed: Known, isLive: boolean): Promise<void> {
    if (isLive && quietMs > 0) await pause(clock, quietMs);
    // From this moment on requests are counted here. What ends in the rest of this millisecond may
    // be counted twice, but nothing is left out.
    purses.forgetSpent();
    const now = clock.now();
    sinceMonth = periodName("month", now);
    const query = {
      month: sinceMonth,
      before: isLive ? now + 1 : Infinity,
      withEarlier: needed === 2,
    };
    take(await readBooks(query));
  }

  async function load(needed: Known, isLive: boolean): Promise<boolean> {
    try {
      if (known === 0) await loadMonth(needed, isLive);
      else take(await readBooks({ month: sinceMonth, before: -Infinity, withEarlier: true }));
      known = needed;
      if (isFailing) diagnose({ event: "budgets_known", level: "info" });
      isFailing = false;
      return true;
    } catch (error) {
      const detail = `requests with a budget are refused: ${(error as Error).message}`;
      if (!isFailing) diagnose({ event: "budgets_unknown", level: "error", detail });
      isFailing = true;
      retryAt = clock.monotonic() + RETRY_MS;
      return false;
    }
  }

  function need(limits: readonly SpendLimit[]): Promise<boolean> | undefined {
    const needed = neededBy(limits);
    if (needed <= known) return undefined;
    if (!loading && clock.monotonic() < retryAt) return Promise.resolve(false);
    loading ??= load(needed, true).finally(() => {
      loading = undefined;
    });
    // What was being read may have been less.
    return loading.then((isKnown) => isKnown && (need(limits) ?? true));
  }

  return {
    need,
    async start(limits) {
      const needed = neededBy(limits);
      if (needed === 0) return;
      if (hasStarted) {
        await need(limits);
        return;
      }
      hasStarted = true;
      loading = load(needed, false);
      await loading;
      loading = undefined;
    },
  };
}

const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => {
    clock.after(ms, resolve);
  });
