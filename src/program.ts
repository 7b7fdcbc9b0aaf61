// Finds the command that a command line names, and runs it. `serve` is in this file; extensions
// have the other commands.
import cluster from "node:cluster";
import {
  DEFAULT_COMMAND,
  readCommandLine,
  VERSION_OPTION,
  type CommandTable,
} from "./command-line/arguments.ts";
import { commandHelp, groupHelp, helpText, searchText } from "./command-line/help.ts";
import { versionText } from "./command-line/version.ts";
import { createGateway, type RunningGateway } from "./core/app.ts";
import { issuesAsJson, loadConfig, secretFilesBeside, type LoadOptions } from "./config/load.ts";
import type { Config } from "./core/config.ts";
import {
  beforeServing,
  programSlots,
  UsageError,
  type Command,
  type CommandArguments,
} from "./command-line/command.ts";
import type { ConfigExtension, ExtensionEntry } from "./config/extension.ts";
import type { Manual } from "./command-line/manual.ts";
import { WORKER_MARK, type Watch } from "./command-line/processes.ts";
import { createLoader, type Loader } from "./config/loader.ts";
import { install } from "./core/extension/install.ts";
import type { Installed } from "./core/extension/installer.ts";
import type { LogTargets } from "./core/logs.ts";
import { ValidationError } from "./core/schema/checker.ts";
import { VERSION } from "./core/version.ts";
import {
  createReloader,
  reloadable,
  reloadStatus,
  startRecord,
  reportFailure,
  type ReloadRecord,
} from "./reload.ts";
import { createTerminal, type Process } from "./command-line/terminal.ts";

const logTargets = ({ stdout, stderr }: Process): LogTargets => ({
  accessLog: stdout,
  diagnostics: stderr,
});

/**
 * Runs a command. Resolves with its exit code, undefined for 0. `serve` continues after that until
 * it is stopped.
 */
