// The attack of scripts/fuzz.ts with mutated requests over raw sockets, many at a time, until all
// are through or one shows a fault. It knows which cases were under way, or just over, when the
// gateway crashed: a crash takes all of them along.

import { join } from "node:path";
import { inspect } from "node:util";
import demo from "../../src/extensions/providers/demo/demo.json" with { type: "json" };
import { until, type Attack, type Stage } from "./attack.ts";
import { makeCase, type Case } from "./cases.ts";
import { play } from "./play.ts";

const CONCURRENCY = 192;
const MAX_MS = 900_000;
/** How many of the cases that ended last may have made the gateway crash. */
const LAST = 20;

interface MutatedOptions {
  readonly seed: number;
  /** How many cases. */
  readonly cases: number;
  /** Only these cases, one after the other. Absent: 0, 1, 2 and so on. */
  readonly only?: readonly number[] | undefined;
}

/** The demo configuration, with bounds that a small request can reach. */
function configIn(folder: string): object {
  return {
    ...demo,
    server: { port: 0, max_body_bytes: 65_536, receive_ms: 3_000 },
    admin: { port: 0 },
    data_dir: join(folder, "data"),
    limits: { rpm: null },
    providers: { demo: { dialect: "demo", pace_ms: 0 } },
  };
}

async function run(stage: Stage, options: MutatedOptions) {
  const { seed, only, cases = only!.length } = options;
  const counts = new Map<string, number>();
  const count = (what: string | number) => counts.set(`${what}`, (counts.get(`${what}`) ?? 0) + 1);
  const startedAt = performance.now();
  const underWay = new Set<number>();
  const over: number[] = [];
  const faults: string[] = [];
  let next = 0;

  async function send(number: number): Promise<void> {
    underWay.add(number);
    const sent = makeCase(seed, number);
    const { statuses, end, fault } = await play(sent.admin ? stage.adminPort : stage.port, sent);
    for (const status of statuses) count(status);
    if (end !== "answered") count(end);
    if (fault !== undefined) faults.push(told(options, number, sent, fault));
    underWay.delete(number);
    over.push(number);
    if (over.length > 1_000) over.splice(0, over.length - LAST);
  }
  const work = async () => {
    while (next < cases && faults.length === 0 && performance.now() - startedAt < MAX_MS) {
      next += 1;
      await send(only?.[next - 1] ?? next - 1);
    }
  };
  await Promise.all(Array.from({ length: only ? 1 : CONCURRENCY }, work));
  // If the gateway has crashed, the faults are of the connections that it broke off.
  const hasCrashed = faults.length > 0 && (await until(stage.hasEnded, 2_000));
  const suspects = [...over.slice(-LAST), ...underWay].join();
  stage.expect(!hasCrashed, `one of these made it crash: --seed ${seed} --case ${suspects}`);
  for (const fault of hasCrashed ? [] : faults) stage.expect(false, fault);
  stage.expect(faults.length > 0 || next === cases, `not through after ${MAX_MS} ms`);
  const seen = [...counts].sort().map(([what, times]) => `${times} x ${what}`);
  return [`${next} mutated requests, seed ${seed}`, seen.join(", ")] as const;
}

const WHOLE = { maxStringLength: null };

/** A fault with the case that showed it. */
function told({ seed }: MutatedOptions, number: number, sent: Case, fault: string): string {
  const listener = sent.admin ? "admin" : "public";
  const packets = sent.pieces
    .map((piece) => `  ${inspect(piece.toString("latin1"), WHOLE)}`)
    .join("\n");
  return `${fault}\n  --seed ${seed} --case ${number} (${sent.told}), to the ${listener} listener, in packets:\n${packets}`;
}

export const mutatedRequests = (options: MutatedOptions): Attack => ({
  name: "mutated requests",
  config: configIn,
  mayBeBusy: false,
  // Its nursery is kept small: where V8 sizes that by itself, a leak would not show beside it. The
  // heap of a warm gateway takes up to 100 MB more than that of one that has just begun, however
  // many requests there are: a small leak shows in a run of more cases.
  flags: ["--max-semi-space-size=4"],
  heightMb: 400,
  afterMb: 150,
  run: (stage) => run(stage, options),
});
