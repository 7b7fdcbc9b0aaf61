// What is watched while the cases are sent: whether /healthz answers, and the resident memory of
// the gateway's processes.

import { readFileSync } from "node:fs";
import { makeCase, type Case } from "./cases.ts";
import { play } from "./play.ts";

const LOOK_MS = 200;
/**
 * How much resident memory may grow from the tenth of the cases after the warm-up to the last
 * tenth. The processes collect their garbage while these are measured, and the least counts: what
 * is above it is garbage that was made since. The warm-up is the first tenth, and no less than the
 * heap takes to find its size.
 */
const MAX_GROWTH_MB = 24;
const WARM_UP = 10_000;

const PROBE: Case = {
  ...makeCase(0, 0),
  pieces: [Buffer.from("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")],
  ending: "server",
  expected: [200],
};

export interface WatchOptions {
  /** The gateway's first process. */
  readonly pid: number;
  readonly publicPort: number;
  /** How many cases there are. */
  readonly cases: number;
  /** How many cases have been begun. */
  readonly begun: () => number;
  /** Called with what is wrong. */
  readonly fault: (text: string) => void;
}

export interface Watch {
  stop(): void;
  /** How often /healthz answered, and the slowest answer in milliseconds. */
  health(): { readonly probes: number; readonly slowestMs: number };
  /** What is to be said of the memory; reports a growth as a fault. */
  memory(): string;
}

export function startWatch({ pid, publicPort, cases, begun, fault }: WatchOptions): Watch {
  const warm = Math.max(WARM_UP, 0.1 * cases);
  const isMeasured = (at: number): boolean =>
    (at >= warm && at <= warm + 0.1 * cases) || at >= 0.9 * cases;
  const samples: { readonly begun: number; readonly megabytes: number }[] = [];
  let probes = 0;
  let slowestMs = 0;

  async function probe(): Promise<void> {
    const askedAt = performance.now();
    const { fault: found } = await play(publicPort, PROBE);
    probes += 1;
    slowestMs = Math.max(slowestMs, performance.now() - askedAt);
    if (found !== undefined) fault(`/healthz: ${found}`);
  }
  const timer = setInterval(() => {
    const pids = processesOf(pid);
    const megabytes = residentMegabytes(pids);
    if (megabytes !== undefined) samples.push({ begun: begun(), megabytes });
    // It is measured at the next look.
    if (isMeasured(begun())) collect(pids);
    probe().catch((error: unknown) => fault(`/healthz: ${String(error)}`));
  }, LOOK_MS);

  /** Infinity: there is no sample. */
  function least(from: number, to: number): number {
    const within = samples.filter((sample) => sample.begun >= from && sample.begun <= to);
    return Math.min(...within.map(({ megabytes }) => megabytes));
  }

  return {
    stop: () => clearInterval(timer),
    health: () => ({ probes, slowestMs }),
    memory() {
      const before = least(warm, warm + 0.1 * cases);
      const after = cases < 2 * WARM_UP ? Infinity : least(0.9 * cases, cases);
      if (before + after === Infinity) return "not measured";
      const growth = after - before;
      if (growth > MAX_GROWTH_MB)
        fault(`memory grew by ${growth.toFixed(1)} MB, ${MAX_GROWTH_MB} are allowed`);
      return `${before.toFixed(1)} MB after the warm-up, ${after.toFixed(1)} MB at the end`;
    },
  };
}

/** Tells processes to collect their garbage; see COLLECTS. One may have ended just now. */
function collect(pids: readonly number[]): void {
  try {
    for (const pid of pids) process.kill(pid, "SIGUSR2");
  } catch {}
}

/** A process and its children. None: this is not Linux, or it has just ended. */
function processesOf(pid: number): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return [pid, ...children.split(" ").filter(Boolean).map(Number)];
  } catch {
    return [];
  }
}

/** Of some processes together. Undefined: there is none, or one has just ended. */
function residentMegabytes(pids: readonly number[]): number | undefined {
  try {
    const kilobytes = pids.map((each) =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${each}/status`, "utf8"))?.[1]),
    );
    return kilobytes.length === 0 ? undefined : kilobytes.reduce((sum, size) => sum + size) / 1024;
  } catch {
    return undefined;
  }
}
