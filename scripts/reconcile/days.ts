// The rules of the days of the books, by the definitions of the manual: on which day a request is
// booked, and the hash tree over the records of a day.

import { createHash } from "node:crypto";
import type { Line, TextFile } from "./house.ts";

export const sha256 = (...data: readonly (string | Buffer)[]): Buffer =>
  data.reduce((hash, each) => hash.update(each), createHash("sha256")).digest();

/** The lines of a text, without their ends. */
export const textsOf = (text: string): string[] => text.split("\n").slice(0, -1);

/** The closed days as days.jsonl has them, as far as it can be read. */
export const closedDays = ({ text }: TextFile): Line[] =>
  textsOf(text).flatMap((line) => {
    try {
      return [JSON.parse(line) as Line];
    } catch {
      return [];
    }
  });

export const dayAfter = (day: string): string =>
  new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);

/**
 * The day on which a settle line is booked: from the day on which its request ended, the first one
 * whose line in days.jsonl has seen it, or else the first one that is open.
 */
export function bookedDay(
  closed: readonly Line[],
  time: string,
  { segment, line }: { readonly segment: string; readonly line: number },
): string {
  const ended = time.slice(0, 10);
  let seen = 0;
  for (const { day, segments } of closed) {
    seen = segments.find((each: Line) => each["segment"] === segment)?.lines ?? seen;
    if (day >= ended && seen >= line) return day;
  }
  const last: string = closed.at(-1)?.["day"] ?? "";
  return ended > last ? ended : dayAfter(last);
}

/** The Merkle root over lines. The last node of a level without a neighbour goes up as it is. */
export function rootOf(lines: readonly string[]): string {
  let level = lines.map((line) => sha256("\0", line));
  while (level.length > 1) {
    const below = level;
    level = below.flatMap((left, at) => {
      if (at % 2 === 1) return [];
      const right = below[at + 1];
      return [right ? sha256("\u0001", left, right) : left];
    });
  }
  return (level[0] ?? sha256()).toString("hex");
}
