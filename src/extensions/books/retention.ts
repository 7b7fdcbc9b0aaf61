// Which segments of the spend log are old enough to be deleted, and whether the clock can be believed that says so. A machine may
// start with a clock that is years ahead; everything would look old then. So a clock that has jumped since it was last looked
// at, by this process or another one, deletes nothing until it has gone on for a day without jumping.
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../core/config/schema.ts";
import { asObject } from "../../core/schema/untrusted-json.ts";
import { readJson } from "./files.ts";

const HOUR_MS = DAY_MS / 24;
/** A clock is believed again after going on for so long, and a gateway that was off for longer waits as long before it deletes. */
const STEADY_MS = DAY_MS;

const timeOf = (value: unknown): number | undefined => {
  const time = Date.parse(String(value));
  return Number.isNaN(time) ? undefined : time;
};

export function createRetention(dataDir: string, keepDays: number, now: () => number) {
  const file = join(dataDir, "clock.json");
  const horizon = () => now() - keepDays * DAY_MS;
  const isOld = (time: number) => time < horizon();
  /** What this process has noted: it counts if the file is gone. */
  let lastNote: object = {};
  /** By segment and time of writing: each is read once. */
  const newestLines = new Map<string, number | undefined>();
  /** When the day in a segment's name is over. */
  const endOfDay = (segment: string) => Date.parse(segment.slice(0, 10)) + DAY_MS;

  return {
    /** Looks at the clock, and notes now and then what it says. The caller holds the books. */
    isClockSteady(): boolean {
      const read = asObject(readJson(file, lastNote, ["ENOENT"]));
      const seen = timeOf(read["seen"]);
      const time = now();
      const hasJumped = seen !== undefined && (time - seen > STEADY_MS || seen - time > HOUR_MS);
      const waitUntil = hasJumped ? time + STEADY_MS : timeOf(read["delete_nothing_until"]);
      const isSteady = waitUntil === undefined || time >= waitUntil;
      if (seen === undefined || hasJumped || time - seen > HOUR_MS) {
        lastNote = {
          seen: new Date(time).toISOString(),
          ...(!isSteady && { delete_nothing_until: new Date(waitUntil).toISOString() }),
        };
        // A power failure may take it: then nothing is known of a jump, as before the first note.
        writeFileSync(`${file}.new`, `${JSON.stringify(lastNote)}\n`, { mode: 0o600 });
        renameSync(`${file}.new`, file);
      }
      return isSteady;
    },
    /** Whether all that there is says that nothing in a segment is as young as keep_days: the day in its name, when it was last
     * written (`modified`, in milliseconds), and the time of its newest line, which `readNewest` finds. */
    async isExpired(
      segment: string,
      modified: number,
      readNewest: () => Promise<number | undefined>,
    ): Promise<boolean> {
      if (!isOld(endOfDay(segment)) || !isOld(modified)) return false;
      const key = `${segment} ${modified}`;
      if (!newestLines.has(key)) newestLines.set(key, await readNewest());
      const newest = newestLines.get(key);
      return newest === undefined || isOld(newest);
    },
    /** Whether a segment of this name would have been deleted: what is known of one that is gone need not be kept any longer. */
    isForgotten: (segment: string): boolean => isOld(endOfDay(segment)),
  };
}
