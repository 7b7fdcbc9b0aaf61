// Which bytes of the spend log's segments the closed days cover. The day on which a settled request
// is booked follows from that.
import { dayAfter } from "../records/index.ts";
import type { ClosedDay, DaySegment } from "./days.ts";

/** The entry of one segment in a line of days.jsonl, or in a head. */
export interface Listing extends DaySegment {
  /** Names the line, for the operator: "line 7 of days.jsonl", or a head kept elsewhere. */
  readonly by: string;
  /** The day of the line. */
  readonly day: string;
}

/**
 * The day from which a segment is kept for spend.keep_days: that of its last entry or, if days were
 * closed long after they were over, of its name.
 */
export const keptFrom = ({ day, segment }: Listing): string =>
  day > segment ? day : segment.slice(0, 10);

export interface Coverage {
  /** The names of all segments that the lines list. */
  segments(): readonly string[];
  /** The entries of a segment, in the order of their lines. */
  of(segment: string): readonly Listing[];
  /**
   * The day on which a request is booked, by the number and the time of its settle line: the day on
   * which it ended or, if that was closed when the line was copied, the first open day.
   */
  bookedDay(segment: string, line: number, time: string): string;
}

/** `nameOf` returns Listing.by. Absent: the number of the line. */
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
