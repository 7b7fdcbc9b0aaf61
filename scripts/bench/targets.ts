// What is measured: the floor, this gateway from its built file, and the other gateways that are
// installed (peers.sh). Each is a process of its own on its own core, with the same provider behind
// it.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import net from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { answered } from "./load.ts";

/** A running process that takes chat requests. */
export interface Target {
  readonly name: string;
  readonly url: string;
  readonly path: string;
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly pid: number;
  /** Milliseconds from its start to its first answer. */
  readonly startMs: number;
  /** Where its gateway.json and its data are, if it has any. */
  readonly folder?: string | undefined;
  readonly stop: () => Promise<void>;
}

/**
 * Something that can be started as a target; `diskBytes` is what has to be on the disk beside the
 * runtime that it is written for.
 */
export interface Kind {
  readonly name: string;
  readonly diskBytes: number | undefined;
  readonly start: (upstream: string) => Promise<Target>;
}

export const PEERS = process.env["BENCH_PEERS"] ?? join(homedir(), ".cache", "chat-gateway-bench");
export const pinned = spawnSync("taskset", ["-V"]).status === 0;
const own = ["--import", "tsx"];

/** Runs a command on one core, away from the load. */
function run(command: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const [file, ...args] = pinned ? ["taskset", "-c", "0", ...command] : command;
  return spawn(file!, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await closed;
}

/**
 * Hears each line that a process writes; absent: its errors are passed on, and the rest is nobody's
 * business.
 */
export interface Ears {
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
}

/** The address that a process says it listens on. */
function addressOf(child: ChildProcess, ears?: Ears): Promise<string> {
  if (ears) createInterface(child.stderr!).on("line", ears.err);
  else child.stderr!.pipe(process.stderr);
  return new Promise((resolve, reject) => {
    const lines = createInterface(child.stdout!).on("line", (line) => {
      const url = /listens on (http:[^\s;)]+)/.exec(line)?.[1];
      if (url) resolve(url);
      ears?.out(line);
      if (!url || ears) return;
      lines.close();
      child.stdout!.resume();
    });
    lines.once("close", () => reject(new Error("a process ended before it listened")));
  });
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The provider that all of them have behind them; on the core of the load. */
export async function startProvider(): Promise<Target> {
  const child = spawn(process.execPath, [...own, "scripts/bench/provider.ts"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const url = await addressOf(child);
  return {
    name: "no gateway",
    url,
    path: "/v1/chat/completions",
    model: "m",
    headers: { "content-type": "application/json" },
    pid: child.pid!,
    startMs: 0,
    stop: () => stop(child),
  };
}

interface Start {
  readonly name: string;
  /** How a chat request is sent to it. */
  readonly call: Pick<Target, "path" | "model" | "headers">;
  /** The port that its process is told; absent: the process says which one it has. */
  readonly port?: number;
  readonly command: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Removed when the target is stopped. */
  readonly folder?: string;
  readonly ears?: Ears | undefined;
}

/** Starts a target and waits until it answers. */
async function started({ name, call, port, command, env, folder, ears }: Start): Promise<Target> {
  const began = performance.now();
  const child = run(command, env);
  try {
    const url = port === undefined ? await addressOf(child, ears) : `http://127.0.0.1:${port}`;
    if (port !== undefined) for (const stream of [child.stdout!, child.stderr!]) stream.resume();
    await answered({ name, url, ...call });
    const end = async () => {
      await stop(child);
      if (folder) rmSync(folder, { recursive: true });
    };
    return {
      name,
      url,
      ...call,
      pid: child.pid!,
      startMs: performance.now() - began,
      folder,
      stop: end,
    };
  } catch (error) {
    await stop(child);
    throw error;
  }
}

const JSON_TYPE = { "content-type": "application/json" };
const scratch = () => mkdtempSync(join(tmpdir(), "bench-"));

const sizeOf = (path: string): number =>
  statSync(path).isDirectory()
    ? readdirSync(path).reduce(
        (sum, name) => sum + (existsSync(join(path, name)) ? sizeOf(join(path, name)) : 0),
        0,
      )
    : statSync(path).size;

export const relay: Kind = {
  name: "relay",
  diskBytes: undefined,
  start: (upstream) =>
    started({
      name: "relay",
      call: { path: "/v1/chat/completions", model: "m", headers: JSON_TYPE },
      command: [process.execPath, ...own, "scripts/bench/relay.ts", upstream],
    }),
};

/**
 * This gateway, with `over` in its configuration, and all that it does for every request switched
 * on; `flags` are for Node.
 */
export const gateway = (
  over: object = {},
  file = "dist/chat-gateway.mjs",
  ears?: Ears,
  flags: readonly string[] = [],
): Kind => ({
  name: "chat-gateway",
  diskBytes: sizeOf(file),
  start(upstream) {
    const folder = scratch();
    const config = join(folder, "gateway.json");
    const price = { input_cache_miss: 0.28, input_cache_hit: 0.028, output: 0.42 };
    writeFileSync(
      config,
      JSON.stringify({
        data_dir: join(folder, "data"),
        admin: { port: 0 },
        aliases: {},
        limits: { rpm: 1_000_000 },
        providers: { fast: { dialect: "openai", base_url: upstream } },
        models: { m: { provider: "fast", price } },
        keys: [{ account: "bench", key: "sk-bench" }],
        ...over,
      }),
    );
    const call = {
      path: "/v1/chat/completions",
      model: "m",
      headers: { ...JSON_TYPE, authorization: "Bearer sk-bench" },
    };
    const command = [process.execPath, ...flags, file, "serve", "--config", config, "--port", "0"];
    return started({ name: "chat-gateway", call, command, folder, ears });
  },
});

/** Another gateway that peers.sh can install. */
interface Peer {
  readonly name: string;
  /** What is there once it is installed. */
  readonly installed: string;
  /** Reads its version, so only once it is installed. */
  readonly kind: () => Kind;
}

const portkeyFolder = join(PEERS, "npm/node_modules/@portkey-ai/gateway");
const portkey: Peer = {
  name: "Portkey",
  installed: portkeyFolder,
  kind() {
    const described = readFileSync(join(portkeyFolder, "package.json"), "utf8");
    const { version } = JSON.parse(described) as { version: string };
    return {
      name: `Portkey ${version}`,
      diskBytes: sizeOf(join(PEERS, "npm/node_modules")),
      async start(upstream) {
        const port = await freePort();
        const headers = {
          ...JSON_TYPE,
          authorization: "Bearer sk-bench",
          "x-portkey-provider": "openai",
          "x-portkey-custom-host": `${upstream}/v1`,
        };
        const server = join(portkeyFolder, "build/start-server.js");
        return started({
          name: this.name,
          call: { path: "/v1/chat/completions", model: "m", headers },
          port,
          command: [process.execPath, server, `--port=${port}`, "--headless"],
        });
      },
    };
  },
};

const litellmFile = join(PEERS, "python/bin/litellm");
const litellm: Peer = {
  name: "LiteLLM",
  installed: litellmFile,
  kind: () => ({
    name: `LiteLLM ${readFileSync(join(PEERS, "python/litellm.version"), "utf8").trim()}`,
    diskBytes: sizeOf(join(PEERS, "python")),
    async start(upstream) {
      const port = await freePort();
      const folder = scratch();
      const config = join(folder, "config.yaml");
      const params = { model: "openai/m", api_base: `${upstream}/v1`, api_key: "sk-bench" };
      writeFileSync(
        config,
        JSON.stringify({
          model_list: [{ model_name: "m", litellm_params: params }],
          general_settings: { master_key: "sk-bench" },
        }),
      );
      const address = ["--host", "127.0.0.1", "--port", String(port)];
      return started({
        name: this.name,
        call: {
          path: "/v1/chat/completions",
          model: "m",
          headers: { ...JSON_TYPE, authorization: "Bearer sk-bench" },
        },
        port,
        command: [litellmFile, "--config", config, ...address, "--telemetry", "False"],
        env: { LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR" },
        folder,
      });
    },
  }),
};

const bifrostFile = join(PEERS, "go/bin/bifrost-http");
/** Not tried yet: the module proxy within reach did not have it. */
const bifrost: Peer = {
  name: "Bifrost",
  installed: bifrostFile,
  kind: () => ({
    name: `Bifrost ${readFileSync(join(PEERS, "go/bifrost.version"), "utf8").trim()}`,
    diskBytes: sizeOf(bifrostFile),
    async start(upstream) {
      const port = await freePort();
      const folder = scratch();
      const keys = [{ name: "bench", value: "sk-bench", models: ["*"], weight: 1 }];
      writeFileSync(
        join(folder, "config.json"),
        JSON.stringify({
          providers: { openai: { keys, network_config: { base_url: upstream } } },
        }),
      );
      const address = ["-host", "127.0.0.1", "-port", String(port)];
      return started({
        name: this.name,
        call: { path: "/v1/chat/completions", model: "openai/m", headers: JSON_TYPE },
        port,
        command: [bifrostFile, "-app-dir", folder, ...address, "-log-level", "error"],
        folder,
      });
    },
  }),
};

/** The other gateways that peers.sh has installed; those that it has not are named in `absent`. */
export function peers(): { readonly found: Kind[]; readonly absent: string[] } {
  const known = [portkey, litellm, bifrost];
  const isInstalled = ({ installed }: Peer) => existsSync(installed);
  return {
    found: known.filter(isInstalled).map(({ kind }) => kind()),
    absent: known.filter((peer) => !isInstalled(peer)).map(({ name }) => name),
  };
}
