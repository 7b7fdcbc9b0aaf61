// Times as ISO 8601 in UTC, as `new Date(ms).toISOString()` writes them. Many lines are written in
// each second, so the text of the second is kept: that takes a fifth of the time.

/** The second that was written last, and its text up to the decimal point. */
const last = { second: Number.NaN, text: "" };

/** `ms`: milliseconds since 1970. Throws a RangeError if that is no time. */
export function isoTime(ms: number): string {
  const second = Math.floor(ms / 1_000);
  if (second !== last.second) {
    last.text = new Date(second * 1_000).toISOString().slice(0, -4);
    last.second = second;
  }
  const millis = Math.trunc(ms - second * 1_000);
  if (millis > 99) return `${last.text}${millis}Z`;
  return `${last.text}${String(millis).padStart(3, "0")}Z`;
}
