// Starts a Redis server for tests, in a temporary folder, on its own loopback port. It keeps
// nothing on the disk. It can be killed, started again on the same port, and suspended. If Redis is
// not installed, Valkey is used.

import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endServer, firstOf, installedClient, pathFolders, skipWithout } from "./installed.ts";
import { freePort } from "./port.ts";
import { within } from "./wait.ts";

export { CLIENTS_FOLDER as REDIS_FOLDER } from "./installed.ts";

/** The part of the package `redis` that is used. */
interface Client {
  on(event: "error", listener: () => void): void;
  connect(): Promise<unknown>;
  sendCommand(words: readonly string[]): Promise<any>;
  destroy(): void;
}

const createClientOf = (): ((options: object) => Client) | undefined =>
  installedClient("redis")?.createClient;

const binary = (): string | undefined =>
  firstOf(
    ["redis-server", "valkey-server"].flatMap((name) =>
      pathFolders.map((folder) => join(folder, name)),
    ),
  );

/** Why tests of Redis are skipped. False: they are not. Throws if REQUIRE_REDIS is 1. */
export const noRedis = (): false | string =>
  skipWithout(
    [
      ...(binary() ? [] : ["no Redis is installed"]),
      ...(createClientOf() ? [] : ["run npm ci in test/clients for the package redis"]),
    ],
    "REQUIRE_REDIS",
  );

export type Redis = Awaited<ReturnType<typeof startRedis>>;

/** `password` absent: none is needed. `without`: a command that the server does not know. */
export async function startRedis({
  password,
  without,
}: {
  readonly password?: string;
  readonly without?: string;
} = {}) {
  const [file, createClient] = [binary(), createClientOf()];
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

  /** Starts the server, also after a kill. Resolves when it accepts connections. */
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

  /** Ends the server with SIGKILL. Its data is lost. */
  const kill = (): Promise<void> => endServer(server, "SIGKILL");

  /** Runs a command on a new connection. Resolves with its answer. */
  async function command(...words: readonly (string | number)[]): Promise<any> {
    const client = createClient!({ url, socket: { reconnectStrategy: false } });
    client.on("error", () => undefined); // the command rejects with it as well
    try {
      await client.connect();
      return await client.sendCommand(words.map(String));
    } finally {
      client.destroy();
    }
  }

  await start();
  return {
    /** The server's address, with the password if there is one. */
    url,
    command,
    kill,
    start,
    /** The server's clock, in milliseconds since 1970. */
    async now() {
      const [seconds, microseconds] = await command("TIME");
      return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
    },
    /** Suspends the server, with open sockets, until resume(). */
    pause: () => {
      server?.kill("SIGSTOP");
    },
    resume: () => {
      server?.kill("SIGCONT");
    },
    /** Ends the server and removes its folder. */
    async close() {
      await kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
