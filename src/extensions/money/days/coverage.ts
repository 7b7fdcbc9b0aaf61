// What the closed days have of the segments of the spend log, and so on which day the request of a
// settle line is booked.
import { dayAfter } from "../records/index.ts";
import type { ClosedDay, DaySegment } from "./days.ts";

/** What one line of days.jsonl says of a segment. */
export interface Listing extends DaySegment {
  /** "line 7 of days.jsonl", or a head that was kept elsewhere. */
  readonly by: string;
  /** The day of the line. */
  readonly day: string;
}

export interface Coverage {
  /** All segments that the lines name. */
  segments(): readonly string[];
  /** What they say of one of them, in their order. */
  of(segment: string): readonly Listing[];
  /**
   * The day of a request whose settle line is line `line` of a segment and has the time `time`: the
   * day on which it ended, or the first one that was open when the line was copied.
   */
  bookedDay(segment: string, line: number, time: string): string;
}

/** `nameOf`: as Listing.by. Absent: by the number of the line. */
export function createCoverage(
  days: readonly ClosedDay[],
  nameOf = ({ number }: ClosedDay): string => `line ${number} of days.jsonl`,
): Coverage {
  const listings = new Map<string, Listing[]>();
  for (const closed of days)
    for (const entry of closed.segments) {
      const known = listings.get(entry.segment) ?? [];
      listings.set(entry.segment, known);
      known.push({ ...entry, day: closed.day, by: nameOf(closed) });
    }
  const last = days.at(-1)?.day;
  const firstOpen = last === undefined ? "" : dayAfter(last);
  return {
    segments: () => [...listings.keys()].sort(),
    of: (segment) => listings.get(segment) ?? [],
    bookedDay(segment, line, time) {
      const ended = time.slice(0, 10);
      const covered = listings.get(segment)?.find(({ lines }) => lines >= line)?.day;
      const earliest = covered ?? firstOpen;
      if (ended > earliest) return ended;
      return earliest;
    },
  };
}
