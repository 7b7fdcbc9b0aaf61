// Whether the clock can be trusted to close days and to delete old segments. A machine may start
// with a clock that is years ahead: all segments would look old, and days in the future would
// close. So after a jump of the clock, in this process or an earlier one, no day closes and nothing
// is deleted until the clock has run for a day without another jump.
import { join } from "node:path";
import { DAY_MS } from "../../../config/fields.ts";
import { MAX_KEYS_BYTES, readRegularFile, whyUnreadable } from "../../../config/regular-file.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { replaceFile } from "../../scale/data-files/index.ts";
import { isoTime } from "../records/index.ts";
import type { BooksFiles } from "./books-files.ts";

const HOUR_MS = DAY_MS / 24;

/**
 * Compares the clock with the last time noted in `clock.json`, and notes the time once an hour. A
 * gateway that was off for more than a day waits for a day too. The caller holds the lock.
 */
export async function isClockSteady({ dataDir, clock, days }: BooksFiles): Promise<boolean> {
  const file = join(dataDir, "clock.json");
  const note = noteIn(file, days.lastDay() === "");
  const now = clock.now();
  const seen = timeOf(note?.["seen"]) ?? now - 2 * HOUR_MS;
  // If the note is lost or cannot be read, assume a jump.
  const hasJumped = !note || now - seen > DAY_MS || seen - now > HOUR_MS;
  const waitUntil = hasJumped ? now + DAY_MS : (timeOf(note["wait_until"]) ?? 0);
  if (hasJumped || now - seen > HOUR_MS) {
    const next = { seen: isoTime(now), wait_until: isoTime(waitUntil) };
    await replaceFile(file, `${JSON.stringify(next)}\n`);
  }
  return now >= waitUntil;
}

/** The last note. Empty: there is none yet. Undefined: it is lost, or cannot be read. */
function noteIn(file: string, mayBeAbsent: boolean): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(readRegularFile(file, MAX_KEYS_BYTES).bytes.toString()));
  } catch (error) {
    return mayBeAbsent && whyUnreadable(error) === "ENOENT" ? {} : undefined;
  }
}

function timeOf(text: unknown): number | undefined {
  const time = Date.parse(String(text));
  return Number.isNaN(time) ? undefined : time;
}

/** Whether a day has been over for more than spend.keep_days. */
export const isExpired = ({ keepDays, clock }: BooksFiles, day: string): boolean =>
  Date.parse(day) + DAY_MS < clock.now() - keepDays * DAY_MS;
