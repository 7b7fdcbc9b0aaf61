// The index of the usage records in files by their request ids: a sorted file for each month, which
// the usage sync makes and the search reads. Of the month that grows there are a few, each several
// times as large as the next, so that each entry is written a few times only. What came last stands
// in none of them yet, and is found by reading that part of the month's file.
import { IndexNotReady, type RequestQuery } from "../../usage-records/index.ts";
import type { Cursor } from "../file-store/cursor.ts";
import type { MonthFiles } from "../file-store/month-files.ts";
import { entriesOf, rangeOf, sortedBytes, type Entry } from "./entries.ts";
import { createLineSearch, lineAt, wholeLines } from "./month-lines.ts";
import { withDescriptor } from "./read-file.ts";
import { isRunOf, mergeRuns, removeRun, runsIn, tailHash, writeRun, type Run } from "./runs.ts";
import { offsetsIn } from "./search.ts";
import { createTurns } from "./turns.ts";

/** A part of the month that grows is indexed when it has so many bytes: about 300 records. */
const PART_BYTES = 256 * 1024;
/** A month that is over and has fewer bytes has no index: reading it takes no longer. */
const SMALL_MONTH_BYTES = 32 * 1024;
/** So many bytes of a month's file are sorted at once: about 2,500 records. */
const SORTED_AT_ONCE = 2 * 1024 * 1024;
/**
 * An update works for about so many milliseconds. The first one finds all records of an earlier
 * version, and the sync must not wait for as long as they take.
 */
const UPDATE_MS = 5_000;
/** A run is merged into the one before it if that is less than so many times as large. */
const GROWTH = 4;
/** The most bytes that a search reads line by line. */
const MAX_UNINDEXED = 16 * 1024 * 1024;
/** A run is checked again after so long: the files may have been restored from a backup. */
const CHECK_MS = 10_000;
/** So many checks are remembered. */
const MOST_CHECKS = 10_000;
/**
 * So many searches run at once: each opens the runs of all months, and clients may ask for any
 * number of receipts.
 */
const SEARCHES_AT_ONCE = 16;
/** How often a search begins anew because files were replaced under it. */
const ATTEMPTS = 5;

/** The index of a file store. */
export interface RequestIndex {
  /** Indexes what counts and is not indexed. The caller holds the lock of the books. */
  update(): Promise<void>;
  /**
   * The lines that may be of these records, the latest first. There may be more than `limit`.
   * Rejects with an IndexNotReady.
   */
  linesOf(query: RequestQuery, readCursor: () => Cursor): Promise<readonly string[]>;
}

/** The index of the months of `files`, in the folder `dir`. */
export function createRequestIndex(dir: string, files: MonthFiles): RequestIndex {
  const isValid = createRunCheck();
  const searchLines = createLineSearch();
  const inTurn = createTurns(SEARCHES_AT_ONCE);

  async function searchMonth(
    source: Source,
    runs: readonly Run[],
    query: RequestQuery,
  ): Promise<readonly string[]> {
    const chain = await chainOf(runs, source, isValid);
    const from = chain.at(-1)?.to ?? 0;
    if (source.size - from > MAX_UNINDEXED)
      throw new IndexNotReady(`the usage records of ${source.month} are being indexed`);
    const range = rangeOf(query.requestId, query.account);
    const perRun = await Promise.all(chain.map((run) => offsetsIn(run, range)));
    const offsets = perRun
      .flat()
      .sort((a, b) => b - a)
      .slice(0, query.limit);
    if (offsets.length === 0 && from === source.size) return [];
    return await withDescriptor(source.path, async (fd) => {
      const lines = await searchLines({ fd, from, to: source.size }, query);
      for (const offset of offsets) lines.push(await lineAt(fd, offset));
      return lines;
    });
  }

  async function searchMonths(cursor: Cursor, query: RequestQuery): Promise<readonly string[]> {
    const runs = runsIn(dir);
    const sources = sourcesIn(files, cursor);
    return (await Promise.all(sources.map((source) => searchMonth(source, runs, query)))).flat();
  }

  return {
    async update() {
      const sources = sourcesIn(files, files.readCursor());
      const runs = runsIn(dir);
      const until = performance.now() + UPDATE_MS;
      for (const source of sources) {
        const isOver = source !== sources[0];
        const chain = await chainOf(runs, source, isRunOf);
        for (const run of runs) {
          if (run.month === source.month && !chain.includes(run)) await removeRun(run);
        }
        await extend(dir, source, { chain, isOver, until });
      }
    },
    linesOf: (query, readCursor) =>
      inTurn(() => untilSteady(readCursor, (cursor) => searchMonths(cursor, query))),
  };
}

