// The periods of budgets: days and months in UTC, and all time.
import { dayOf } from "../records/index.ts";

/** `total`: the budget is never renewed. */
export type Period = "day" | "month" | "total";

export const PERIODS = ["day", "month", "total"] as const satisfies readonly Period[];

/** Names the period that a day is in: `2026-11-30`, `2026-11`, `total`. */
export const periodOf = (period: Period, day: string): string =>
  period === "total" ? period : day.slice(0, period === "day" ? 10 : 7);

/** Names the period that a moment is in, in milliseconds since 1970. */
export const periodName = (period: Period, now: number): string => periodOf(period, dayOf(now));

/** When the period of a moment ends, in ISO 8601. Null: never. */
export function periodEnd(period: Period, now: number): string | null {
  if (period === "total") return null;
  const time = new Date(now);
  const [year, month] = [time.getUTCFullYear(), time.getUTCMonth()];
  const isDay = period === "day";
  const end = isDay ? Date.UTC(year, month, time.getUTCDate() + 1) : Date.UTC(year, month + 1);
  return new Date(end).toISOString();
}
