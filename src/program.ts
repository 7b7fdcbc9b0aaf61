// The program: arguments to a command. `serve` is here, from the configuration to the end; the other commands are in cli/.
import cluster from "node:cluster";
import type { Writable } from "node:stream";
import { readArguments, UsageError, type Values } from "./extensions/commands/arguments.ts";
import { COMMANDS } from "./extensions/commands/commands.ts";
import type { Terminal } from "./extensions/commands/terminal.ts";
import {
  DEFAULT_FILE,
  loadConfig,
  loadConfigLater,
  reload,
  toldFaults,
} from "./core/config/load.ts";
import type { Config } from "./core/config/schema.ts";
import { makeDataDir } from "./core/config/surroundings.ts";
import { watchFile } from "./core/config/watch.ts";
import { createGateway, type Gateway } from "./core/app.ts";
import { sinkOf } from "./core/http/line-log.ts";
import { ValidationError } from "./core/schema/checker.ts";
import { createSupervisor, serveAsWorker } from "./extensions/cluster/workers.ts";

/** The signals that the process has received since its first moment. */
export interface Signals {
  /** Calls the listener at each SIGHUP, and at once if one has come already. */
  onHangup(listener: () => void): void;
  /** Calls the listener at the first SIGTERM or SIGINT, and at once if it has come already. The second ends the process. */
  onStop(listener: () => void): void;
  /** Whether a SIGTERM or SIGINT has come. */
  stopRequested(): boolean;
  /** Lets signals end the process, as they do where nobody listens; also those that have come already. */
  leaveToSystem(names: readonly ("SIGHUP" | "SIGTERM" | "SIGINT")[]): void;
}

/** What the process gives to the program. `stdout` and `stderr` take text as it is; `print` resolves when it is written. */
export interface Process extends Pick<Terminal, "env" | "print" | "actAs"> {
  readonly signals: Signals;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly exit: (code: number) => void;
}

const sinks = ({ stdout, stderr }: Process) => ({
  accessLog: sinkOf(stdout),
  diagnostics: sinkOf(stderr),
});

/** Runs a command; resolves with its exit code, undefined for 0. `serve` goes on after that until it is stopped. */
export async function run(argv: readonly string[], world: Process): Promise<number | void> {
  const say = (line: string): void => {
    world.stderr.write(`chat-gateway: ${line}\n`);
  };
  try {
    const args = readArguments(argv);
    if (args.command === "serve")
      return cluster.isWorker ? work(world) : await serve(args.values, world);
    const stop = new AbortController();
    world.signals.leaveToSystem(["SIGHUP"]);
    if (args.command === "usage sync") world.signals.onStop(() => stop.abort());
    else world.signals.leaveToSystem(["SIGTERM", "SIGINT"]);
    const { env, print, actAs } = world;
    return await COMMANDS[args.command](args, { env, print, say, stopped: stop.signal, actAs });
  } catch (error) {
    if (argv.includes("--json") && error instanceof ValidationError)
      world.stdout.write(`${JSON.stringify({ ok: false, faults: toldFaults(error) })}\n`);
    else for (const line of (error as Error).message.split("\n")) say(line); // a ValidationError's are its faults
    return error instanceof UsageError ? 2 : 1;
  }
}

async function serve({ config: file, host, port }: Values, world: Process): Promise<void> {
  const { signals } = world;
  if (signals.stopRequested()) return world.exit(0);
  const given = { host, port: port === undefined ? undefined : Number(port), env: world.env };
  const { config, source, digest } = loadConfig({ ...given, file, here: true });
  makeDataDir(config.data_dir);
  const gateway =
    config.server.workers > 1
      ? createSupervisor(config, { ...sinks(world), stopRequested: signals.stopRequested })
      : createGateway(config, sinks(world));
  let address: string;
  try {
    address = await gateway.listen();
  } catch (error) {
    if (signals.stopRequested()) return world.exit(0); // it has closed
    throw error;
  }
  signals.onStop(() => {
    end(world, gateway);
  });
  if (signals.stopRequested()) return;
  const again = reloader(gateway, { ...given, file: file ?? source });
  // The content that was loaded is the baseline: what has changed since then, even before anybody watched, is found at the first look.
  watchFile(file ?? DEFAULT_FILE, again, { seen: digest });
  signals.onHangup(() => {
    again();
  });
  const name =
    source ?? "the built-in demo configuration: models demo-chat and demo-reasoner, key sk-demo";
  const admin = gateway.adminAddress();
  world.stdout.write(
    `chat-gateway listens on ${address} (${name}${admin === undefined ? "" : `; console and admin on ${admin}`})\n`,
  );
}

/** Reads the configuration again and puts it in force, or tells what is wrong with it. One reading follows the other, so the last one counts. */
function reloader(
  gateway: Pick<Gateway, "reload" | "diagnose">,
  options: Parameters<typeof loadConfigLater>[0],
): () => Promise<void> {
  // Once a file was read, its absence is a fault: the demo configuration, whose key everybody knows, must not creep back in.
  let file = options.file;
  let last = Promise.resolve();

  async function load(): Promise<() => Config> {
    try {
      const { config, source } = await loadConfigLater({ ...options, file });
      file ??= source;
      return () => config;
    } catch (error) {
      return () => {
        throw error;
      };
    }
  }

  return () => {
    last = last.then(load).then((loaded) => reload(gateway, loaded));
    return last;
  };
}

/** One of several processes, which the first one has started. The first one hears SIGHUP too, and tells what is to be in force. */
function work(world: Process): void {
  const stop = serveAsWorker(
    (config, limits) => createGateway(config, { ...sinks(world), limits }),
    (gateway) => {
      end(world, gateway);
    },
  );
  world.signals.onHangup(() => undefined);
  world.signals.onStop(stop);
}

/** Ends the process when the gateway, if there is one, has drained; with exit code 1 if there is none. */
async function end(world: Process, gateway?: Pick<Gateway, "drain">): Promise<void> {
  await gateway?.drain();
  world.exit(gateway ? 0 : 1);
}
