// The index of the usage records in files by their request ids: a sorted file for each month, which
// the usage sync makes and the search reads. Of the month that grows there are a few, each several
// times as large as the next, so that each entry is written a few times only. What came last stands
// in none of them yet, and is found by reading that part of the month's file.
import type { FileHandle } from "node:fs/promises";
import { IndexNotReady, type RequestQuery } from "../../usage-records/index.ts";
import type { Cursor } from "../file-store/cursor.ts";
import type { MonthFiles } from "../file-store/month-files.ts";
import { readLines } from "../read-lines.ts";
import { entriesOf, rangeOf } from "./entries.ts";
import {
  isRunOf,
  mergeRuns,
  removeRun,
  runsIn,
  tailHash,
  withFile,
  writeRun,
  type Run,
} from "./runs.ts";
import { offsetsIn } from "./search.ts";

/** A part of a month is indexed when it has so many bytes: about 400 records. */
const PART_BYTES = 256 * 1024;
/** So many bytes of a month's file are sorted at once. */
const SORTED_AT_ONCE = 1024 * 1024;
/**
 * An update works for about so many milliseconds. The first one finds all records of an earlier
 * version, and the sync must not wait for as long as they take.
 */
const UPDATE_MS = 5_000;
/** A run is merged into the one before it if that is less than so many times as large. */
const GROWTH = 4;
/** The most bytes that a search reads line by line. */
const MAX_UNINDEXED = 16 * 1024 * 1024;
/** A line is read with so many bytes, and with more if it is longer. */
const LINE_BYTES = 4 * 1024;
const NEWLINE = 10;
/** A run is checked again after so long: the files may have been restored from a backup. */
const CHECK_MS = 10_000;
/** So many checks are remembered. */
const MOST_CHECKS = 10_000;
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

  async function updateMonth(source: Source, isOver: boolean, until: number): Promise<void> {
    const runs = runsIn(dir);
    const chain = await chainOf(runs, source, isRunOf);
    for (const run of runs) {
      if (run.month === source.month && !chain.includes(run)) removeRun(run);
    }
    if (source.size - (chain.at(-1)?.to ?? 0) >= PART_BYTES || (isOver && chain.length > 1))
      await extend(dir, source, { chain, isOver, until });
  }

  async function searchMonth(source: Source, query: RequestQuery): Promise<readonly string[]> {
    const chain = await chainOf(runsIn(dir), source, isValid);
    const from = chain.at(-1)?.to ?? 0;
    if (source.size - from > MAX_UNINDEXED)
      throw new IndexNotReady(`the usage records of ${source.month} are being indexed`);
    const range = rangeOf(query.requestId, query.account);
    const perRun = await Promise.all(chain.map((run) => offsetsIn(run, range)));
    const offsets = perRun
      .flat()
      .sort((a, b) => b - a)
      .slice(0, query.limit);
    const lines = offsets.length > 0 ? await linesAt(source, offsets) : [];
    return [...(await linesIn(source, from, query)), ...lines];
  }

  return {
    async update() {
      const sources = sourcesIn(files, files.readCursor());
      const until = performance.now() + UPDATE_MS;
      for (const source of sources) await updateMonth(source, source !== sources[0], until);
    },
    async linesOf(query, readCursor) {
      const months = sourcesIn(files, readCursor()).map(({ month }) => month);
      const search = async (month: string): Promise<readonly string[]> => {
        const source = sourcesIn(files, readCursor()).find((each) => each.month === month);
        return source ? await searchMonth(source, query) : [];
      };
      const found = months.map((month) =>
        untilSteady(
          () => search(month),
          () => versionOf(month, readCursor()),
        ),
      );
      return (await Promise.all(found)).flat();
    },
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

/** Searches again if a run was merged, or the month was written anew, in the middle of a search. */
async function untilSteady<T>(search: () => Promise<T>, version: () => number): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const before = version();
    try {
      const found = await search();
      if (version() === before || attempt === ATTEMPTS) return found;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || attempt === ATTEMPTS) throw error;
    }
  }
}

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
  const indexed = chain.at(-1)?.to;
  await withFile(path, async (file) => {
    for (let from = indexed ?? 0; size - from >= PART_BYTES; from = chain.at(-1)!.to) {
      const lines = await wholeLines(file, from, size);
      if (lines.length === 0) break;
      const to = from + lines.length;
      const plan = { dir, month, version, from, to, tail: await tailHash(file, to) };
      chain.push(await writeRun(plan, (index) => index.appendFile(entriesOf(lines, from))));
      await mergeLast(dir, chain, false);
      if (performance.now() > until) return;
    }
  });
  // A month that is over becomes one file, once nothing is added to it any more.
  await mergeLast(dir, chain, isOver && chain.at(-1)?.to === indexed);
}

/** Merges the last runs as long as they are of similar sizes, or all of them. */
async function mergeLast(dir: string, chain: Run[], all: boolean): Promise<void> {
  while (chain.length > 1) {
    const [first, second] = chain.slice(-2) as [Run, Run];
    if (!all && first.to - first.from >= GROWTH * (second.to - second.from)) return;
    chain.splice(-2, 2, await mergeRuns(dir, first, second));
  }
}

/** Some whole lines from byte `from` on. */
async function wholeLines(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const length = Math.min(SORTED_AT_ONCE, to - from);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, from);
  return buffer.subarray(0, buffer.lastIndexOf(NEWLINE, bytesRead - 1) + 1);
}

/** The lines of a part that no run covers, the latest first. */
async function linesIn(
  { path, size }: Source,
  from: number,
  { requestId, account }: RequestQuery,
): Promise<string[]> {
  const wanted = [`"gateway_request_id":${JSON.stringify(requestId)}`];
  if (account !== undefined) wanted.push(`"account":${JSON.stringify(account)}`);
  const found: string[] = [];
  for await (const { lines } of readLines(path, { from, to: size }))
    found.push(...lines.filter((line) => wanted.every((text) => line.includes(text))));
  return found.reverse();
}

/** The lines that begin at these bytes. */
const linesAt = ({ path }: Source, offsets: readonly number[]): Promise<string[]> =>
  withFile(path, async (file) => {
    const lines: string[] = [];
    for (const offset of offsets) lines.push(await lineAt(file, offset));
    return lines;
  });

async function lineAt(file: FileHandle, offset: number): Promise<string> {
  for (let length = LINE_BYTES; ; length *= 4) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
    const end = buffer.subarray(0, bytesRead).indexOf(NEWLINE);
    if (end >= 0 || bytesRead < length)
      return buffer.toString("utf8", 0, end < 0 ? bytesRead : end);
  }
}
