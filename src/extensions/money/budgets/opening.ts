// What was spent before this process began to count. The books are read when the first budget is in
// force: before the first request, or later, and then only what had ended when the process began.
// What has ended since is counted in memory, with a budget or without.
import type { Budget, Purses, Spent } from "./purses.ts";
import type { BooksContext } from "./read-books.ts";

/** How long after a failure the books are not read again, in milliseconds. */
const RETRY_MS = 1_000;

/** Reads what was spent before a moment, as SpentQuery.before. Rejects if it cannot be read. */
type ReadSpent = (before: string | undefined) => Promise<readonly Spent[]>;

export interface Opening {
  /** Whether it is known what was spent before. */
  isKnown(): boolean;
  /**
   * Whether it is known by then, or there are no budgets that have to know. The books are read if that is
   * needed, and again after a failure. From the first call on requests are counted.
   */
  need(budgets: readonly Budget[]): Promise<boolean>;
}

/** `diagnose` is told once that the books cannot be read, and once that they can again. */
export function createOpening(
  { clock, diagnose }: Pick<BooksContext, "clock" | "diagnose">,
  purses: Purses,
  readSpent: ReadSpent,
): Opening {
  const startedAt = new Date(clock.now()).toISOString();
  /** Until when the books have to be read. Undefined: nothing has been counted yet. */
  let before: string | undefined;
  let isKnown = false;
  let isFailing = false;
  let loading: Promise<boolean> | undefined;
  let retryAt = -Infinity;

  async function load(until: string | undefined): Promise<boolean> {
    try {
      const spent = await readSpent(until);
      for (const each of spent) purses.spend(each);
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
    async need(budgets) {
      const until = before;
      before = startedAt;
      if (isKnown || budgets.length === 0) return true;
      if (!loading && clock.monotonic() < retryAt) return false;
      loading ??= load(until);
      return loading;
    },
  };
}
