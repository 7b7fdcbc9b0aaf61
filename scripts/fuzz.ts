// Sends the built gateway a hundred thousand mutated HTTP requests over raw sockets, and reads its
// answers strictly: `npm run build && node --import tsx scripts/fuzz.ts [--cases 100000] [--seed N]
// [--gateway FILE] [--workers 1] [--only 7,8]`. Loopback only; bounded in count, concurrency and
// time. It holds if every answer is well-formed and none a 5xx (fuzz/judge.ts), the server ends
// every connection that it has to, /healthz answers throughout, memory stays flat, nothing is
// unhandled, and the books are right at the end. Exit 1 otherwise, with the seed, the number and
// the bytes of the case; `--only` sends it again, several one after the other. `--self-test` proves
// that the judge notices a server that answers wrongly.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { within } from "../test/support/wait.ts";
import { makeCase, type Case } from "./fuzz/cases.ts";
import { play } from "./fuzz/play.ts";
import { selfTest } from "./fuzz/self-test.ts";

const CONCURRENCY = 192;
const MAX_MS = 900_000;
/**
 * How much resident memory may grow after the warm-up: the first tenth of the cases, and no fewer
 * than the heap takes to find its size. Its nursery is kept small: where V8 sizes that by itself
 * (up to 100 MB and more), a leak would not show beside it.
 */
const MAX_GROWTH_MB = 24;
const WARM_UP = 10_000;
const NODE_OPTIONS = ["--unhandled-rejections=strict", "--max-semi-space-size=4"];

const { values } = parseArgs({
  options: {
    cases: { type: "string", default: "100000" },
    seed: { type: "string" },
    gateway: { type: "string", default: "dist/chat-gateway.mjs" },
    workers: { type: "string", default: "1" },
    only: { type: "string" },
    "self-test": { type: "boolean", default: false },
  },
});

