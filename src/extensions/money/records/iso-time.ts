// Times and days as the books write them, in UTC. Times have the format of toISOString(). Many
// lines are written in each second, so the texts of the latest second are cached, which makes
// isoTime() five times as fast.
import { DAY_MS } from "../../../config/fields.ts";

/** The cached second since 1970, its text up to and including the decimal point, and its day. */
const last = { second: Number.NaN, text: "", day: "" };

/** The texts of a second since 1970. */
function textsOf(second: number): typeof last {
  if (second !== last.second) {
    last.text = new Date(second * 1_000).toISOString().slice(0, -4);
    last.day = last.text.slice(0, 10);
    last.second = second;
  }
  return last;
}

/** `ms`: milliseconds since 1970. Throws a RangeError if they are outside the range of Date. */
export function isoTime(ms: number): string {
  const second = Math.floor(ms / 1_000);
  const { text } = textsOf(second);
  const millis = String(Math.trunc(ms - second * 1_000)).padStart(3, "0");
  return `${text}${millis}Z`;
}

/** Whether a value is a time in the format of isoTime(). */
export function isTime(value: unknown): value is string {
  const time = Date.parse(String(value));
  return !Number.isNaN(time) && isoTime(time) === value;
}

/** Whether a value has the form of a day, `YYYY-MM-DD`. */
export const isDay = (value: unknown): value is string =>
  typeof value === "string" && /^\d{4}-\d\d-\d\d$/.test(value);

/**
 * Whether a text is a day of the calendar, from the year 1000 on. The comparison is needed because
 * V8 accepts the 31st of every month.
 */
export const isCalendarDay = (text: string): boolean =>
  /^[1-9]/.test(text) && isDay(text) && new Date(text).toJSON()?.slice(0, 10) === text;

/** The UTC day of a time in milliseconds since 1970. Throws a RangeError as isoTime(). */
export const dayOf = (ms: number): string => textsOf(Math.floor(ms / 1_000)).day;

/** The day after `day`. */
export const dayAfter = (day: string): string => dayOf(Date.parse(day) + DAY_MS);
