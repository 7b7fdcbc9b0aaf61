// What was spent before this process began to count. The books are read when the first budget is in
// force: before the first request, or later, and then only what had ended when the process began.
// What has ended since is counted in memory, with a budget or without.
import type { Clock } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import type { BudgetLimit, Purses, Spent } from "./purses.ts";

/** How long after a failure the books are not read again, in milliseconds. */
const RETRY_MS = 1_000;

/** Reads what was spent before a moment, as SpentQuery.before. Rejects if it cannot be read. */
export type ReadSpent = (before: string | undefined) => Promise<readonly Spent[]>;

export interface OpeningOptions {
  /** Tells when the process began, and times the retries. */
  readonly clock: Clock;
  /** Told once that the books cannot be read, and once that they can again. */
  readonly diagnose: Diagnose;
  /** Called when the first budget needs it, and again after a failure. */
  readonly readSpent: ReadSpent;
  /** Gets what was spent before. */
  readonly purses: Purses;
}

export interface Opening {
  /** Whether it is known what was spent before. */
  isKnown(): boolean;
  /**
   * Undefined: it is known, or none of the limits is a budget. Else resolves with whether it is
   * known by then.
   */
  need(limits: readonly BudgetLimit[]): Promise<boolean> | undefined;
  /** From this call on requests are counted. */
  begin(): void;
}

export function createOpening({ clock, diagnose, readSpent, purses }: OpeningOptions): Opening {
  const startedAt = new Date(clock.now()).toISOString();
  let isCounting = false;
  let isKnown = false;
  let isFailing = false;
  let loading: Promise<boolean> | undefined;
  let retryAt = -Infinity;

  async function load(): Promise<boolean> {
    try {
      purses.addBefore(await readSpent(isCounting ? startedAt : undefined));
      isKnown = true;
      if (isFailing) diagnose({ event: "budgets_known", level: "info" });
    } catch (error) {
      const detail = `requests with a budget are refused: ${(error as Error).message}`;
      if (!isFailing) diagnose({ event: "budgets_unknown", level: "error", detail });
      isFailing = true;
      retryAt = clock.monotonic() + RETRY_MS;
    }
    loading = undefined;
    return isKnown;
  }

  return {
    isKnown: () => isKnown,
    need(limits) {
      if (isKnown || !limits.some(({ budget }) => budget)) return undefined;
      if (!loading && clock.monotonic() < retryAt) return Promise.resolve(false);
      loading ??= load();
      return loading;
    },
    begin() {
      isCounting = true;
    },
  };
}
