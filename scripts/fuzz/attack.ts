// One attack of scripts/fuzz.ts on a gateway of its own, from its start to its end. What clients do
// is the attack's own matter. What must hold is the same for all: /healthz answers throughout
// (bench/probe.ts), memory has a bound and comes back, as descriptors do, no request stays in hand,
// nothing is written that should not be, SIGTERM ends the process, and the books are right.

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ask } from "../../test/support/admin.ts";
import { heightOf, type Probe } from "../../test/support/probe.ts";
import { launch, runToEnd } from "../../test/support/program.ts";
import { until as untilAnswered, waitFor, within } from "../../test/support/wait.ts";
import { familyOf, memoryOf, percentile } from "../bench/load.ts";
import { pinned } from "../bench/targets.ts";

export const MB = 1e6;
export const mb = (bytes: number): string => (bytes / MB).toFixed(0);
const AUDIT_MS = 600_000;
/**
 * Options of Node: the process, and workers that it starts, collect all garbage on SIGUSR2. By
 * itself Node keeps garbage until its room is needed.
 */
const COLLECTS = [
  "--expose-gc",
  "--import",
  `data:text/javascript,${encodeURIComponent('process.on("SIGUSR2", () => gc())')}`,
];

/** The gateway under attack. */
export interface Stage {
  readonly pid: number;
  readonly port: number;
  readonly adminPort: number;
  /** Resident bytes of the gateway now, and before the clients came. */
  readonly memory: () => number;
  readonly before: number;
  /** Makes the gateway's processes collect their garbage. */
  readonly collect: () => void;
  /** Open descriptors of the gateway. */
  readonly descriptors: () => number;
  readonly hasEnded: () => boolean;
  readonly expect: (holds: boolean, reason: string) => void;
}

export interface Attack {
  readonly name: string;
  /** The gateway's configuration; `folder` is for its data. */
  readonly config: (folder: string) => object;
  /** Whether the gateway may answer 503. */
  readonly mayBeBusy: boolean;
  /** Options of Node for the gateway's process; absent: none. */
  readonly flags?: readonly string[];
  /**
   * Bounds of the memory in MB, above what it was before: at its height, and when the clients have
   * left.
   */
  readonly heightMb: number;
  readonly afterMb: number;
  /** Descriptors that may stay: pooled connections to the provider. Absent: 0. */
  readonly pooled?: number;
  /** Bounds of /healthz in ms; absent: 1,000 and 3,000. */
  readonly p99Ms?: number;
  readonly worstMs?: number;
  /** Ends when the clients have left; tells what they did, and what they were answered. */
  readonly run: (stage: Stage) => Promise<readonly [did: string, answered: string]>;
}

/** Waits for the state of another process, which no event reports. False: it took too long. */
export const until = (check: () => boolean, ms: number): Promise<boolean> =>
  waitFor(check, "the state of another process", ms).catch(() => false);

