// What an audit has found so far.
import { DAY_MS } from "../../config/fields.ts";
import type { UsageRecord } from "../usage-records/index.ts";
import { BUCKETS, type BooksFiles } from "../books/index.ts";
import { createOrphans, type Orphans } from "./orphans.ts";
import { createTotals, type Totals } from "./totals.ts";

/** How many differences are named one by one. */
const MAX_NAMED = 10_000;

/** Differences between both sides, each named once. */
export interface Differences {
  /** A text that is known already does not count again. */
  add(text: string): void;
  /** The first ones, and how many more there are. */
  list(): readonly string[];
}

/** What has been found so far. */
export interface Findings {
  /** What the audit reports in the end. */
  readonly differences: Differences;
  /** The requests of the spend log. */
  readonly settled: Totals;
  /** The usage records that they are compared with. */
  readonly recorded: Totals;
  /** Usage records without lines in the spend log. */
  readonly orphans: Orphans;
  /** By bucket: the fingerprints of what was settled, less those of what is recorded. */
  readonly sums: BigUint64Array;
  /** By bucket: how many records both sides have. */
  readonly counts: Uint32Array;
}

/** The findings of an audit that begins. */
export function createFindings({ clock, keepDays }: BooksFiles): Findings {
  const keptSince = new Date(clock.now() - keepDays * DAY_MS).toISOString();
  return {
    differences: createDifferences(),
    settled: createTotals(),
    recorded: createTotals(),
    orphans: createOrphans(keptSince),
    sums: new BigUint64Array(BUCKETS),
    counts: new Uint32Array(BUCKETS),
  };
}

function createDifferences(): Differences {
  const texts = new Set<string>();
  let more = 0;
  return {
    add(text) {
      if (texts.size < MAX_NAMED) texts.add(text);
      else if (!texts.has(text)) more += 1;
    },
    list: () => (more > 0 ? [...texts, `and ${more} more`] : [...texts]),
  };
}

/**
 * Whether the spend log does not reach back to a record, so that the record has no lines there,
 * unless its time was altered.
 */
export function isOutOfReach({ ended_at }: UsageRecord, { settled }: Findings): boolean {
  const { from } = settled.span();
  return from === null || ended_at < from;
}
