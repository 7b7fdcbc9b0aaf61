#!/usr/bin/env node
// The process: arguments to a command. The only file that touches it (environment, standard streams, signals, exit codes).
import cluster from "node:cluster";
import { readArguments, UsageError, type Values } from "./cli/arguments.ts";
import { COMMANDS } from "./cli/commands.ts";
import { loadConfig, reload, toldFaults, watchFile } from "./config/load.ts";
import type { Config } from "./config/schema.ts";
import { createGateway, type Gateway } from "./gateway.ts";
import { sinkOf } from "./http/log.ts";
import { CheckError } from "./protocol/checker.ts";
import { createSupervisor, serveAsWorker } from "./workers.ts";

const say = (line: string): void => void process.stderr.write(`chat-gateway: ${line}\n`);

async function serve({ config: file, host, port }: Values): Promise<void> {
  // Once a file was read, its absence is a fault: the demo configuration, whose key everybody knows, must not creep back in.
  let source = file;
  const load = (): Config => {
    const loaded = loadConfig({
      file: source,
      host,
      port: port === undefined ? undefined : Number(port),
      env: process.env,
    });
    source ??= loaded.source;
    return loaded.config;
  };
  const config = load();
  const gateway =
    config.server.workers > 1 ? createSupervisor(config, SINKS) : createGateway(config, SINKS);
  const address = await gateway.listen();
  const again = () => reload(gateway, load);
  watchFile(source ?? "gateway.json", again);
  process.on("SIGHUP", again);
  onStop(() => end(gateway));
  const name =
    source ?? "the built-in demo configuration: models demo-chat and demo-reasoner, key sk-demo";
  const admin = gateway.adminAddress();
  process.stdout.write(
    `chat-gateway listens on ${address} (${name}${admin === undefined ? "" : `; console and admin on ${admin}`})\n`,
  );
}

const SINKS = {
  accessLog: sinkOf(process.stdout),
  diagnostics: sinkOf(process.stderr),
};
const end = (gateway?: Pick<Gateway, "drain">): void =>
  void (gateway ? gateway.drain().then(() => process.exit(0)) : process.exit(1));

/** One of several processes, which the first one has started. */
function work(): void {
  process.on("SIGHUP", () => undefined); // the first process hears it too
  onStop(serveAsWorker((config, limits) => createGateway(config, { ...SINKS, limits }), end));
}

/** At the first SIGTERM or SIGINT; the second ends the process at once. */
function onStop(stop: () => void): void {
  let received = 0;
  const receive = () => (received++ === 0 ? stop() : process.exit(1));
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, receive);
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
  const print = (text: string) =>
    new Promise<void>((resolve, reject) =>
      process.stdout.write(text, (error) => (error ? reject(error) : resolve())),
    );
  try {
    const args = readArguments(argv);
    if (args.command === "serve") return cluster.isWorker ? work() : await serve(args.values);
    const stop = new AbortController();
    if (args.command === "usage sync") onStop(() => stop.abort());
    return await COMMANDS[args.command](args, {
      env: process.env,
      print,
      say,
      stopped: stop.signal,
      actAs,
    });
  } catch (error) {
    if (argv.includes("--json") && error instanceof CheckError)
      process.stdout.write(`${JSON.stringify({ ok: false, faults: toldFaults(error) })}\n`);
    else for (const line of (error as Error).message.split("\n")) say(line); // a CheckError's are its faults
    return error instanceof UsageError ? 2 : 1;
  }
}

process.exitCode = (await main(process.argv.slice(2))) || 0;
