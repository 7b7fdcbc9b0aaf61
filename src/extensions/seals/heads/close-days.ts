// Closes days: makes the head of each day that is over, once all requests that began on it are
// settled.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../../config/fields.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { replaceFile } from "../../data-files/index.ts";
import { claimFileOf, segmentsIn, type ClosedDays } from "../../books/index.ts";
import { splitSeal } from "../chain/chain.ts";
import { treeFile, writeTree } from "../tree/day-tree.ts";
import { headsFile, readHeads, sealsDir, type HeadLine } from "./heads.ts";
import { makeDayHead } from "./make-head.ts";
import { addedToMonths } from "./month-ranges.ts";
import { sealKeyOf } from "./seal-key.ts";
import { firstLine } from "../chain/segment-ends.ts";

/** What days are closed with. */
export interface ClosingOptions {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly diagnose: Diagnose;
  /** Whether the clock can be believed. A day that is closed too early stays closed. */
  readonly isClockSteady: () => boolean;
}

const dayAt = (time: number): string => new Date(time).toISOString().slice(0, 10);
export const dayAfter = (day: string): string => dayAt(Date.parse(day) + DAY_MS);

/**
 * Makes the heads that are due. A fault is what could not be written, and a broken chain, which is
 * reported with the head that is made nevertheless.
 */
export function createDayCloser(options: ClosingOptions): () => Promise<ClosedDays> {
  const { dataDir, clock, isClockSteady } = options;
  const spendDir = join(dataDir, "spend");
  /** What every pass would find again. */
  let complete: { readonly today: string; readonly faults: ClosedDays["faults"] } | undefined;

  return async () => {
    const today = dayAt(clock.now());
    if (complete?.today === today) return { faults: complete.faults, isComplete: true };
    if (!isClockSteady()) return { faults: [], isComplete: false };
    const faults: ClosedDays["faults"][number][] = [];
    const broken = (detail: string): void => {
      faults.push({ event: "seal_broken", detail, blocks: false });
    };
    try {
      let heads = readHeads(sealsDir(dataDir));
      let day = heads.length > 0 ? dayAfter(heads.at(-1)!.head.day) : firstSealedDay(spendDir);
      for (; day !== undefined && day < today; day = dayAfter(day)) {
        if (hasUnsettled(spendDir, day)) return { faults, isComplete: false };
        heads = [...heads, await closeDay(options, { heads, day, broken })];
      }
    } catch (error) {
      const detail = `the day cannot be sealed: ${(error as Error).message}`;
      faults.push({ event: "seal_head_failed", detail, blocks: false });
      return { faults, isComplete: false };
    }
    complete = { today, faults };
    return { faults, isComplete: true };
  };
}

/** The day of the first segment that is sealed. Undefined: none is. */
export function firstSealedDay(spendDir: string): string | undefined {
  if (!existsSync(spendDir)) return undefined;
  const isSealed = (name: string): boolean =>
    splitSeal(firstLine(join(spendDir, name)) ?? "") !== undefined;
  return segmentsIn(spendDir).find(isSealed)?.slice(0, 10);
}

/** Whether a request may be unsettled that began on a day or before. */
const hasUnsettled = (spendDir: string, day: string): boolean =>
  existsSync(spendDir) &&
  segmentsIn(spendDir).some(
    (name) => name.slice(0, 10) <= day && existsSync(claimFileOf(join(spendDir, name))),
  );

/** A day to close. */
interface DueDay {
  readonly heads: readonly HeadLine[];
  readonly day: string;
  readonly broken: (text: string) => void;
}

/** The tree is written before the head: a head whose tree is missing would prove less. */
async function closeDay(
  { dataDir, clock, diagnose }: ClosingOptions,
  { heads, day, broken }: DueDay,
): Promise<HeadLine> {
  const dir = sealsDir(dataDir);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const key = sealKeyOf(dataDir);
  const keyBefore = heads.at(-1)?.head.public_key ?? key.publicHex;
  if (keyBefore !== key.publicHex)
    broken(`keys.seal is not the key that signed the heads before: that was ${keyBefore}`);
  const spendDir = join(dataDir, "spend");
  const months = await addedToMonths(join(dataDir, "usage"), heads);
  const firstDay = heads[0]?.head.day ?? day;
  const sources = { spendDir, heads, firstDay, months, key, now: clock.now(), broken };
  const { line, tree } = await makeDayHead(sources, day);
  await writeTree(treeFile(dir, day), tree);
  await replaceFile(headsFile(dir), [...heads, line].map(({ text }) => `${text}\n`).join(""));
  const { number, segments, records, root, public_key } = line.head;
  diagnose({
    event: "seal_head",
    level: "info",
    day,
    number,
    head: line.hash,
    segments: segments.length,
    records,
    root,
    public_key,
  });
  return line;
}
