// The table `compare`: what the same work costs each target, side by side.

import { setTimeout as pause } from "node:timers/promises";
import { cpuOf, cpuPerEvent, firstTokens, median, memoryOf, openStreams } from "./load.ts";
import { percentile, wholeReplies, type Effort } from "./load.ts";
import { table } from "./table.ts";
import { bodyOf, checkReplies, started, type Kind, type Target } from "./targets.ts";

const STREAMS = 50;
const EVENTS = 300;
const EVERY_MS = 10;
const OPEN = 2_000;
/** Whole replies before the first measurement; a slow target gives fewer in WARM_UP_SECONDS. */
const WARM_UP = 30_000;
const WARM_UP_SECONDS = 30;
/** Memory is read after this many replies, if the target manages them in REPLIES_SECONDS. */
const REPLIES = 200_000;
const REPLIES_SECONDS = 60;
/** At this share of its core, the target itself limits the replies per second. */
const BUSY = 0.9;

type Round = Awaited<ReturnType<typeof measure>>;
type Figure = keyof Round;

const medianOf = (rounds: readonly Round[], figure: Figure): number =>
  median(rounds.map((round) => round[figure]));

interface Column {
  readonly kind: Kind;
  /** Absent: not started yet. */
  target?: Target;
  readonly rounds: Round[];
  /** Whole replies received from the target so far. */
  replies: number;
  /** Bytes of memory before load, 10 s after it, and per open stream. NaN: no stream opened. */
  idle: number;
  afterLoad: number;
  perStream: number;
}

const smallBody = (target: Target) => bodyOf("bytes=300", target.model);

/** How long a target gets, in ms, for work after its last reply or at intervals: logs, books. */
const quietMs = ({ isTrial }: Effort) => (isTrial ? 100 : 6_000);

async function start(column: Column, upstream: Target): Promise<void> {
  column.target = await started(column.kind, upstream.url);
  await pause(1000);
  column.idle = memoryOf(column.target.pid);
  await checkReplies(column.target);
}

/** Loads a target until its hot code has been compiled. */
async function warmUp(column: Column, { isTrial }: Effort): Promise<void> {
  const target = column.target!;
  const body = smallBody(target);
  const { count, perSecond } = await wholeReplies(target, 64, { duration: 1 }, body);
  column.replies += count;
  const replies = Math.round(Math.min(WARM_UP, perSecond * WARM_UP_SECONDS));
  if (!isTrial) column.replies += (await wholeReplies(target, 64, { amount: replies }, body)).count;
  await cpuPerEvent(target, STREAMS, EVENTS, EVERY_MS);
}

async function measure(target: Target, effort: Effort) {
  const body = smallBody(target);
  const event = await cpuPerEvent(target, STREAMS, EVENTS, EVERY_MS);
  const first = await firstTokens(target, 300);
  const single = await wholeReplies(target, 1, { duration: effort.seconds / 2 }, body);
  const before = cpuOf(target.pid);
  const full = await wholeReplies(target, 64, { duration: effort.seconds }, body);
  // Deferred work for these requests counts here, and must not count in the next measurement.
  await pause(quietMs(effort));
  return {
    event,
    cpu: (cpuOf(target.pid) - before) / full.count,
    perSecond: full.perSecond,
    busy: full.busy,
    p50: single.p50,
    p99: single.p99,
    p50of64: full.p50,
    p99of64: full.p99,
    first50: median(first),
    first99: percentile(first, 0.99),
    replies: single.count + full.count,
  };
}

/** Tops the load up to REPLIES if the target is fast enough, then reads its memory. */
async function readMemoryAfterLoad(column: Column, { isTrial }: Effort): Promise<void> {
  const target = column.target!;
  const missing = REPLIES - column.replies;
  const canDo = medianOf(column.rounds, "perSecond") * REPLIES_SECONDS > missing;
  if (!isTrial && canDo && missing >= 64) {
    const { count } = await wholeReplies(target, 64, { amount: missing }, smallBody(target));
    column.replies += count;
  }
  await pause(isTrial ? 100 : 10_000);
  column.afterLoad = memoryOf(target.pid);
}

/** Opens streams on a fresh process, because a loaded one would reuse memory that it still has. */
async function readMemoryOfStreams(column: Column, upstream: Target, isTrial: boolean) {
  const target = await started(column.kind, upstream.url);
  try {
    await pause(1000);
    column.perStream = (await openStreams(target, OPEN, isTrial ? 1 : 5)).bytes;
  } catch (error) {
    console.log(`no figure for open streams: ${(error as Error).message}`);
  } finally {
    await target.stop();
  }
}

