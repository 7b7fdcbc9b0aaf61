// The periods of budgets: days and months in UTC, and all time.

/** `total`: the budget is never renewed. */
export type Period = "day" | "month" | "total";

export const PERIODS = ["day", "month", "total"] as const satisfies readonly Period[];

const DAY_MS = 86_400_000;

/** The periods that a day is in. */
interface DayOf {
  readonly day: number;
  readonly names: Readonly<Record<Period, string>>;
  /** When they end, in ISO 8601. */
  readonly ends: Readonly<Record<Period, string | null>>;
}

function periodsOf(day: number): DayOf {
  const time = new Date(day * DAY_MS);
  const text = time.toISOString();
  const [year, month] = [time.getUTCFullYear(), time.getUTCMonth()];
  return {
    day,
    names: { day: text.slice(0, 10), month: text.slice(0, 7), total: "total" },
    ends: {
      day: new Date((day + 1) * DAY_MS).toISOString(),
      month: new Date(Date.UTC(year, month + 1, 1)).toISOString(),
      total: null,
    },
  };
}

/** Remembers the last day: it is asked for several times a request. */
const dayOf = (() => {
  let last = periodsOf(0);
  return (now: number): DayOf => {
    const day = Math.floor(now / DAY_MS);
    if (day !== last.day) last = periodsOf(day);
    return last;
  };
})();

/** Names the period that a moment is in, in milliseconds since 1970: `2026-11-30`, `2026-11`. */
export const periodName = (period: Period, now: number): string => dayOf(now).names[period];

/** When the period of a moment ends, in ISO 8601. Null: never. */
export const periodEnd = (period: Period, now: number): string | null => dayOf(now).ends[period];
