#!/usr/bin/env node
// The command line: arguments to a command. The only file that touches the process (arguments, environment, standard
// streams, signals, exit codes).

import { parseArgs } from "node:util";
import { loadConfig } from "./config/load.ts";
import { watchConfig } from "./config/reload.ts";
import type { Config } from "./config/schema.ts";
import { createGateway } from "./gateway.ts";
import { CheckError, faultText, pathText } from "./protocol/checker.ts";
import { explainAlias } from "./routing/explain.ts";
import { rank } from "./routing/policy.ts";

const USAGE = `chat-gateway: a chat-completions gateway

  serve [--config FILE] [--host H] [--port N]   run the gateway (the default command)
  check [--config FILE] [--json]                validate a configuration
  explain ALIAS [--config FILE] [--json]        the candidates of an alias in order, and why

Without --config: ./gateway.json if it is there, else the built-in demo configuration.`;

/** A mistake in the arguments: one line on stderr, exit 2. */
class UsageError extends Error {}

interface Arguments {
  readonly command: string;
  /** Of explain: the alias. */
  readonly operand: string | undefined;
  readonly config: string | undefined;
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly json: boolean;
}

const OPTIONS = {
  config: { type: "string" },
  host: { type: "string" },
  port: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  serve: ["config", "host", "port"],
  check: ["config", "json"],
  explain: ["config", "json"],
};

function readArguments(argv: readonly string[]): Arguments | "help" {
  let parsed;
  try {
    parsed = parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true, tokens: true });
  } catch (error) {
    throw new UsageError((error as Error).message.split(/\.[ \n]|\n/)[0]!);
  }
  const { values, positionals, tokens } = parsed;
  if (values.help || positionals[0] === "help") return "help";
  const [command = "serve", ...rest] = positionals;
  const allowed = Object.hasOwn(ALLOWED, command) ? ALLOWED[command] : undefined;
  if (!allowed) throw new UsageError(`there is no command '${command}'; commands: ${Object.keys(ALLOWED).join(", ")}`);
  const operands = command === "explain" ? 1 : 0;
  if (rest.length > operands) throw new UsageError(`unexpected argument '${rest[operands]}'`);
  if (rest.length < operands) throw new UsageError("explain needs the name of an alias");
  for (const token of tokens) {
    if (token.kind === "option" && !allowed.includes(token.name)) throw new UsageError(`${command} has no option --${token.name}`);
  }
  if (values.port !== undefined && !(/^\d{1,5}$/.test(values.port) && Number(values.port) <= 65_535)) throw new UsageError("--port must be a number from 0 to 65535");
  return { command, operand: rest[0], config: values.config, host: values.host, port: values.port === undefined ? undefined : Number(values.port), json: values.json };
}

async function serve(args: Arguments): Promise<undefined> {
  // Once a file was read, its absence is a fault: the demo configuration, whose key everybody knows, must not creep back in.
  let source = args.config;
  const load = (): Config => {
    const loaded = loadConfig({ file: source, host: args.host, port: args.port, env: process.env });
    source ??= loaded.source;
    return loaded.config;
  };
  let config = load();
  const gateway = createGateway(config, {
    accessLog: (lines) => process.stdout.write(lines),
    diagnostics: (lines) => process.stderr.write(lines),
  });
  const address = await gateway.listen();
  const name = source ?? "the built-in demo configuration: models demo-chat and demo-reasoner, key sk-demo";
  const admin = gateway.adminAddress();
  process.stdout.write(`chat-gateway listens on ${address} (${name}${admin === undefined ? "" : `; admin on ${admin}`})\n`);

  const apply = (next: Config) => {
    gateway.reload(next);
    config = next;
  };
  const reloader = watchConfig(source ?? "gateway.json", load, apply, gateway.diagnose);
  process.on("SIGHUP", reloader.reload);

  // A reader of our logs that goes away must not take the gateway with it.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  let stopping = false;
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      reloader.close();
      void gateway.close(config.server.drain_ms).then(() => process.exit(0));
    });
  }
}

function check(args: Arguments): number {
  const { config, source } = loadConfig({ file: args.config, env: process.env });
  for (const [name, alias] of config.aliases) {
    if (alias.enabled && rank(config, alias).every((each) => each.rank === null)) {
      process.stderr.write(`chat-gateway: warning: aliases.${name} has no candidate: every request for it would get 503\n`);
    }
  }
  const counts = { models: config.models.size, aliases: config.aliases.size, keys: config.keys.length };
  const found = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ");
  process.stdout.write(args.json ? `${JSON.stringify({ ok: true, source: source ?? null, ...counts })}\n` : `${source ?? "the demo configuration"} is valid: ${found}\n`);
  return 0;
}

function explain({ config: file, operand, json }: Arguments): number {
  const explained = explainAlias(loadConfig({ file, env: process.env }).config, operand!);
  if ("fault" in explained) process.stderr.write(`chat-gateway: ${explained.fault}\n`);
  else process.stdout.write(json ? `${JSON.stringify(explained.data)}\n` : explained.text);
  return "fault" in explained ? 1 : 0;
}

function reportFaults({ faults }: CheckError, json: boolean): void {
  const list = faults.map(({ path, message }) => ({ path: pathText(path), message }));
  if (json) process.stdout.write(`${JSON.stringify({ ok: false, faults: list })}\n`);
  else for (const fault of faults) process.stderr.write(`chat-gateway: ${faultText(fault)}\n`);
}

async function main(argv: readonly string[]): Promise<number | undefined> {
  let json = false;
  try {
    const args = readArguments(argv);
    if (args === "help") {
      process.stdout.write(`${USAGE}\n`);
      return 0;
    }
    json = args.json;
    if (args.command === "explain") return explain(args);
    if (args.command === "check") return check(args);
    return await serve(args);
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`chat-gateway: ${error.message}\n`);
      return 2;
    }
    if (error instanceof CheckError) reportFaults(error, json);
    else process.stderr.write(`chat-gateway: ${(error as Error).message}\n`);
    return 1;
  }
}

const code = await main(process.argv.slice(2));
if (code !== undefined) process.exitCode = code;