const megabytes = (bytes = 0) => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);

function repliesPerSecond({ rounds }: Column): string {
  const replies = medianOf(rounds, "perSecond").toFixed(0);
  return medianOf(rounds, "busy") < BUSY ? `> ${replies}` : replies;
}

function tableOf(columns: readonly Column[], direct: readonly Round[]): string {
  const row = (name: string, cell: (column: Column) => string) => [name, ...columns.map(cell)];
  const measured = (name: string, figure: Figure, digits: number) =>
    row(name, ({ rounds }) => medianOf(rounds, figure).toFixed(digits));
  const added = (name: string, figure: Figure) =>
    row(name, ({ rounds }) => (medianOf(rounds, figure) - medianOf(direct, figure)).toFixed(2));
  const ofGateways = (name: string, cell: (column: Column) => string) =>
    row(name, (column) => (column.kind.diskBytes === undefined ? "" : cell(column)));
  return table([
    row("", ({ kind }) => kind.name),
    measured("CPU per whole reply, us", "cpu", 0),
    measured(
      `CPU per streamed event (${STREAMS} streams of ${1000 / EVERY_MS} a second), us`,
      "event",
      1,
    ),
    row("whole replies a second, 64 at a time", repliesPerSecond),
    added("added latency, 1 at a time: p50, ms", "p50"),
    added("p99, ms", "p99"),
    added("added latency, 64 at a time: p50, ms", "p50of64"),
    added("p99, ms", "p99of64"),
    added("added time to the first token: p50, ms", "first50"),
    added("p99, ms", "first99"),
    row("memory, idle, MB", ({ idle }) => megabytes(idle)),
    row("10 s after load, MB", ({ afterLoad }) => megabytes(afterLoad)),
    row("that load, thousands of whole replies", ({ replies }) => (replies / 1000).toFixed(0)),
    row(`for each of ${OPEN} open streams, KB`, ({ perStream }) =>
      Number.isNaN(perStream) ? "not open" : (perStream / 1000).toFixed(1),
    ),
    ofGateways("start to first answer, ms", ({ target }) => target!.startMs.toFixed(0)),
    ofGateways("on disk beside the runtime, MB", ({ kind }) => megabytes(kind.diskBytes)),
  ]);
}

/** Measures the targets side by side, and prints what each does for a request. */
export async function compare(kinds: readonly Kind[], upstream: Target, effort: Effort) {
  await checkReplies(upstream);
  const direct: Round[] = [];
  const unknown = { idle: Number.NaN, afterLoad: Number.NaN, perStream: Number.NaN };
  const all = kinds.map((kind): Column => ({ kind, rounds: [], replies: 0, ...unknown }));
  let columns: readonly Column[] = all;
  /**
   * Runs a step on each target in turn. If a peer fails, its error is printed and it is stopped and
   * left out from then on; any other failure ends the benchmark.
   */
  async function withEach(step: (column: Column) => Promise<void>): Promise<void> {
    for (const column of columns) {
      await step(column).catch(async (error: Error) => {
        await column.target?.stop();
        if (!column.kind.isPeer) throw error;
        console.log(`${column.kind.name} is left out: ${error.message}`);
        columns = columns.filter((other) => other !== column);
      });
    }
  }
  try {
    await withEach((column) => start(column, upstream));
    await withEach((column) => warmUp(column, effort));
    await pause(quietMs(effort));
    for (let round = 0; round < effort.rounds; round += 1) {
      direct.push(await measure(upstream, effort));
      await withEach(async (column) => {
        const measured = await measure(column.target!, effort);
        column.rounds.push(measured);
        column.replies += measured.replies;
      });
    }
    await withEach((column) => readMemoryAfterLoad(column, effort));
  } finally {
    for (const { target } of all) await target?.stop();
  }
  await withEach((column) => readMemoryOfStreams(column, upstream, effort.isTrial));
  if (columns.length === 0) return "There is nothing to compare.";
  const list = columns.map(({ kind }) => `- ${kind.name}: ${kind.switchedOn}.`);
  return `${tableOf(columns, direct)}\n\nWhat each has switched on:\n\n${list.join("\n")}`;
}
