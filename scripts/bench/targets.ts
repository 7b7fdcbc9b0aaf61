// The targets of the benchmark: processes that take chat requests, each pinned to its own core. How
// they are started, detected as ready, and stopped; the relay and this gateway; and the provider
// behind them all.

import { spawnSync } from "node:child_process";
import { lstatSync, readdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { folder } from "../../test/support/folder.ts";
import { fromSources, launch, type Running } from "../../test/support/program.ts";
import { answered, type Callee } from "./chat.ts";

/** A running process that takes chat requests. */
export interface Target extends Callee {
  readonly name: string;
  readonly model: string;
  readonly pid: number;
  /** Milliseconds from the start of the process to its first response. */
  readonly startMs: number;
  /** Ends the process if it still runs. */
  readonly stop: () => Promise<void>;
}

/** Something that can be started as a target. */
export interface Kind {
  readonly name: string;
  /** What it does for each request, in words, for the list below the table. */
  readonly switchedOn: string;
  /** Bytes on disk, without the language runtime. Undefined: it is not a gateway. */
  readonly diskBytes: number | undefined;
  /** Whether the benchmark continues without it if it fails. */
  readonly isPeer: boolean;
  readonly start: (upstream: string) => Promise<Target>;
}

/** Whether targets can be pinned to a core. */
export const pinned = spawnSync("taskset", ["-V"]).status === 0;
/** The machine, in words. */
export const MACHINE = `Node ${process.version}, ${cpus()[0]?.model.trim()}`;
/**
 * Leaves the first core to the targets, if processes can be pinned. Returns how cores are shared.
 */
export function leaveCore(shared: string): string {
  if (!pinned) return "not pinned to cores";
  spawnSync("taskset", ["-cp", "1", String(process.pid)]);
  return `one core each for ${shared}`;
}
/** The options with which Node runs this folder's sources. */
export const TYPESCRIPT = ["--import", "tsx"];

/** How a chat request is sent. */
export const CALL: Pick<Target, "path" | "model" | "headers"> = {
  path: "/v1/chat/completions",
  model: "m",
  headers: { "content-type": "application/json" },
};

interface Start {
  readonly name: string;
  /** Where its chat requests differ from CALL. */
  readonly call?: Partial<typeof CALL>;
  /** The port passed to the process. Absent: the process prints its port. */
  readonly port?: number;
  readonly command: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Kills a process and waits until it has ended. */
export async function stop({ child, ended }: Running): Promise<void> {
  child.kill("SIGKILL");
  await ended;
}

/** Starts a target on one core, away from the load, and waits until it answers. */
export async function started(start: Start): Promise<Target> {
  const { name, port, env } = start;
  const call = { ...CALL, ...start.call };
  const began = performance.now();
  const command = pinned ? ["taskset", "-c", "0", ...start.command] : start.command;
  const program = { command, args: [], cwd: process.cwd() };
  const running = launch(program, [], { env: { ...process.env, ...env }, onLine: "ignore" });
  const { child, stdout, stderr } = running;
  const end = () => stop(running);
  try {
    const url = port === undefined ? await running.address : `http://127.0.0.1:${port}`;
    const isAlive = () => child.exitCode === null && child.signalCode === null;
    await answered({ name, url, ...call }, isAlive).catch((error: Error) => {
      throw new Error(`${error.message}; it last said: ${(stdout() + stderr()).slice(-300)}`);
    });
    const startMs = performance.now() - began;
    return { name, url, ...call, pid: child.pid!, startMs, stop: end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** The size in bytes of a file, or of all files in a folder. Symbolic links are not followed. */
export function sizeOf(path: string): number {
  const found = lstatSync(path);
  if (found.isSymbolicLink()) return 0;
  if (!found.isDirectory()) return found.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

/** The provider behind all targets, on the core of the load generator. */
export async function startProvider(): Promise<Target> {
  const running = launch(fromSources(process.cwd(), "scripts/bench/provider.ts"), []);
  return {
    name: "no gateway",
    url: await running.address,
    ...CALL,
    pid: running.child.pid!,
    startMs: 0,
    stop: () => stop(running),
  };
}

/** The minimum work of any gateway on `node:http`. */
export const relay: Kind = {
  name: "relay",
  switchedOn: "nothing but parsing and re-serializing both bodies and each event, on `node:http`",
  diskBytes: undefined,
  isPeer: false,
  start: (upstream) =>
    started({
      name: "relay",
      command: [process.execPath, ...TYPESCRIPT, "scripts/bench/relay.ts", upstream],
    }),
};

/** The configuration of a gateway that keeps its books in `place`. */
export function gatewayConfig(upstream: string, place: string) {
  const price = { input_cache_miss: 0.28, input_cache_hit: 0.028, output: 0.42 };
  return {
    data_dir: join(place, "data"),
    admin: { port: 0 },
    aliases: {},
    limits: { rpm: 1_000_000 },
    providers: { fast: { dialect: "openai", base_url: upstream } },
    models: { m: { provider: "fast", price } },
    keys: [{ account: "bench", key: "sk-bench" }],
  };
}

const FILE = "dist/chat-gateway.mjs";
/** The headers of a request to this gateway. */
export const AUTHORIZED = { ...CALL.headers, authorization: "Bearer sk-bench" };

/** The arguments that start a built file as a gateway with new, empty books. */
export function serving(upstream: string, over: object = {}, file = FILE): string[] {
  const place = folder();
  const config = join(place, "gateway.json");
  writeFileSync(config, JSON.stringify({ ...gatewayConfig(upstream, place), ...over }));
  return [file, "serve", "--config", config, "--port", "0"];
}

/** This gateway with everything switched on. `over`: further configuration. */
export const gateway = (over: object = {}): Kind => ({
  name: "chat-gateway",
  switchedOn: "a key, limits, all checks, prices, spend log, usage records, access log and metrics",
  diskBytes: sizeOf(FILE),
  isPeer: false,
  start: (upstream) =>
    started({
      name: "chat-gateway",
      call: { headers: AUTHORIZED },
      command: [process.execPath, ...serving(upstream, over)],
    }),
});
