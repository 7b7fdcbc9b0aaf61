// Whether the clock can be believed that says that a day is over or a segment is old. A machine may
// start with a clock that is years ahead: everything would look old, and days would close that have
// not come yet. So after a jump of the clock, in this process or an earlier one, no day closes and
// nothing is deleted until the clock has gone on for a day without jumping.
import { join } from "node:path";
import { DAY_MS } from "../../../config/fields.ts";
import { MAX_KEYS_BYTES, readRegularFile, whyUnreadable } from "../../../config/regular-file.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { replaceFile } from "../../scale/data-files/index.ts";
import { isoTime } from "../records/index.ts";
import type { BooksFiles } from "./books-files.ts";

const HOUR_MS = DAY_MS / 24;

/**
 * Looks at the clock, and notes in `clock.json` now and then what it says. A gateway that was off
 * for more than a day waits for a day too. The caller holds the lock.
 */
export async function isClockSteady({ dataDir, clock, days }: BooksFiles): Promise<boolean> {
  const file = join(dataDir, "clock.json");
  const note = noteIn(file, days.lastDay() === "");
  const now = clock.now();
  const seen = timeOf(note?.["seen"]) ?? now - 2 * HOUR_MS;
  // Whether it has jumped since a note that cannot be read, nobody knows.
  const hasJumped = !note || now - seen > DAY_MS || seen - now > HOUR_MS;
  const waitUntil = hasJumped ? now + DAY_MS : (timeOf(note["wait_until"]) ?? 0);
  if (hasJumped || now - seen > HOUR_MS) {
    const next = { seen: isoTime(now), wait_until: isoTime(waitUntil) };
    await replaceFile(file, `${JSON.stringify(next)}\n`);
  }
  return now >= waitUntil;
}

/** Empty: there is none yet. Undefined: it cannot be read, or is lost. */
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

/** Whether a day is over for more than spend.keep_days. */
export const isExpired = ({ keepDays, clock }: BooksFiles, day: string): boolean =>
  Date.parse(day) + DAY_MS < clock.now() - keepDays * DAY_MS;
