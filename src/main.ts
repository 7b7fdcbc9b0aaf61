#!/usr/bin/env node
// The process: arguments to a command. The only file that touches it (environment, standard streams, signals, exit codes).
import cluster from "node:cluster";
import { readArguments, UsageError, type Values } from "./cli/arguments.ts";
import { COMMANDS } from "./cli/commands.ts";
import { loadConfig } from "./config/load.ts";
import { toldFaults, watchConfig } from "./config/reload.ts";
import type { Config } from "./config/schema.ts";
import { createGateway } from "./gateway.ts";
import { CheckError } from "./protocol/checker.ts";
import { createSupervisor, limitsOfAll, obey } from "./workers.ts";

const say = (line: string): void => void process.stderr.write(`chat-gateway: ${line}\n`);

async function serve({ config: file, host, port }: Values): Promise<void> {
  // Once a file was read, its absence is a fault: the demo configuration, whose key everybody knows, must not creep back in.
  let source = file;
  const load = (): Config => {
    const loaded = loadConfig({ file: source, host, port: port === undefined ? undefined : Number(port), env: process.env });
    source ??= loaded.source;
    return loaded.config;
  };
  const config = load();
  const sinks = { accessLog: (lines: string) => process.stdout.write(lines), diagnostics: (lines: string) => process.stderr.write(lines) };
  const worker = cluster.isWorker ? createGateway(config, { ...sinks, limits: limitsOfAll() }) : undefined;
  const gateway = worker ?? (config.server.workers > 1 ? createSupervisor(config, sinks) : createGateway(config, sinks));
  const address = await gateway.listen();
  const reloader = watchConfig(source ?? "gateway.json", load, gateway.reload, gateway.diagnose);
  const stop = () => {
    reloader.close();
    void gateway.drain().then(() => process.exit(0));
  };
  process.on("SIGHUP", reloader.reload);
  const stopOnce = onStop(stop);
  if (worker) {
    reloader.close(); // the first process looks at the file
    return obey(address, worker, reloader.reload, stopOnce);
  }
  const name = source ?? "the built-in demo configuration: models demo-chat and demo-reasoner, key sk-demo";
  const admin = gateway.adminAddress();
  process.stdout.write(`chat-gateway listens on ${address} (${name}${admin === undefined ? "" : `; admin on ${admin}`})\n`);
}

/** At the first SIGTERM or SIGINT, unless what is returned was called before; the second signal ends the process at once. */
function onStop(stop: () => void): () => void {
  let received = 0;
  let stopped = false;
  const once = () => {
    if (!stopped) stop();
    stopped = true;
  };
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => (received++ === 0 ? once() : process.exit(1)));
  return once;
}

function actAs({ uid, gid }: { readonly uid: number; readonly gid: number }): void {
  if (uid === 0 || process.getuid?.() !== 0) return;
  process.setgroups?.([gid]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}

async function main(argv: readonly string[]): Promise<number | void> {
  // A reader of our output that goes away must not take the gateway with it.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const print = (text: string) => new Promise<void>((resolve, reject) => process.stdout.write(text, (error) => (error ? reject(error) : resolve())));
  let json = false;
  try {
    const args = readArguments(argv);
    json = args.values.json ?? false;
    if (args.command === "serve") return await serve(args.values);
    const stop = new AbortController();
    if (args.command === "usage sync") onStop(() => stop.abort());
    return await COMMANDS[args.command](args, { env: process.env, print, say, stopped: stop.signal, actAs });
  } catch (error) {
    if (json && error instanceof CheckError) process.stdout.write(`${JSON.stringify({ ok: false, faults: toldFaults(error) })}\n`);
    else for (const line of (error as Error).message.split("\n")) say(line); // a CheckError's are its faults
    return error instanceof UsageError ? 2 : 1;
  }
}

process.exitCode = (await main(process.argv.slice(2))) || 0;
