// Whether the clock can be believed that says that a day is over or a segment is old. A machine may
// start with a clock that is years ahead: everything would look old, and days would close that have
// not come yet. So after a jump of the clock, in this process or an earlier one, no day closes and
// nothing is deleted until the clock has gone on for a day without jumping.
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../../config/fields.ts";
import { readJson } from "../../../config/json-file.ts";
import type { Clock } from "../../../core/clock.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";

const HOUR_MS = DAY_MS / 24;
/** A clock is believed again after so long. A gateway that was off for longer waits as long. */
const STEADY_MS = DAY_MS;

/** What the clock allows. */
export interface Retention {
  /** Looks at the clock, and notes now and then what it says. The caller holds the lock. */
  isClockSteady(): boolean;
  /** Whether a day is over for more than keep_days. */
  isExpired(day: string): boolean;
}

/** The retention of a data_dir. The times that it notes are in `clock.json`. */
export function createRetention(dataDir: string, keepDays: number, clock: Clock): Retention {
  const file = join(dataDir, "clock.json");
  return {
    isClockSteady() {
      const note = asObject(readJson(file, {}, ["ENOENT"]));
      const seen = timeOf(note["seen"]);
      const time = clock.now();
      const hasJumped = seen !== undefined && (time - seen > STEADY_MS || seen - time > HOUR_MS);
      const waitUntil = hasJumped ? time + STEADY_MS : timeOf(note["wait_until"]);
      const isSteady = waitUntil === undefined || time >= waitUntil;
      if (seen === undefined || hasJumped || time - seen > HOUR_MS) {
        const next = {
          seen: new Date(time).toISOString(),
          ...(!isSteady && { wait_until: new Date(waitUntil).toISOString() }),
        };
        // A power failure may take the note, and leave the one before, but not half of it.
        writeFileSync(`${file}.new`, `${JSON.stringify(next)}\n`, { mode: 0o600, flush: true });
        renameSync(`${file}.new`, file);
      }
      return isSteady;
    },
    isExpired: (day) => Date.parse(day) + DAY_MS < clock.now() - keepDays * DAY_MS,
  };
}

function timeOf(value: unknown): number | undefined {
  const time = Date.parse(String(value));
  return Number.isNaN(time) ? undefined : time;
}
