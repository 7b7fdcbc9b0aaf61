// Runs one attack of scripts/fuzz.ts on a gateway of its own. Each attack defines what its clients
// do. The same must hold for all: /healthz answers throughout (bench/probe.ts), memory has a bound,
// memory and descriptors are released, no request stays in flight, the logs have no unexpected
// line, SIGTERM ends the process, and the books are correct.

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ask } from "../../test/support/admin.ts";
import { heightOf, type Probe } from "../../test/support/probe.ts";
import { launch, runToEnd } from "../../test/support/program.ts";
import { until as untilAnswered, waitFor, within } from "../../test/support/wait.ts";
import { familyOf, memoryOf, percentile } from "../bench/load.ts";
import { pinned } from "../bench/targets.ts";

/** Bytes per megabyte. */
export const MB = 1e6;
/** Bytes as text in whole megabytes. */
export const mb = (bytes: number): string => (bytes / MB).toFixed(0);
const AUDIT_MS = 600_000;
/** Node options with which SIGUSR2 makes a process and its workers collect all garbage. */
const COLLECT_ON_SIGNAL = [
  "--expose-gc",
  "--import",
  `data:text/javascript,${encodeURIComponent('process.on("SIGUSR2", () => gc())')}`,
];

/** The gateway under attack. */
export interface AttackedGateway {
  readonly pid: number;
  readonly port: number;
  readonly adminPort: number;
  /** Its resident memory now, in bytes. */
  readonly memory: () => number;
  /** Its resident memory before the attack, in bytes. */
  readonly before: number;
  /** Makes its processes collect their garbage. */
  readonly collect: () => void;
  /** The number of its open descriptors. */
  readonly descriptors: () => number;
  readonly hasEnded: () => boolean;
  /** Reports `reason` as a fault unless it `holds`. */
  readonly expect: (holds: boolean, reason: string) => void;
}

/** What clients do to a gateway, and the bounds that it must keep. */
export interface Attack {
  readonly name: string;
  /** The gateway's configuration. `folder`: an empty folder for its data. */
  readonly config: (folder: string) => object;
  /** Whether the gateway may answer 503. */
  readonly mayBeBusy: boolean;
  /** Node options of the gateway's process. Absent: none. */
  readonly flags?: readonly string[];
  /** The bound of the memory's growth during the attack, in MB. */
  readonly heightMb: number;
  /** The bound of the growth that remains after the clients have left, in MB. */
  readonly afterMb: number;
  /** Descriptors that may stay open as pooled connections to the provider. Absent: 0. */
  readonly pooled?: number;
  /** The bound of the 99th percentile of /healthz, in ms. Absent: 1,000. */
  readonly p99Ms?: number;
  /** The bound of the slowest answer of /healthz, in ms. Absent: 3,000. */
  readonly worstMs?: number;
  /** Resolves when the clients have left. Says what they did, and what the gateway answered. */
  readonly run: (gateway: AttackedGateway) => Promise<readonly [did: string, answered: string]>;
}

/** Polls a state of another process, which no event reports. Resolves with false after `ms`. */
export const until = (check: () => boolean, ms: number): Promise<boolean> =>
  waitFor(check, "the state of another process", ms).catch(() => false);

/** Whether a line of the access log is correct, with no 5xx except for an allowed 503. */
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
  const options = ["--unhandled-rejections=strict", ...COLLECT_ON_SIGNAL, ...flags];
  const args = [...options, file];
  const core = pinned ? ["taskset", "-c", "0"] : [];
  const program = { args, cwd: process.cwd(), command: [...core, process.execPath] };
  const complaints: string[] = [];
  let isFirst = true; // the line with the address
  const running = launch(program, ["serve", ...settings], {
    env: { NODE_NO_WARNINGS: "0" },
    onLine(line, from) {
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

/** Whether no request is in flight, now or soon. */
const isIdleSoon = ({ admin }: Started): Promise<boolean> =>
  untilAnswered(
    async () => (await ask(admin(), "/status").catch(() => undefined))?.body.in_flight === 0,
    "no request in flight",
    10_000,
  ).catch(() => false);

/** Stops the gateway, and audits its books. */
async function stopAndAudit(started: Started, expect: AttackedGateway["expect"]): Promise<void> {
  const { child, ended, complaints, folder } = started;
  child.kill("SIGTERM");
  const { code, signal } = await within(ended, "the end after SIGTERM", 60_000);
  expect(code === 0, `the gateway ended with ${code ?? signal}`);
  const { code: wrong, stdout, stderr } = await started.audit();
  expect(wrong === 0, `the books are wrong; they are in ${folder}\n${stdout}${stderr}`);
  expect(complaints.length === 0, `in its logs: ${complaints.slice(0, 5).join("\n")}`);
  if (wrong === 0) rmSync(folder, { recursive: true });
}

/** Starts a gateway, attacks it, and stops it. */
export async function runAttack(attack: Attack, file: string, probe: Probe) {
  const { name, heightMb, afterMb, pooled = 0, p99Ms = 1_000, worstMs = 3_000 } = attack;
  const faults: string[] = [];
  const expect: AttackedGateway["expect"] = (holds, reason) => {
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
  writeFileSync(`/proc/${pid}/clear_refs`, "5"); // resets the peak memory
  const [before, openBefore] = [memory(), descriptors()];
  const gateway = { pid, port, adminPort, memory, before, collect, descriptors, hasEnded, expect };
  const [did, answered] = await attack.run(gateway);
  if (hasEnded()) {
    await probe.stop();
    expect(false, `the gateway ended with ${child.exitCode ?? child.signalCode}`);
    return { summary: `${did}: ${answered}`, faults };
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
  expect(await isIdleSoon(started), "requests are still in flight");
  const isBack = () => memory() <= before + afterMb * MB;
  for (let times = 0; times < 5 && !isBack(); times += 1) {
    collect();
    await until(isBack, 1_000);
  }
  const after = memory();
  expect(isBack(), `${mb(after - before)} MB of memory are still held, expected ${afterMb}`);
  await stopAndAudit(started, expect);
  const megabytes = `MB before, at their height, after: ${mb(before)}, ${mb(height)}, ${mb(after)}`;
  const healthz = `/healthz: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(0)}, worst ${worst.toFixed(0)}`;
  return { summary: `${did}: ${answered}\n    ${megabytes}; ${healthz}`, faults };
}
