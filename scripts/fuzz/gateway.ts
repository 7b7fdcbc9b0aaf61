// The gateway that is fuzzed: a process with a data_dir of its own and bounds that a small request
// can reach. Whatever it writes that it should not is a complaint.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { COLLECTS } from "../../test/support/collecting.ts";
import { within } from "../../test/support/wait.ts";

/** Its nursery is kept small: where V8 sizes that by itself, a leak would not show beside it. */
const NODE_OPTIONS = ["--unhandled-rejections=strict", "--max-semi-space-size=4"];

export interface Fuzzed {
  readonly child: ChildProcess;
  /** Resolves with the exit code, or null and a signal. */
  readonly exited: Promise<[code: number | null, signal: string | null]>;
  /** Lines that it should not have written. */
  readonly complaints: readonly string[];
  readonly publicPort: number;
  readonly adminPort: number;
  /** Runs the audit of its books. */
  audit(): Promise<{ readonly code: number; readonly said: string }>;
}

export interface FuzzedOptions {
  /** The program. */
  readonly file: string;
  /** For the configuration and the data. */
  readonly folder: string;
  readonly workers: number;
}

/** Resolves when it listens. */
export async function startFuzzed({ file, folder, workers }: FuzzedOptions): Promise<Fuzzed> {
  const config = writeConfig(folder, workers);
  const args = [...(file.endsWith(".ts") ? ["--import", "tsx"] : []), file];
  const child = spawn(
    process.execPath,
    [...NODE_OPTIONS, ...COLLECTS, ...args, "serve", "--config", config],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  process.once("exit", () => child.kill("SIGKILL"));
  const exited = once(child, "exit") as Fuzzed["exited"];
  const complaints: string[] = [];
  createInterface(child.stderr).on("line", (line) => {
    if (!line.startsWith("{") || line.includes('"internal_error"')) complaints.push(line);
  });
  const lines = createInterface(child.stdout);
  const starting = Promise.race([once(lines, "line"), exited]);
  const [first] = await within(starting, "the gateway to listen", 20_000);
  const addresses = String(first).matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g);
  const [publicPort, adminPort] = [...addresses].map(([, port]) => Number(port));
  if (publicPort === undefined || adminPort === undefined)
    throw new Error(`the gateway did not start: ${[first, ...complaints].join("\n")}`);
  lines.on("line", (line) => {
    if (!isAccessLine(line)) complaints.push(line);
  });
  const audit = () => auditOf([...args, "audit", "--config", config]);
  return { child, exited, complaints, publicPort, adminPort, audit };
}

/** Returns the path of the file. */
function writeConfig(folder: string, workers: number): string {
  const file = join(folder, "gateway.json");
  const demo = new URL("../../src/extensions/providers/demo/demo.json", import.meta.url);
  const config = {
    ...JSON.parse(readFileSync(demo, "utf8")),
    server: { port: 0, workers, max_body_bytes: 65_536, receive_ms: 2_000 },
    admin: { port: 0 },
    data_dir: join(folder, "data"),
    limits: { rpm: null },
    providers: { demo: { dialect: "demo", pace_ms: 0 } },
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** A line of the access log for every answer, whatever the bytes, and none that tells of a 5xx. */
const isAccessLine = (line: string): boolean =>
  /^\{"time":"[^"]+","request_id":"[^"].*"status":[124]\d\d,.*\}$/.test(line);

async function auditOf(args: readonly string[]): Promise<{ code: number; said: string }> {
  const auditor = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  auditor.stdout.on("data", (data: Buffer) => {
    said += data.toString();
  });
  const [code] = await once(auditor, "close");
  return { code: code as number, said };
}

/** Whether nothing is in flight, now or soon. Rejects if nobody answers. */
export async function isIdleSoon(adminPort: number): Promise<boolean> {
  const until = performance.now() + 10_000;
  while (performance.now() < until) {
    const socket = net.connect(adminPort, "127.0.0.1");
    socket.write("GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let text = "";
    socket.on("data", (data: Buffer) => {
      text += data.toString();
    });
    await once(socket, "close");
    if (text.includes("in_flight_requests 0\n")) return true;
  }
  return false;
}
