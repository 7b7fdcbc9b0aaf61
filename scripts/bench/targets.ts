// The targets of the benchmark: processes that take chat requests, each pinned to its own core. How
// they are started, detected as ready, checked, and stopped; the relay and this gateway; and the
// provider behind them all.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { lstatSync, readdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { folder } from "../../test/support/folder.ts";
import { fromSources, launch, type Running } from "../../test/support/program.ts";
import { createClient, exchangeOf, type Request } from "../conformance/client.ts";
import { first } from "../conformance/shapes.ts";

/** A running process that takes chat requests. */
export interface Target {
  readonly name: string;
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
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
  /** How it is started behind a provider. */
  readonly startOf: (upstream: string) => Start | Promise<Start>;
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

/** A request body. `words` tell the provider how to reply; `filler` bytes of text follow them. */
export function bodyOf(words: string, model: string, filler = 200): string {
  const messages = [
    { role: "system", content: words },
    {
      role: "user",
      content: "How does it begin? ".repeat(Math.ceil(filler / 19)).slice(0, filler),
    },
  ];
  return JSON.stringify({ model, stream: words.startsWith("events"), temperature: 0.5, messages });
}

interface Start {
  /** Where its chat requests differ from CALL. */
  readonly call?: Partial<typeof CALL>;
  /** The port passed to the process. Absent: the process prints its port. */
  readonly port?: number;
  readonly command: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Sends a chat request. Resolves when the response head has been received. */
export async function post(
  { url, path, headers }: Pick<Target, "url" | "path" | "headers">,
  body: string,
  agent: http.Agent | false = false,
): Promise<http.IncomingMessage> {
  const req = http.request(url + path, {
    method: "POST",
    agent,
    headers: { ...headers, "content-length": Buffer.byteLength(body) },
  });
  req.end(body);
  const [res] = (await once(req, "response")) as [http.IncomingMessage];
  return res;
}

const START_MS = 120_000;

/** Resolves when the target answers a chat request with 200. */
async function answered(target: Omit<Target, "pid" | "startMs" | "stop">, isAlive: () => boolean) {
  let answer = "nothing";
  for (const late = performance.now() + START_MS; performance.now() < late; await pause(2)) {
    if (!isAlive()) throw new Error(`${target.name} ended before it answered`);
    try {
      const res = await post(target, bodyOf("bytes=10", target.model));
      res.resume();
      if (res.statusCode === 200) return;
      answer = `status ${res.statusCode}`;
    } catch {
      // nothing listens yet
    }
  }
  throw new Error(`${target.name} did not answer within ${START_MS} ms: ${answer} came`);
}

const EVENTS = 20;
const EVERY_MS = 10;
const DEADLINE_MS = 30_000;

/**
 * Throws unless the target relays a whole and a streamed reply exactly as the provider sends them.
 * A gateway that returns less, or buffers a stream until it is complete, does less work than the
 * others, so its figures would not be comparable.
 */
export async function checkReplies({ url, path, model, headers }: Target): Promise<void> {
  const client = createClient(url, DEADLINE_MS);
  const requestFor = (words: string): Request => ({
    method: "POST",
    path,
    headers,
    body: bodyOf(words, model),
  });
  const request = requestFor("bytes=300");
  const whole = exchangeOf("", request, await client.send(request));
  const sent = "All happy families are alike. ".repeat(10);
  const got = [whole.content, whole.finish, first(whole.usage, "total_tokens")];
  assert.deepEqual(got, [sent, "stop", 90], `a whole reply: ${whole.shown.slice(0, 300)}`);

  const streamed = requestFor(`events=${EVENTS} every=${EVERY_MS}`);
  const opened = await client.open(streamed);
  await opened.until("happy");
  const began = performance.now();
  const stream = exchangeOf("", streamed, await opened.rest());
  const tookMs = performance.now() - began;
  client.close();
  assert.equal(stream.events.at(-1)?.data, "[DONE]", "last event of a stream");
  assert.deepEqual([stream.content, stream.finish], [" happy".repeat(EVENTS), "stop"], "a stream");
  const pieces = stream.parts.length;
  assert.ok(pieces >= EVENTS, `${pieces} events of a stream, expected ${EVENTS}`);
  const sentMs = EVENTS * EVERY_MS;
  const wasHeld = tookMs < sentMs / 2;
  assert.ok(
    !wasHeld,
    `a stream of ${sentMs} ms came within ${tookMs.toFixed(0)} ms: it was held back`,
  );
}

/** Kills a process and waits until it has ended. */
export async function stop({ child, ended }: Running): Promise<void> {
  child.kill("SIGKILL");
  await ended;
}

/** Starts a target on one core, away from the load, and waits until it answers. */
export async function started({ name, startOf }: Kind, upstream: string): Promise<Target> {
  const { port, env, ...start } = await startOf(upstream);
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
  startOf: (upstream) => ({
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
  startOf: (upstream) => ({
    call: { headers: AUTHORIZED },
    command: [process.execPath, ...serving(upstream, over)],
  }),
});
