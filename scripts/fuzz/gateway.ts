// The gateway that is fuzzed: a process with a data_dir of its own and bounds that a small request
// can reach. Whatever it writes that it should not is a complaint.

import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { COLLECTS } from "../../test/support/collecting.ts";
import { launch, runToEnd, type Ended, type Running } from "../../test/support/program.ts";
import { within } from "../../test/support/wait.ts";

/** Its nursery is kept small: where V8 sizes that by itself, a leak would not show beside it. */
const NODE_OPTIONS = ["--unhandled-rejections=strict", "--max-semi-space-size=4"];
const AUDIT_MS = 600_000;

export interface Fuzzed extends Running {
  /** Lines that it should not have written. */
  readonly complaints: readonly string[];
  readonly publicPort: number;
  readonly adminPort: number;
  /** Runs the audit of its books. */
  audit(): Promise<Ended>;
}

/** Resolves when it listens. `folder` is for the configuration and the data. */
export async function startFuzzed(file: string, folder: string, workers: number): Promise<Fuzzed> {
  const config = ["--config", writeConfig(folder, workers)];
  const source = file.endsWith(".ts") ? ["--import", "tsx"] : [];
  const program = { args: [...NODE_OPTIONS, ...COLLECTS, ...source, file], cwd: process.cwd() };
  const complaints: string[] = [];
  let isFirst = true; // the line that says where it listens
  const running = launch(program, ["serve", ...config], {
    env: { NODE_NO_WARNINGS: "0" },
    heard(line, from) {
      const isDue = from === "stdout" ? isFirst || isAccessLine(line) : isDiagnostic(line);
      if (from === "stdout") isFirst = false;
      if (!isDue) complaints.push(line);
    },
  });
  process.once("exit", () => running.child.kill("SIGKILL"));
  const address = await within(running.address, "the gateway to listen", 20_000);
  const portOf = (url: string) => Number(new URL(url).port);
  return {
    ...running,
    publicPort: portOf(address),
    adminPort: portOf(running.admin()),
    complaints,
    audit: () => runToEnd(program, ["audit", ...config], AUDIT_MS),
  };
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

const isDiagnostic = (line: string): boolean =>
  line.startsWith("{") && !line.includes('"internal_error"');
/** A line of the access log for every answer, whatever the bytes, and none that tells of a 5xx. */
const isAccessLine = (line: string): boolean =>
  /^\{"time":"[^"]+","request_id":"[^"].*"status":[124]\d\d,.*\}$/.test(line);

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
