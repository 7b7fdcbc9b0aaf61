// A Redis server of the tests' own, in a temporary folder, on a port of its own on loopback, that
// keeps nothing; it can be killed, started again on the same port, and stopped in its tracks.
// Valkey does where Redis is not installed.

import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endServer, firstOf, installedClient, pathFolders, skipWithout } from "./installed.ts";
import { freePort } from "./port.ts";
import { within } from "./wait.ts";

export { CLIENTS_FOLDER as REDIS_FOLDER } from "./installed.ts";

/** What is used of `redis`. */
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

/** Without a password unless one is given. `without`: a command that it does not know. */
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

  /** Resolves when it takes connections: also after it was killed, on the same port. */
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

  /** kill -9, and gone with all that it knew. */
  const kill = (): Promise<void> => endServer(server, "SIGKILL");

  /** A command's answer, asked on a connection of its own. */
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
    /** Its address, with the password if it has one. */
    url,
    command,
    kill,
    start,
    /** Its clock, in milliseconds. */
    async now() {
      const [seconds, microseconds] = await command("TIME");
      return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
    },
    /** It stands still, its sockets open; `resume` lets it go on. */
    pause: () => {
      server?.kill("SIGSTOP");
    },
    resume: () => {
      server?.kill("SIGCONT");
    },
    /** Ends it and removes its folder. */
    async close() {
      await kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
