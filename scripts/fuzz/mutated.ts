// The attack of scripts/fuzz.ts with mutated requests over raw sockets, many at a time, until all
// cases have run or one has found a fault. If the gateway crashes, it reports the cases that were
// in flight or had just ended, because any of them may be the reason.

import { join } from "node:path";
import { inspect } from "node:util";
import demo from "../../src/extensions/providers/demo/demo.json" with { type: "json" };
import { counted } from "../bench/table.ts";
import { until, type Attack, type AttackedGateway } from "./attack.ts";
import { makeCase, type Case } from "./cases.ts";
import { runCase } from "./run-case.ts";

const CONCURRENCY = 192;
const MAX_MS = 900_000;
/** The number of ended cases that are reported after a crash. */
const SUSPECTS = 20;

interface MutatedOptions {
  readonly seed: number;
  /** The number of cases. */
  readonly cases: number;
  /** Only these cases, one after another. Absent: 0, 1, 2 and so on. */
  readonly only?: readonly number[] | undefined;
}

/** The demo configuration, with bounds that small requests can reach. */
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

async function run(gateway: AttackedGateway, options: MutatedOptions) {
  const { seed, only, cases } = options;
  /** The statuses of all answers, and how connections ended without one. */
  const ends: string[] = [];
  const startedAt = performance.now();
  const inFlight = new Set<number>();
  const ended: number[] = [];
  const faults: string[] = [];
  let next = 0;

  async function send(number: number): Promise<void> {
    inFlight.add(number);
    const sent = makeCase(seed, number);
    const { statuses, end, fault } = await runCase(
      sent.admin ? gateway.adminPort : gateway.port,
      sent,
    );
    ends.push(...statuses.map(String));
    if (end !== "answered") ends.push(end);
    if (fault !== undefined) faults.push(describe(options, number, sent, fault));
    inFlight.delete(number);
    ended.push(number);
    if (ended.length > 1_000) ended.splice(0, ended.length - SUSPECTS);
  }
  const work = async () => {
    while (next < cases && faults.length === 0 && performance.now() - startedAt < MAX_MS) {
      next += 1;
      await send(only?.[next - 1] ?? next - 1);
    }
  };
  await Promise.all(Array.from({ length: only ? 1 : CONCURRENCY }, work));
  // After a crash, the faults only say that connections broke off.
  const hasCrashed = faults.length > 0 && (await until(gateway.hasEnded, 2_000));
  const suspects = [...ended.slice(-SUSPECTS), ...inFlight].join();
  gateway.expect(!hasCrashed, `one of these made it crash: --seed ${seed} --case ${suspects}`);
  for (const fault of hasCrashed ? [] : faults) gateway.expect(false, fault);
  gateway.expect(faults.length > 0 || next === cases, `not through after ${MAX_MS} ms`);
  return [`${next} mutated requests, seed ${seed}`, counted(ends)] as const;
}

const WHOLE = { maxStringLength: null };

/** A fault with the case that found it. */
function describe({ seed }: MutatedOptions, number: number, sent: Case, fault: string): string {
  const listener = sent.admin ? "admin" : "public";
  const packets = sent.pieces
    .map((piece) => `  ${inspect(piece.toString("latin1"), WHOLE)}`)
    .join("\n");
  return `${fault}\n  --seed ${seed} --case ${number} (${sent.description}), to the ${listener} listener, in packets:\n${packets}`;
}

/** The attack with these cases. */
export const mutatedRequests = (options: MutatedOptions): Attack => ({
  name: "mutated requests",
  config: configIn,
  mayBeBusy: false,
  // A small young generation, because its size otherwise varies more than a leak would show. The
  // heap of a warm gateway takes up to 100 MB more than that of a fresh one, however many requests
  // it gets, so a small leak only shows in a run with more cases.
  flags: ["--max-semi-space-size=4"],
  heightMb: 400,
  afterMb: 150,
  run: (gateway) => run(gateway, options),
});
