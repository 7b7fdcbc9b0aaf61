// The command line, read: which commands there are, what each takes, and what is wrong with what was typed.
import { parseArgs } from "node:util";
import { isDay, MONTH } from "../books/billing.ts";
import COMMANDS from "./commands.json" with { type: "json" };

/** A mistake in the arguments: one line on stderr, exit 2. */
export class UsageError extends Error {}

const OPTIONS = {
  config: { type: "string" },
  host: { type: "string" },
  port: { type: "string" },
  account: { type: "string" },
  name: { type: "string" },
  rpm: { type: "string" },
  models: { type: "string" },
  expires: { type: "string" },
  month: { type: "string" },
  format: { type: "string" },
  currency: { type: "string" },
  once: { type: "boolean" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;
/** A `synopsis` is as it is shown: an operand in capitals, what may be left out in brackets; `--config FILE` goes without saying. */
type CommandName = keyof typeof COMMANDS;
export const HELP = `chat-gateway: a chat-completions gateway

${Object.entries(COMMANDS)
  .map(
    ([name, { synopsis, does }]) =>
      `  ${name} ${synopsis.replace(/^([A-Z_]+ )?/, "$1[--config FILE] ")}\n      ${does}`,
  )
  .join("\n")}

Without --config: ./gateway.json if it is there, else the built-in demo configuration.`;

const parse = (argv: readonly string[]) =>
  parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true });
export type Values = ReturnType<typeof parse>["values"];
export interface Arguments {
  readonly command: CommandName | "help";
  /** The argument that is no option; of `help` a topic of the manual. Empty if there is none. */
  readonly operand: string;
  readonly values: Values;
}

const isToCome = (value: string): boolean =>
  Date.parse(value) > Date.now() && isDay(value.slice(0, 10));
/** What the options with a form of their own must look like. */
const FORMS: {
  readonly [name in keyof Values]?: readonly [test: (value: string) => boolean, expected: string];
} = {
  port: [(value) => /^\d{1,5}$/.test(value) && Number(value) <= 65_535, "a number from 0 to 65535"],
  rpm: [(value) => /^\d{1,7}$/.test(value), "a number of requests per minute"],
  month: [(value) => MONTH.test(value), "a month such as 2026-11"],
  format: [(value) => ["table", "csv", "json"].includes(value), "table, csv or json"],
  currency: [(value) => /^[A-Z]{3}$/.test(value), "three capital letters such as USD"],
  expires: [isToCome, "a date to come such as 2027-01-31, or a time in ISO 8601"],
};

export function readArguments(argv: readonly string[]): Arguments {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(argv);
  } catch (error) {
    throw new UsageError((error as Error).message.split(/\.[ \n]|\n/)[0]!);
  }
  const { values, positionals } = parsed;
  if (values.help) return { command: "help", operand: "", values };
  if (positionals[0] === "help")
    return { command: "help", operand: positionals.slice(1).join(" "), values };
  const words = positionals.slice(0, 2).join(" ");
  let command: string;
  if (words === "") command = "serve";
  else command = isCommand(words) ? words : (positionals[0] ?? "");
  if (!isCommand(command))
    throw new UsageError(
      `there is no command '${words}'; commands: ${Object.keys(COMMANDS).join(", ")}`,
    );
  const { synopsis } = COMMANDS[command];
  const [operand = "", ...rest] = positionals.slice(
    command.split(" ").length * (words === "" ? 0 : 1),
  );
  const unexpected = /^[A-Z]/.test(synopsis) ? rest.join(" ") : [operand, ...rest].join(" ");
  if (unexpected !== "") throw new UsageError(`unexpected argument '${unexpected}'`);
  const required = synopsis.replace(/\[.*?\]/g, "").match(/^[A-Z_]+|--\w+/g) ?? [];
  const missing = required.find(
    (each) => !(each.startsWith("--") ? values[each.slice(2) as keyof Values] : operand),
  );
  if (missing !== undefined) throw new UsageError(`${command} needs ${missing}`);
  for (const [name, value] of Object.entries(values)) {
    if (name !== "config" && !synopsis.includes(`--${name}`))
      throw new UsageError(`${command} has no option --${name}`);
    const [test, expected] = FORMS[name as keyof Values] ?? [];
    if (test && !test(String(value))) throw new UsageError(`--${name} must be ${expected}`);
  }
  return { command, operand, values };
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMANDS, name);