/** A line of the access log as it must be: no 5xx other than 503, and that only where allowed. */
const isAccessLine = (line: string, mayBeBusy: boolean): boolean =>
  /^\{"time":"[^"]+","request_id":"[^"].*"status":([124]\d\d|503),.*\}$/.test(line) &&
  (mayBeBusy || !line.includes('"status":503,'));
const isDiagnostic = (line: string): boolean =>
  line.startsWith("{") && !/unhandled|internal_error|"level":"error"/i.test(line);

/** Starts the gateway of an attack. */
async function start({ config, flags = [], mayBeBusy }: Attack, file: string) {
  const folder = mkdtempSync(join(tmpdir(), "fuzz-"));
  const settings = ["--config", join(folder, "gateway.json")];
  writeFileSync(settings[1]!, JSON.stringify(config(folder)));
  const options = ["--unhandled-rejections=strict", ...COLLECTS, ...flags];
  const args = [...options, file];
  const core = pinned ? ["taskset", "-c", "0"] : [];
  const program = { args, cwd: process.cwd(), command: [...core, process.execPath] };
  const complaints: string[] = [];
  let isFirst = true; // the line that says where it listens
  const running = launch(program, ["serve", ...settings], {
    env: { NODE_NO_WARNINGS: "0" },
    heard(line, from) {
      const isDue =
        from === "stdout" ? isFirst || isAccessLine(line, mayBeBusy) : isDiagnostic(line);
      if (from === "stdout") isFirst = false;
      if (!isDue) complaints.push(line);
    },
  });
  process.once("exit", () => running.child.kill("SIGKILL"));
  const portOf = (url: string) => Number(new URL(url).port);
  const port = portOf(await within(running.address, "the gateway to listen", 20_000));
  const audit = () => runToEnd(program, ["audit", ...settings], AUDIT_MS);
  return { ...running, folder, complaints, port, adminPort: portOf(running.admin()), audit };
}
type Started = Awaited<ReturnType<typeof start>>;

/** Whether no request is in hand, now or soon. */
const isIdleSoon = ({ admin }: Started): Promise<boolean> =>
  untilAnswered(
    async () => (await ask(admin(), "/status").catch(() => undefined))?.body.in_flight === 0,
    "no request in hand",
    10_000,
  ).catch(() => false);

/** Ends the gateway, and asks for its books. */
async function end(started: Started, expect: Stage["expect"]): Promise<void> {
  const { child, ended, complaints, folder } = started;
  child.kill("SIGTERM");
  const { code, signal } = await within(ended, "the end after SIGTERM", 60_000);
  expect(code === 0, `the gateway ended with ${code ?? signal}`);
  const { code: wrong, stdout, stderr } = await started.audit();
  expect(wrong === 0, `the books are wrong; they are in ${folder}\n${stdout}${stderr}`);
  expect(complaints.length === 0, `in its logs: ${complaints.slice(0, 5).join("\n")}`);
  if (wrong === 0) rmSync(folder, { recursive: true });
}

/** What came of an attack, in words, and what is wrong. */
export interface Outcome {
  readonly told: string;
  readonly faults: readonly string[];
}

export async function play(attack: Attack, file: string, probe: Probe): Promise<Outcome> {
  const { name, heightMb, afterMb, pooled = 0, p99Ms = 1_000, worstMs = 3_000 } = attack;
  const faults: string[] = [];
  const expect: Stage["expect"] = (holds, reason) => {
    if (!holds) faults.push(`${name}: ${reason}`);
  };
  const started = await start(attack, file);
  const { child, port, adminPort } = started;
  const pid = child.pid!;
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const memory = () => memoryOf(pid);
  const descriptors = () => readdirSync(`/proc/${pid}/fd`).length;
  const collect = () => {
    for (const each of hasEnded() ? [] : familyOf(pid)) process.kill(each, "SIGUSR2");
  };
  await probe.start(port);
  writeFileSync(`/proc/${pid}/clear_refs`, "5"); // its height is counted from here
  const [before, openBefore] = [memory(), descriptors()];
  const stage = { pid, port, adminPort, memory, before, collect, descriptors, hasEnded, expect };
  const [did, answered] = await attack.run(stage);
  if (hasEnded()) {
    await probe.stop();
    expect(false, `the gateway ended with ${child.exitCode ?? child.signalCode}`);
    return { told: `${did}: ${answered}`, faults };
  }

  const open = `${openBefore} descriptors before, ${pooled} may be pooled`;
  const isLeft = await until(() => descriptors() <= openBefore + pooled, 10_000);
  expect(isLeft, `${descriptors()} descriptors when the clients have left: ${open}`);
  const { times, lost } = await probe.stop();
  const [p50, p99, worst] = [percentile(times, 0.5), percentile(times, 0.99), Math.max(...times)];
  expect(lost === 0 && times.length > 0, `${lost} questions for /healthz were not answered`);
  const bounds = `expected ${p99Ms} and ${worstMs}`;
  const isAlive = p99 <= p99Ms && worst <= worstMs;
  expect(isAlive, `/healthz: p99 ${p99.toFixed(0)} ms, worst ${worst.toFixed(0)} ms, ${bounds}`);
  const height = heightOf(pid);
  const grown = mb(height - before);
  expect(height - before <= heightMb * MB, `memory grew by ${grown} MB, expected ${heightMb}`);
  expect(await isIdleSoon(started), "requests are still in hand");
  const isBack = () => memory() <= before + afterMb * MB;
  for (let times = 0; times < 5 && !isBack(); times += 1) {
    collect();
    await until(isBack, 1_000);
  }
  const after = memory();
  expect(isBack(), `${mb(after - before)} MB of memory are still held, expected ${afterMb}`);
  await end(started, expect);
  const megabytes = `MB before, at their height, after: ${mb(before)}, ${mb(height)}, ${mb(after)}`;
  const healthz = `/healthz: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(0)}, worst ${worst.toFixed(0)}`;
  return { told: `${did}: ${answered}\n    ${megabytes}; ${healthz}`, faults };
}