/** As it can be pasted into a string of most languages. */
const escaped = (bytes: Buffer): string =>
  bytes
    .toString("latin1")
    .replace(
      /[^\x20-\x7e]|[\\"]/g,
      (char) =>
        ({ "\r": "\\r", "\n": "\\n" })[char] ??
        `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
    );

/**
 * Starts it on a data_dir of its own, with bounds that a small request can reach; resolves when it
 * listens.
 */
async function startGateway(file: string, folder: string) {
  const demo = JSON.parse(
    readFileSync(new URL("../src/extensions/demo/demo.json", import.meta.url), "utf8"),
  );
  const config = join(folder, "gateway.json");
  writeFileSync(
    config,
    JSON.stringify({
      ...demo,
      server: {
        port: 0,
        workers: Number(values.workers),
        max_body_bytes: 65_536,
        receive_ms: 1_000,
      },
      admin: { port: 0 },
      data_dir: join(folder, "data"),
      limits: { rpm: null },
      providers: { demo: { dialect: "demo", pace_ms: 0 } },
    }),
  );
  const args = [...(file.endsWith(".ts") ? ["--import", "tsx"] : []), file];
  const child = spawn(process.execPath, [...NODE_OPTIONS, ...args, "serve", "--config", config], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  process.once("exit", () => child.kill("SIGKILL"));
  const complaints: string[] = [];
  createInterface(child.stderr).on(
    "line",
    (line) => (line.startsWith("{") && !line.includes('"internal_error"')) || complaints.push(line),
  );
  const lines = createInterface(child.stdout);
  const exited = once(child, "exit") as Promise<[code: number | null, signal: string | null]>;
  const [first] = await within(
    Promise.race([once(lines, "line"), exited]),
    "the gateway to listen",
    20_000,
  );
  const ports = [...String(first).matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g)].map(([, port]) =>
    Number(port),
  );
  if (ports.length !== 2)
    throw new Error(`the gateway did not start: ${[first, ...complaints].join("\n")}`);
  // A line of the access log for every answer, whatever the bytes: one of another form, or that
  // tells of a 5xx, is a complaint.
  lines.on(
    "line",
    (line) =>
      /^\{"time":"[^"]+","request_id":"[^"].*"status":[124]\d\d,.*\}$/.test(line) ||
      complaints.push(line),
  );
  const audit = async () => {
    const auditor = spawn(process.execPath, [...args, "audit", "--config", config], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    auditor.stdout.on("data", (data: Buffer) => (said += data.toString()));
    const [code] = await once(auditor, "close");
    return { code: code as number, said };
  };
  return { child, exited, complaints, ports: ports as [number, number], audit };
}

async function fuzz(): Promise<string[]> {
  const only = values.only?.split(",").map(Number);
  const cases = only?.length ?? Math.min(5_000_000, Number(values.cases));
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  if (!existsSync(values.gateway))
    throw new Error(`there is no ${values.gateway}: run npm run build`);
  console.log(`fuzz: ${cases} cases, seed ${seed}, Node ${process.version}`);
  const folder = mkdtempSync(join(tmpdir(), "fuzz-"));
  const { child, exited, complaints, ports, audit } = await startGateway(values.gateway, folder);
  const startedAt = performance.now();
  const faults: string[] = [];
  const counts = new Map<string, number>();
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1);
  const late = setTimeout(() => {
    faults.push(`not through after ${MAX_MS} ms`);
    child.kill("SIGKILL");
  }, MAX_MS);

  let next = 0;
  // Which cases were under way, or just over, when the first fault was seen or the gateway died: a
  // crash takes all of them along.
  const underWay = new Set<number>();
  const over: number[] = [];
  let suspects: readonly number[] = [];
  const suspect = () => {
    suspects = suspects.length > 0 ? suspects : [...over.slice(-20), ...underWay];
  };
  child.once("exit", suspect);
  const worker = async (): Promise<void> => {
    while (
      next < cases &&
      faults.length === 0 &&
      child.exitCode === null &&
      child.signalCode === null
    ) {
      const number = only?.[next] ?? next;
      next += 1;
      underWay.add(number);
      const sent = makeCase(seed, number);
      const { fault, statuses, end } = await play(ports[sent.admin ? 1 : 0], sent);
      for (const status of statuses) count(`${status}`);
      if (end !== "answered") count(end);
      if (fault !== undefined) {
        suspect();
        faults.push(tell(number, sent, fault));
      }
      underWay.delete(number);
      if (over.push(number) > 1_000) over.splice(0, 900);
    }
  };
  const tell = (number: number, sent: Case, fault: string) =>
    `${fault}\n  seed ${seed}, case ${number} (${sent.told}), to the ${sent.admin ? "admin" : "public"} listener, in packets:\n${sent.pieces.map((piece) => `  "${escaped(piece)}"`).join("\n")}`;

  const samples: { done: number; rss: number }[] = [];
  let [probes, slowest] = [0, 0];
  const probe: Case = {
    ...makeCase(seed, 0),
    pieces: [Buffer.from("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")],
    ending: "server",
    expected: [200],
  };
  const watch = setInterval(() => {
    try {
      const workers = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8")
        .trim()
        .split(" ");
      const sizes = [`${child.pid}`, ...workers].map((pid) =>
        pid === ""
          ? 0
          : Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]),
      );
      samples.push({ done: next, rss: sizes.reduce((sum, size) => sum + size) / 1024 });
    } catch {} // not on Linux, or just ended
    const askedAt = performance.now();
    play(ports[0], probe).then(({ fault }) => {
      probes += 1;
      slowest = Math.max(slowest, performance.now() - askedAt);
      if (fault !== undefined) faults.push(`/healthz: ${fault}`);
    });
  }, 200);
  await Promise.all(Array.from({ length: only ? 1 : CONCURRENCY }, worker));
  clearInterval(watch);
  clearTimeout(late);

  const seconds = (performance.now() - startedAt) / 1000;
  const idle = await idleAfter(ports[1]).catch(() => false);
  if (!idle) await within(exited, "its end, if that is why", 2_000).catch(() => undefined);
  if (child.exitCode !== null || child.signalCode !== null) {
    const again = `--seed ${seed} --only ${suspects.join()}`;
    faults.splice(
      0,
      only ? 0 : faults.length,
      `the gateway ended with ${child.exitCode ?? child.signalCode}; one of the cases that were under way did it: ${again}`,
    );
  } else {
    if (!idle) faults.push("requests are still in flight");
    child.kill("SIGTERM");
    const [code] = await within(exited, "the end after SIGTERM", 20_000).catch(() => [undefined]);
    if (code !== 0) faults.push(`after SIGTERM it ended with ${code}`);
  }
  const { code, said } = await audit();
  if (code !== 0) faults.push(`the books are wrong; they are in ${folder}\n${said}`);
  else rmSync(folder, { recursive: true });
  for (const complaint of complaints.slice(0, 10))
    faults.push(`unexpected in its logs: ${complaint}`);

  const mean = (from: number, to: number) => {
    const rss = samples
      .filter(({ done }) => done >= from && done <= to)
      .map((sample) => sample.rss);
    return rss.reduce((sum, each) => sum + each, 0) / rss.length;
  };
  const warm = Math.max(WARM_UP, 0.1 * cases);
  const [begin, end] = [
    mean(warm, warm + 0.1 * cases),
    cases < 2 * WARM_UP ? NaN : mean(0.9 * cases, cases),
  ];
  if (end - begin > MAX_GROWTH_MB)
    faults.push(`memory grew by ${(end - begin).toFixed(1)} MB, ${MAX_GROWTH_MB} are allowed`);
  for (const [what, times] of [...counts].sort())
    console.log(`  ${String(times).padStart(8)}  ${what}`);
  console.log(
    `  /healthz was asked ${probes} times meanwhile, the slowest answer took ${slowest.toFixed(0)} ms; ${said.trim().replaceAll("\n", "; ")}`,
  );
  const memory = Number.isNaN(begin + end)
    ? "not measured"
    : `${begin.toFixed(1)} MB after the warm-up, ${end.toFixed(1)} MB at the end`;
  const by = (digit: string) =>
    [...counts].reduce((sum, [what, times]) => sum + (what[0] === digit ? times : 0), 0);
  console.log(
    `fuzz: ${next} cases in ${seconds.toFixed(0)} s, seed ${seed}: ${by("2")} 2xx, ${by("4")} 4xx, ${by("5")} 5xx, ${counts.get("closed without an answer") ?? 0} closed without an answer; memory ${memory}`,
  );
  return faults;
}

/** Whether nothing is in flight, now or soon; rejects if nobody answers. */
async function idleAfter(port: number): Promise<boolean> {
  const until = performance.now() + 10_000;
  while (performance.now() < until) {
    const socket = net.connect(port, "127.0.0.1");
    socket.write("GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let text = "";
    socket.on("data", (data: Buffer) => (text += data.toString()));
    await once(socket, "close");
    if (text.includes("in_flight_requests 0\n")) return true;
  }
  return false;
}

const faults = values["self-test"] ? await selfTest() : await fuzz();
for (const fault of faults.slice(0, 5)) console.log(`FAILED: ${fault}`);
if (values["self-test"])
  console.log(
    `self-test: ${faults.length === 0 ? "each wrong answer was noticed, and no right one" : "failed"}`,
  );
process.exitCode = faults.length === 0 ? 0 : 1;
