// A Redis server of the tests' own, in a temporary folder, on a port of its own on loopback, that
// keeps nothing; it can be killed, started again on the same port, and stopped in its tracks.
// Valkey does where Redis is not installed.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { freePort } from "./port.ts";
import { within } from "./wait.ts";

/** Where the package `redis` is installed: what uses it is run there. */
export const REDIS_FOLDER = resolve("test/clients");

/** What is used of `redis`. */
interface Client {
  on(event: "error", listener: () => void): void;
  connect(): Promise<unknown>;
  sendCommand(words: readonly string[]): Promise<any>;
  destroy(): void;
}

function loadClient(): ((options: object) => Client) | undefined {
  try {
    return createRequire(join(REDIS_FOLDER, "package.json"))("redis").createClient;
  } catch {
    return undefined;
  }
}

function binary(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return ["redis-server", "valkey-server"]
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((path) => existsSync(path));
}

/**
 * False, or why Redis cannot be tried here; where it is demanded (in CI) that is an error instead.
 */
export function noRedis(): false | string {
  let missing = "";
  if (binary() === undefined) missing = "no Redis is installed";
  else if (!loadClient()) missing = "run npm ci in test/clients for the package redis";
  if (missing === "") return false;
  if (process.env["REQUIRE_REDIS"] === "1") throw new Error(missing);
  return missing;
}

export interface Redis {
  /** Its address, with the password if it has one. */
  readonly url: string;
  /** A command's answer, asked on a connection of its own. */
  command(...words: readonly (string | number)[]): Promise<any>;
  /** Its clock, in milliseconds. */
  now(): Promise<number>;
  /** kill -9, and gone with all that it knew. */
  kill(): Promise<void>;
  /** Starts again what was killed, on the same port; resolves when it takes connections. */
  start(): Promise<void>;
  /** It stands still, its sockets open; `resume` lets it go on. */
  pause(): void;
  resume(): void;
  /** Ends it and removes its folder. */
  close(): Promise<void>;
}

/** Without a password unless one is given. `without`: a command that it does not know. */
export async function startRedis({
  password,
  without,
}: {
  readonly password?: string;
  readonly without?: string;
} = {}): Promise<Redis> {
  const [file, createClient] = [binary(), loadClient()];
  if (file === undefined || !createClient) throw new Error("see noRedis");
  const dir = mkdtempSync(join(tmpdir(), "redis-"));
  const port = await freePort();
  const url = `redis://${password === undefined ? "" : `:${password}@`}127.0.0.1:${port}`;
  const settings = {
    bind: "127.0.0.1",
    port,
    save: "",
    appendonly: "no",
    dir,
    ...(password !== undefined && { requirepass: password }),
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  if (without !== undefined) args.push("--rename-command", without, "");
  let server: ChildProcess | undefined;

  async function start(): Promise<void> {
    const child = spawn(file!, args, { cwd: dir, stdio: ["ignore", "pipe", "ignore"] });
    server = child;
    let said = "";
    const ready = new Promise<void>((resolve, reject) => {
      child.stdout!.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        if (/Ready to accept connections/i.test(said)) resolve();
      });
      child.once("error", reject);
      child.once("exit", (code, signal) =>
        reject(new Error(`Redis ended with ${code ?? signal}: ${said}`)),
      );
    });
    await within(ready, "Redis to take connections");
  }

  async function kill(): Promise<void> {
    const child = server;
    server = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async function command(...words: readonly (string | number)[]): Promise<any> {
    const client = createClient!({ url, socket: { reconnectStrategy: false } });
    client.on("error", () => undefined); // it is told by the command as well
    try {
      await client.connect();
      return await client.sendCommand(words.map(String));
    } finally {
      client.destroy();
    }
  }

  await start();
  return {
    url,
    command,
    kill,
    start,
    async now() {
      const [seconds, microseconds] = await command("TIME");
      return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
    },
    pause: () => {
      server?.kill("SIGSTOP");
    },
    resume: () => {
      server?.kill("SIGCONT");
    },
    async close() {
      await kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
