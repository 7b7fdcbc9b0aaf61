// The command `check`: validates a configuration, and prints warnings about probable mistakes. With
// --live it also calls the models.
import { configHooks } from "../../../config/extension.ts";
import {
  JSON_OPTION,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../../command-line/command.ts";
import { pathText } from "../../../core/schema/checker.ts";
import { callProviders, liveText } from "./live.ts";
import { warningsOf } from "./warnings.ts";

async function run(args: CommandArguments, terminal: Terminal): Promise<number> {
  const { config, installed, source } = await terminal.load(args, { forThisHost: true });
  for (const { call } of installed.listeners(configHooks.assertReady)) call(config, installed);
  const found = installed.listeners(configHooks.warnings).flatMap(({ call }) => call(config));
  const warnings = [...warningsOf(config), ...found].map(({ path, message }) => ({
    path: pathText(path),
    message,
  }));
  for (const { path, message } of warnings) terminal.warn(`warning: ${path} ${message}`);
  const counts = {
    models: config.models.size,
    aliases: config.aliases.size,
    keys: config.keys.length,
  };
  const summary = [
    counted(counts.models, "model", "models"),
    counted(counts.aliases, "alias", "aliases"),
    counted(counts.keys, "key", "keys"),
  ];
  const result = { ok: true, source: source ?? null, ...counts, warnings };
  const text = `${source ?? "the demo configuration"} is valid: ${summary.join(", ")}\n`;
  if (args.values["live"] === undefined) {
    await terminal.printResult(args, result, text);
    return 0;
  }
  const providers = await callProviders(config, installed);
  const ok = providers.every((answer) => answer.result !== "failed");
  await terminal.printResult(args, { ...result, ok, providers }, `${text}${liveText(providers)}`);
  return ok ? 0 : 1;
}

const counted = (count: number, one: string, many: string): string =>
  `${count} ${count === 1 ? one : many}`;

export const check: Command = {
  summary: "validate a configuration; with --live, make a tiny call to each model",
  example: "check --config gateway.json --live",
  options: {
    live: { help: "make one tiny call to each model, and with each key, outside the books" },
    json: JSON_OPTION,
  },
  run,
};
