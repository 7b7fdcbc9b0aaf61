// Decides which segments of the spend log are old enough to be deleted, and whether the clock that
// says so can be believed. A machine may start with a clock that is years ahead, and everything
// would look old. So after a jump of the clock, in this process or an earlier one, nothing is
// deleted until the clock has gone on for a day without jumping.
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import { readJson } from "../../../config/json-file.ts";
import { DAY_MS } from "../../../config/fields.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";

const HOUR_MS = DAY_MS / 24;
/**
 * A clock is believed again after so long. A gateway that was off for longer waits as long before
 * it deletes.
 */
const STEADY_MS = DAY_MS;

/** How old a segment is. */
export interface SegmentAge {
  /** Its file name, which begins with the day on which it was begun. */
  readonly name: string;
  /** When it was last written, in milliseconds since 1970. */
  readonly modified: number;
}

/** What may be deleted. */
export interface Retention {
  /**
   * Looks at the clock, and notes now and then what it says. The caller holds the lock of the
   * books.
   */
  isClockSteady(): boolean;
  /**
   * Whether everything about a segment says that nothing in it is younger than keep_days: the day
   * in its name, the time of its last change, and the time of its newest line, which `readNewest`
   * finds if it comes to that.
   */
  isExpired(segment: SegmentAge, readNewest: () => Promise<number | undefined>): Promise<boolean>;
  /**
   * Whether a segment of this name would be old enough, so that its mark is needed no longer once
   * it is gone.
   */
  isForgotten(segment: string): boolean;
}

/** The retention of a data_dir. The times that it notes are in `clock.json`. */
export function createRetention(dataDir: string, keepDays: number, clock: Clock): Retention {
  const file = join(dataDir, "clock.json");
  const isOld = (time: number): boolean => time < clock.now() - keepDays * DAY_MS;
  /** What this process has noted. It counts if the file is gone. */
  let lastNote: object = {};
  /** By a segment's name and last change, so that each is read once. */
  const newestLines = new Map<string, number | undefined>();

  return {
    isClockSteady() {
      const note = asObject(readJson(file, lastNote, ["ENOENT"]));
      const seen = timeOf(note["seen"]);
      const time = clock.now();
      const hasJumped = seen !== undefined && (time - seen > STEADY_MS || seen - time > HOUR_MS);
      const waitUntil = hasJumped ? time + STEADY_MS : timeOf(note["delete_nothing_until"]);
      const isSteady = waitUntil === undefined || time >= waitUntil;
      if (seen === undefined || hasJumped || time - seen > HOUR_MS) {
        lastNote = {
          seen: new Date(time).toISOString(),
          ...(!isSteady && { delete_nothing_until: new Date(waitUntil).toISOString() }),
        };
        // A power failure may take the note. Then nothing is known of a jump, as before the first
        // note.
        writeFileSync(`${file}.new`, `${JSON.stringify(lastNote)}\n`, { mode: 0o600 });
        renameSync(`${file}.new`, file);
      }
      return isSteady;
    },
    async isExpired({ name, modified }, readNewest) {
      if (!isOld(endOfDay(name)) || !isOld(modified)) return false;
      const key = `${name} ${modified}`;
      if (!newestLines.has(key)) newestLines.set(key, await readNewest());
      const newest = newestLines.get(key);
      return newest === undefined || isOld(newest);
    },
    isForgotten: (segment) => isOld(endOfDay(segment)),
  };
}

/** When the day in a segment's name is over. */
const endOfDay = (segment: string): number => Date.parse(segment.slice(0, 10)) + DAY_MS;

function timeOf(value: unknown): number | undefined {
  const time = Date.parse(String(value));
  return Number.isNaN(time) ? undefined : time;
}
