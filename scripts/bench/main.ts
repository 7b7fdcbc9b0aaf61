// What the gateway costs, beside a bare relay and other gateways, in one run on one machine: `npm
// run bench`. Loopback only, bounded: some ten minutes with all peers. The measured process has one
// core, the provider and the load have another, where taskset can say so. Rounds go over all
// targets in turn, so that what the machine does meanwhile hits all alike; the tables show medians.
// --rounds N how many rounds (3) --seconds N of whole replies, each time (4) --only a,b only
// targets whose name begins so --tables a,b of "compare" and "growth"

import { spawnSync } from "node:child_process";
import { cpus } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { growth } from "./growth.ts";
import {
  bodyOf,
  cpuOf,
  cpuPerEvent,
  firstTokens,
  median,
  memoryOf,
  openStreams,
  percentile,
  wholeReplies,
} from "./load.ts";
import {
  gateway,
  peers,
  pinned,
  PEERS,
  relay,
  startProvider,
  type Kind,
  type Target,
} from "./targets.ts";
import { table } from "./table.ts";

const text = { type: "string" } as const;
const { values } = parseArgs({
  options: { rounds: text, seconds: text, only: text, tables: text },
});
const ROUNDS = Number(values.rounds ?? 3);
const SECONDS = Number(values.seconds ?? 4);
const [STREAMS, EVENTS, EVERY] = [50, 300, 10];
const OPEN = 1_000;
const QUICK = SECONDS < 2; // to see that it runs: its figures are worth little
const WARM_SECONDS = QUICK ? 1 : 5;
const QUIET_MS = QUICK ? 100 : 6_000;

/** The figures of one target, a list of rounds each. */
type Figures = {
  [name in
    | "perSecond"
    | "cpu"
    | "p50"
    | "p99"
    | "p50of64"
    | "p99of64"
    | "first50"
    | "first99"
    | "event"]: number[];
};

async function round(target: Target, figures: Figures): Promise<void> {
  const body = bodyOf("bytes=300", target.model);
  const event = await cpuPerEvent(target, STREAMS, EVENTS, EVERY);
  const first = await firstTokens(target, 300);
  const single = await wholeReplies(target, 1, SECONDS / 2, body);
  const before = cpuOf(target.pid);
  const full = await wholeReplies(target, 64, SECONDS, body);
  // What is left to be done for these requests counts, and must not count for anything else.
  await pause(QUIET_MS);
  const cpu = (cpuOf(target.pid) - before) / full.count;
  const seen = {
    perSecond: full.perSecond,
    cpu,
    p50of64: full.p50,
    p99of64: full.p99,
    p50: single.p50,
    p99: single.p99,
    first50: median(first),
    first99: percentile(first, 0.99),
    event,
  };
  for (const [name, value] of Object.entries(seen)) figures[name as keyof Figures].push(value);
}

const noFigures = (): Figures => ({
  perSecond: [],
  cpu: [],
  p50: [],
  p99: [],
  p50of64: [],
  p99of64: [],
  first50: [],
  first99: [],
  event: [],
});
const megabytes = (bytes = 0) => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);

async function compare(kinds: readonly Kind[], upstream: Target): Promise<string> {
  const direct = noFigures();
  const rows: { kind: Kind; target: Target; figures: Figures; idle: number }[] = [];
  try {
    for (const kind of kinds) {
      const target = await kind.start(upstream.url);
      await pause(1000);
      rows.push({ kind, target, figures: noFigures(), idle: memoryOf(target.pid) });
    }
    // Warm-up: until what is often called has been compiled.
    for (const { target } of rows) {
      await wholeReplies(target, 64, WARM_SECONDS, bodyOf("bytes=300", target.model));
      await cpuPerEvent(target, STREAMS, EVENTS, EVERY);
    }
    await pause(QUIET_MS);
    for (let rounds = 0; rounds < ROUNDS; rounds += 1) {
      await round(upstream, direct);
      for (const { target, figures } of rows) await round(target, figures);
    }
    await pause(QUICK ? 100 : 10_000);
    const after = rows.map(({ target }) => memoryOf(target.pid));
    const open: number[] = [];
    for (const { target } of rows)
      open.push(
        await openStreams(target, OPEN).then(
          ({ bytes }) => bytes,
          () => NaN,
        ),
      );
    const measured = (name: keyof Figures, digits: number) =>
      rows.map(({ figures }) => median(figures[name]).toFixed(digits));
    const added = (name: keyof Figures) =>
      rows.map(({ figures }) => (median(figures[name]) - median(direct[name])).toFixed(2));
    const gateways = (figure: (row: (typeof rows)[number]) => string) =>
      rows.map((row) => (row.kind.diskBytes === undefined ? "" : figure(row)));
    return table([
      ["", ...rows.map(({ kind }) => kind.name)],
      ["whole replies a second, 64 at a time", ...measured("perSecond", 0)],
      ["CPU per whole reply, us", ...measured("cpu", 0)],
      ["added latency, 1 at a time: p50, ms", ...added("p50")],
      ["p99, ms", ...added("p99")],
      ["added latency, 64 at a time: p50, ms", ...added("p50of64")],
      ["p99, ms", ...added("p99of64")],
      ["added time to the first token: p50, ms", ...added("first50")],
      ["p99, ms", ...added("first99")],
      [
        `CPU per streamed event (${STREAMS} streams of ${1000 / EVERY} a second), us`,
        ...measured("event", 1),
      ],
      ["memory, idle, MB", ...rows.map(({ idle }) => megabytes(idle))],
      ["10 s after load, MB", ...after.map(megabytes)],
      [
        `for each of ${OPEN} open streams, KB`,
        ...open.map((bytes) =>
          Number.isNaN(bytes) ? "not open in a minute" : (bytes / 1000).toFixed(1),
        ),
      ],
      ["start to first answer, ms", ...gateways(({ target }) => target.startMs.toFixed(0))],
      ["on disk beside the runtime, MB", ...gateways(({ kind }) => megabytes(kind.diskBytes))],
    ]);
  } finally {
    for (const { target } of rows) await target.stop();
  }
}

if (pinned) spawnSync("taskset", ["-cp", "1", String(process.pid)]);
const { found, absent } = peers();
const chosen = [relay, gateway(), ...found].filter(
  ({ name }) => values.only?.split(",").some((each) => name.startsWith(each)) ?? true,
);
const tables = values.tables?.split(",") ?? ["compare", "growth"];
const upstream = await startProvider();
try {
  console.log(
    `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${cpus()[0]?.model.trim()}, ${pinned ? "one core each for the target and for load and provider" : "not pinned to cores"}, medians of ${ROUNDS} rounds`,
  );
  for (const name of absent)
    console.log(`${name} is left out: it is not in ${PEERS} (scripts/bench/peers.sh installs it)`);
  if (tables.includes("compare")) console.log(`\n${await compare(chosen, upstream)}`);
  if (tables.includes("growth")) console.log(`\n${await growth(upstream)}`);
} finally {
  await upstream.stop();
}
