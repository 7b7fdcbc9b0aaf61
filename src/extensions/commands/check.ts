// The command `check`: validates a configuration, and prints what is odd in it.
import { JSON_OPTION, type Command } from "../../command-line/command.ts";
import { createFormats } from "../../config/formats.ts";
import { pathText } from "../../core/schema/checker.ts";
import { warningsOf } from "./warnings.ts";

export const check: Command = {
  summary: "validate a configuration",
  example: "check --config gateway.json",
  options: { json: JSON_OPTION },
  async run(args, terminal) {
    const { config, extensions, source } = await terminal.load(args, { here: true });
    for (const { assertReady } of extensions) assertReady?.(config, extensions);
    const found = extensions.flatMap((extension) => extension.warnings?.(config) ?? []);
    const warnings = [...warningsOf(config, createFormats(extensions)), ...found].map(
      ({ path, message }) => ({
        path: pathText(path),
        message,
      }),
    );
    for (const { path, message } of warnings) terminal.warn(`warning: ${path} ${message}`);
    const counts = {
      models: config.models.size,
      aliases: config.aliases.size,
      keys: config.keys.length,
    };
    const summary = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
    const result = { ok: true, source: source ?? null, ...counts, warnings };
    const text = `${source ?? "the demo configuration"} is valid: ${summary.join(", ")}\n`;
    await terminal.answer(args, result, text);
  },
};
