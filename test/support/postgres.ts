// Starts a PostgreSQL server for tests, in a temporary folder, on its own loopback port, with a
// password. It can be killed, started again on the same data, and suspended.

import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { endServer, installedClient, pathFolders, skipWithout } from "./installed.ts";
import { freePort } from "./port.ts";

export { CLIENTS_FOLDER as PG_FOLDER } from "./installed.ts";

/** The part of the package `pg` that is used. */
interface Client {
  connect(): Promise<void>;
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: any[] }>;
  end(): Promise<void>;
  on(event: "error", listener: () => void): void;
}

const loadClient = (): (new (options: object) => Client) | undefined =>
  installedClient("pg")?.Client;

/** The folder with initdb and postgres of the newest installed version. Undefined: none. */
function binaries(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian)
    ? readdirSync(debian)
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => join(debian, version, "bin"))
    : [];
  return [...versions, ...pathFolders].find(
    (folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres")),
  );
}

/** Why tests of PostgreSQL are skipped. False: they are not. Throws if REQUIRE_POSTGRES is 1. */
export const noPostgres = (): false | string =>
  skipWithout(
    [
      ...(binaries() ? [] : ["no PostgreSQL is installed"]),
      ...(loadClient() ? [] : ["run npm ci in test/clients for the package pg"]),
    ],
    "REQUIRE_POSTGRES",
  );

const PASSWORD = "CANARY-of-the-database";
const START_MS = 20_000;

export type Postgres = Awaited<ReturnType<typeof startPostgres>>;

export async function startPostgres() {
  const [folder, Client] = [binaries(), loadClient()];
  if (folder === undefined || !Client) throw new Error("see noPostgres");
  const dir = mkdtempSync(join(tmpdir(), "pg-"));
  const data = join(dir, "data");
  const passwordFile = join(dir, "password");
  writeFileSync(passwordFile, PASSWORD);
  // PostgreSQL refuses to run as root. Its package has created a user for it.
  const user = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  if (user.uid !== undefined)
    for (const path of [dir, passwordFile]) chownSync(path, user.uid, user.gid!);
  const words = "-U gateway -A scram-sha-256 -E UTF8 --no-locale -N".split(" ");
  const made = spawnSync(join(folder, "initdb"), [...words, "-D", data, "--pwfile", passwordFile], {
    ...user,
    cwd: dir,
    encoding: "utf8",
  });
  if (made.status !== 0) throw new Error(`initdb: ${made.error?.message ?? made.stderr}`);
  const port = await freePort();
  const url = (name: string) => `postgres://gateway:${PASSWORD}@127.0.0.1:${port}/${name}`;
  let server: ChildProcess | undefined;
  let standing: number[] = [];

  /** The rows that a query finds. */
  async function query(address: string, text: string, values: readonly unknown[] = []) {
    const client = new Client!({ connectionString: address, connectionTimeoutMillis: 5_000 });
    client.on("error", () => undefined); // the query rejects with it as well
    try {
      await client.connect();
      return (await client.query(text, values)).rows;
    } finally {
      client.end().catch(() => undefined);
    }
  }

  /** Starts the server, also after a kill. Resolves when it answers. */
  async function start(): Promise<void> {
    const settings = {
      listen_addresses: "127.0.0.1",
      port,
      unix_socket_directories: "",
      fsync: "off",
      shared_buffers: "16MB",
      max_connections: 50,
      TimeZone: "Asia/Kolkata",
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const end = performance.now() + START_MS;
    for (let said = ""; ; await pause(20)) {
      if (server === undefined) {
        // Processes of the killed server may still exist for a moment. Then the new one refuses to
        // start, so try again.
        const child = spawn(join(folder!, "postgres"), ["-D", data, ...options], {
          ...user,
          cwd: dir,
          stdio: ["ignore", "ignore", "pipe"],
        });
        server = child;
        child
          .stderr!.setEncoding("utf8")
          .on("data", (text: string) => (said = (said + text).slice(-2_000)));
        child.once("exit", () => (server = server === child ? undefined : server));
      }
      const answer = await query(url("postgres"), "SELECT 1").catch(() => undefined);
      if (answer) return;
      if (performance.now() > end) throw new Error(`waited ${START_MS} ms for PostgreSQL: ${said}`);
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const child = server;
    server = undefined;
    await endServer(child, signal);
  }

  const resume = () =>
    standing.splice(0).forEach((pid) => {
      signalIfThere(pid, "SIGCONT");
    });

  await start();
  return {
    /** The address of a database, which is created if it is missing. */
    async database(name: string) {
      const there = await query(url("postgres"), "SELECT 1 FROM pg_database WHERE datname = $1", [
        name,
      ]);
      if (there.length === 0) await query(url("postgres"), `CREATE DATABASE ${name}`);
      return url(name);
    },
    /** The same address with another password. */
    wrongPassword: (address: string) => address.replace(PASSWORD, "CANARY-but-wrong"),
    query,
    /** Ends the server with SIGKILL. */
    kill: () => end("SIGKILL"),
    start,
    /** Suspends all processes of the server, with open sockets, until resume(). */
    async pause() {
      const { pid } = server!;
      signalIfThere(pid!, "SIGSTOP"); // first, so that it starts no more processes
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
      for (const child of children) signalIfThere(Number(child), "SIGSTOP");
      standing = [pid!, ...children.map(Number)];
    },
    resume,
    /** Ends the server and removes its folder. */
    async close() {
      resume();
      await end("SIGQUIT");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

const idOf = (flag: "-u" | "-g"): number =>
  Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