/** A check of runs that remembers for a while what it has found. */
function createRunCheck(): typeof isRunOf {
  const found = new Map<string, { readonly at: number; readonly valid: boolean }>();
  return async (run, path) => {
    const key = `${run.path}\0${path}`;
    const known = found.get(key);
    if (known && performance.now() - known.at < CHECK_MS) return known.valid;
    const valid = await isRunOf(run, path);
    if (found.size > MOST_CHECKS) found.clear();
    found.set(key, { at: performance.now(), valid });
    return valid;
  };
}

/** The file of a month, and how much of it counts. */
interface Source {
  readonly month: string;
  readonly path: string;
  readonly size: number;
  /** How often the month was written anew. */
  readonly version: number;
}

const versionOf = (month: string, { rewritten }: Cursor): number => rewritten.get(month) ?? 0;

/** The latest month first. */
const sourcesIn = (files: MonthFiles, cursor: Cursor): readonly Source[] =>
  [...cursor.months]
    .filter(([, size]) => size > 0)
    .map(([month, size]) => ({
      month,
      size,
      path: files.pathOf(month, cursor),
      version: versionOf(month, cursor),
    }))
    .sort((a, b) => (a.month < b.month ? 1 : -1));

/** Searches again if runs were merged, or a month was written anew, in the middle of a search. */
async function untilSteady<T>(
  readCursor: () => Cursor,
  search: (cursor: Cursor) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const cursor = readCursor();
    try {
      const found = await search(cursor);
      if (attempt === ATTEMPTS || isSteady(cursor, readCursor())) return found;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || attempt === ATTEMPTS) throw error;
    }
  }
}

const isSteady = (before: Cursor, after: Cursor): boolean =>
  [...before.months.keys()].every((month) => versionOf(month, before) === versionOf(month, after));

/** The runs that cover a month from its beginning, without a gap and without an overlap. */
async function chainOf(
  runs: readonly Run[],
  { month, version, size, path }: Source,
  isValid: typeof isRunOf,
): Promise<Run[]> {
  const candidates = runs
    .filter((run) => run.month === month && run.version === version && run.to <= size)
    .sort((a, b) => b.to - a.to);
  const chain: Run[] = [];
  for (let end = 0; ; end = chain.at(-1)!.to) {
    let found: Run | undefined;
    for (const run of candidates) {
      if (!found && run.from === end && run.to > end && (await isValid(run, path))) found = run;
    }
    if (!found) return chain;
    chain.push(found);
  }
}

/** The runs of a month, and whether a later month has records. */
interface State {
  readonly chain: Run[];
  readonly isOver: boolean;
  /** When to stop, in milliseconds of performance.now(). */
  readonly until: number;
}

/** Adds runs up to the end of what counts, and merges them. */
async function extend(dir: string, source: Source, { chain, isOver, until }: State): Promise<void> {
  const { path, month, version, size } = source;
  const indexed = chain.at(-1)?.to ?? 0;
  // Of a month that is over nothing is left to be read line by line, or each search would read the
  // rests of all months.
  const least = isOver && size >= SMALL_MONTH_BYTES ? 1 : PART_BYTES;
  if (size - indexed >= least) {
    await withDescriptor(path, async (fd) => {
      for (let from = indexed; size - from >= least; from = chain.at(-1)!.to) {
        const { entries, to } = await readEntries(fd, from, size);
        if (to === from) break;
        const plan = { dir, month, version, from, to, tail: await tailHash(fd, to) };
        chain.push(await writeRun(plan, (run) => run.appendFile(sortedBytes(entries))));
        await mergeLast(dir, chain, false);
        if (performance.now() > until) return;
      }
    });
  }
  // A month that is over becomes one file, once nothing is added to it any more.
  await mergeLast(dir, chain, isOver && chain.at(-1)?.to === indexed);
}

/** The entries of the first whole lines from byte `from` on, and where these lines end. */
async function readEntries(
  fd: number,
  from: number,
  size: number,
): Promise<{ readonly entries: readonly Entry[]; readonly to: number }> {
  const end = Math.min(size, from + SORTED_AT_ONCE);
  const entries: Entry[] = [];
  let to = from;
  while (to < end) {
    const lines = await wholeLines({ fd, from: to, to: end });
    if (lines.length === 0) break;
    entries.push(...entriesOf(lines, to));
    to += lines.length;
  }
  return { entries, to };
}

/** Merges the last runs as long as they are of similar sizes, or all of them. */
async function mergeLast(dir: string, chain: Run[], all: boolean): Promise<void> {
  while (chain.length > 1) {
    const [first, second] = chain.slice(-2) as [Run, Run];
    if (!all && first.to - first.from >= GROWTH * (second.to - second.from)) return;
    chain.splice(-2, 2, await mergeRuns(dir, first, second));
  }
}