export async function run(
  argv: readonly string[],
  currentProcess: Process,
  entries: readonly ExtensionEntry[],
): Promise<number | void> {
  const loader = createLoader(entries);
  try {
    return await runCommand(argv, currentProcess, loader);
  } catch (error) {
    if (argv.includes("--json") && error instanceof ValidationError)
      currentProcess.stdout.write(
        `${JSON.stringify({ ok: false, faults: issuesAsJson(error) })}\n`,
      );
    // The message of a ValidationError has a line for each issue.
    else
      for (const line of (error as Error).message.split("\n"))
        currentProcess.stderr.write(`chat-gateway: ${line}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function runCommand(
  argv: readonly string[],
  currentProcess: Process,
  loader: Loader,
): Promise<number | void> {
  const { signals } = currentProcess;
  const terminal = createTerminal(currentProcess, loader);
  const serve: Command = {
    ...serveCommand,
    run(args) {
      if (!cluster.isWorker) return serveGateway(args, currentProcess, loader);
      const firstVersion = currentProcess.env[WORKER_MARK];
      if (firstVersion !== VERSION) {
        cluster.worker!.disconnect(); // an open channel would keep the process
        throw new UsageError(
          firstVersion === undefined
            ? "this is a worker of another program's node:cluster, such as PM2's cluster mode: " +
                "start the gateway as a process of its own, with server.workers for several"
            : `version ${VERSION} has replaced version ${firstVersion} under a running gateway, ` +
                "which cannot start workers from it: stop the gateway and start it again",
        );
      }
      return work(currentProcess, loader);
    },
  };
  const table = commandTable(loader, serve);
  const { name, command, args } = await readCommandLine(argv, table);
  if (name === VERSION_OPTION) return await terminal.print(await versionText());
  if (!command) return await terminal.print(await helpAbout(args, table, loader));
  if (name !== DEFAULT_COMMAND) {
    signals.restoreDefault(["SIGHUP"]);
    if (!command.stopsBySignal) signals.restoreDefault(["SIGTERM", "SIGINT"]);
  }
  return await command.run(args, terminal);
}

const isPort = (text: string): boolean => /^\d{1,5}$/.test(text) && Number(text) <= 65_535;

/** The help text and the options of `serve`. */
export const serveCommand: Omit<Command, "run"> = {
  summary: "run the gateway (the default command)",
  example: "serve --config gateway.json --port 8080",
  options: {
    host: {
      value: "H",
      help: "the address to listen on",
      fallback: "server.host of the configuration",
    },
    port: {
      value: "N",
      help: "the port to listen on; 0 picks a free one",
      fallback: "server.port of the configuration",
      test: isPort,
      expected: "a number from 0 to 65535",
    },
  },
};

/**
 * The text that `help` prints. A topic is a command, a page of the manual or a group of commands;
 * without one, all commands and topics are listed. With --search: the sections found. Rejects with
 * a UsageError if there is no such topic or section.
 */
async function helpAbout(
  { operand: topic, values: { search } }: CommandArguments,
  table: CommandTable,
  loader: Loader,
): Promise<string> {
  if (search === undefined && table.names.includes(topic)) {
    const commands = await table.load([topic]);
    return commandHelp(topic, commands.get(topic)!);
  }
  const extensions = await loader.load(({ hasManual }) => hasManual === true);
  const manual = install(extensions).filled(programSlots.manual);
  if (search !== undefined) return searched(manual, `${search} ${topic}`.trim());
  const topics = manual?.topics() ?? [];
  if (topic === "") return helpText(await table.load(table.names), topics);
  const page = manual?.page(topic);
  if (page !== undefined) return page;
  const group = table.names.filter((name) => name.startsWith(`${topic} `));
  if (group.length > 0) return groupHelp(await table.load(group));
  const names = topics.map(({ name }) => name).join(", ");
  throw new UsageError(`the manual has no topic ${JSON.stringify(topic)}; topics: ${names}`);
}

/** The results of a search of the manual. Throws a UsageError if there are none. */
function searched(manual: Manual | undefined, words: string): string {
  const results = manual?.search(words) ?? [];
  if (results.length > 0) return searchText(results);
  throw new UsageError(`no section of the manual has a word of ${JSON.stringify(words)}`);
}

/** `serve`, and the commands of extensions. */
function commandTable(loader: Loader, serve: Command): CommandTable {
  const names = [DEFAULT_COMMAND, ...loader.entries.flatMap(({ commands = [] }) => commands)];
  return {
    names,
    async load(wanted) {
      const extensions = await loader.load(({ commands = [] }) =>
        commands.some((name) => wanted.includes(name)),
      );
      const added = install(extensions).family(programSlots.command);
      const all = new Map([[DEFAULT_COMMAND, serve], ...added]);
      return new Map([...all].filter(([name]) => wanted.includes(name)));
    },
  };
}

/** Which settings to change when the gateway cannot listen, by the system's error message. */
const OTHER_PLACES: readonly (readonly [words: RegExp, place: string])[] = [
  [/EADDRINUSE|listen EACCES/, "port: --port, server.port, admin.port or admin.metrics.port"],
  // EAFNOSUPPORT: IPv6 is off. EINVAL: an address of one link, without its interface.
  [
    /EADDRNOTAVAIL|EAFNOSUPPORT|listen EINVAL|getaddrinfo/,
    "host: --host, server.host, admin.host or admin.metrics.host",
  ],
];

async function serveGateway(
  { values }: CommandArguments,
  currentProcess: Process,
  loader: Loader,
): Promise<void> {
  const { signals } = currentProcess;
  const { stopped } = signals;
  if (stopped.aborted) return currentProcess.exit(0);
  const { config: file, host, port } = values;
  const options: LoadOptions = {
    file,
    host,
    port: port === undefined ? undefined : Number(port),
    env: currentProcess.env,
    loader,
    serves: true,
    forThisHost: true,
    secretFiles: secretFilesBeside(file),
  };
  const { config, extensions, installed, source } = await loadConfig(options);
  for (const { call } of installed.listeners(beforeServing)) call(config);
  const record = startRecord(source);
  const gateway = createServing(
    config,
    [...extensions, reloadStatus(record)],
    record,
    currentProcess,
  );
  let address: string;
  try {
    address = await gateway.listen();
  } catch (error) {
    if (stopped.aborted) return currentProcess.exit(0); // a signal closed the gateway
    const { message } = error as Error;
    // Match the message: an error from a worker process arrives without its code.
    const [, other] = OTHER_PLACES.find(([words]) => words.test(message)) ?? [];
    throw other === undefined ? error : new Error(`${message}; choose another ${other}`);
  }
  if (stopped.aborted) return await end(currentProcess, gateway);
  stopped.addEventListener("abort", () => {
    end(currentProcess, gateway);
  });
  const loading = { ...options, forThisHost: false, file: file ?? source };
  const again = createReloader({ gateway, record }, loading, watchOf(installed));
  signals.onHangup(() => {
    again();
  });
  const name =
    source ?? "the built-in demo configuration: models demo-chat and demo-reasoner, key sk-demo";
  const announced = [name, ...gateway.announcements()].join("; ");
  currentProcess.stdout.write(`chat-gateway listens on ${address} (${announced})\n`);
}

/** Without an extension that watches files, only SIGHUP reloads. */
const watchOf = (installed: Installed): Watch =>
  installed.filled(programSlots.watchConfig) ?? (() => ({ close: () => undefined }));

/** The gateway of this process, or the supervisor of several processes if an extension has one. */
function createServing(
  config: Config,
  extensions: readonly ConfigExtension[],
  record: ReloadRecord,
  currentProcess: Process,
): RunningGateway {
  const options = { ...logTargets(currentProcess), extensions };
  const { stopped } = currentProcess.signals;
  const supervise = install(extensions).filled(programSlots.supervise);
  const supervisor = supervise?.(config, { ...options, stopped });
  return supervisor ?? reloadable(createGateway(config, options), config, extensions, record);
}

/**
 * Runs a worker process. The primary handles SIGHUP, and sends each new configuration to its
 * workers.
 */
async function work(currentProcess: Process, loader: Loader): Promise<void> {
  const load = (names: readonly string[]) => loader.load(({ name }) => names.includes(name));
  const record = startRecord(undefined);
  const { stopped } = currentProcess.signals;
  const first = await loader.load(({ startsProcesses }) => startsProcesses === true);
  const stop = install(first).filled(programSlots.work)!({
    async create(config, names, sharedLimiter) {
      const extensions = [...(await load(names)), reloadStatus(record)];
      const options = { ...logTargets(currentProcess), extensions, sharedLimiter };
      return reloadable(createGateway(config, options), config, extensions, record);
    },
    reload: (gateway, config, names) =>
      reportFailure({ gateway, record }, async () => gateway.reload(config, await load(names))),
    end(gateway) {
      end(currentProcess, gateway);
    },
  });
  if (stopped.aborted) stop();
  else stopped.addEventListener("abort", stop);
}

/** Drains the gateway and exits with code 0. Without a gateway: exits with code 1. */
async function end(
  currentProcess: Process,
  gateway?: Pick<RunningGateway, "drain">,
): Promise<void> {
  await gateway?.drain();
  currentProcess.exit(gateway ? 0 : 1);
}
