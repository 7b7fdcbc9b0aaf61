// Parses the command line: finds the command that it names, and checks the command's operand and
// options.
import { parseArgs } from "node:util";
import { UsageError, type Command, type CommandArguments, type CommandOption } from "./command.ts";
import { COMMON_OPTIONS, HELP_OPTIONS } from "./help.ts";

/** All commands. Their code is loaded on demand. */
export interface CommandTable {
  /** The names as they are typed: `serve`, `keys list`. */
  readonly names: readonly string[];
  /** Loads the extensions with these commands. The result lacks names that no extension has. */
  load(names: readonly string[]): Promise<ReadonlyMap<string, Command>>;
}

/**
 * A parsed command line. If help or the version is requested, `name` says so, `command` is
 * undefined, and the operand in `args` is the topic of the help, or empty.
 */
export interface CommandLine {
  /** The command's name; DEFAULT_COMMAND if none was typed. HELP and VERSION_OPTION too. */
  readonly name: string;
  /** The loaded command. */
  readonly command: Command | undefined;
  /** The arguments, checked against the command's options: nothing required is missing. */
  readonly args: CommandArguments;
}

/** The command that runs if none is named. */
export const DEFAULT_COMMAND = "serve";
export const HELP = "help";
/** The CommandLine.name of a request for the version. */
export const VERSION_OPTION = "--version";

/**
 * Parses a command line. The words before the first option name the command. Rejects with a
 * UsageError if the command line is wrong.
 */
export async function readCommandLine(
  argv: readonly string[],
  table: CommandTable,
): Promise<CommandLine> {
  const words = leadingWords(argv);
  const name = words.length === 0 ? DEFAULT_COMMAND : commandAt(words, table.names);
  const command = name === undefined ? undefined : (await table.load([name])).get(name);
  const isHelp = words[0] === HELP;
  const options = { ...COMMON_OPTIONS, ...(isHelp ? HELP_OPTIONS : command?.options) };
  const { values, positionals } = parse(argv, options, isHelp || command !== undefined);
  if (values["version"] !== undefined)
    return { name: VERSION_OPTION, command: undefined, args: { operand: "", values } };
  if (values["help"] !== undefined || isHelp) {
    const operand = helpTopic(positionals, table.names);
    return { name: HELP, command: undefined, args: { operand, values } };
  }
  if (name === undefined || !command) throw unknownCommand(words, table.names);
  const rest = positionals.slice(words.length === 0 ? 0 : name.split(" ").length);
  const args = { operand: operandOf(command, rest), values };
  assertComplete(name, command, args);
  return { name, command, args };
}

/** The topic of the help: the words after `help`, or the command before `--help`. */
function helpTopic(words: readonly string[], names: readonly string[]): string {
  if (words[0] === HELP) return words.slice(1).join(" ");
  return commandAt(words, names) ?? words.join(" ");
}

/** The words before the first option. */
function leadingWords(argv: readonly string[]): readonly string[] {
  const end = argv.findIndex((word) => word.startsWith("-"));
  return end === -1 ? argv : argv.slice(0, end);
}

/** The command that the first two words name, or the first word alone. Undefined: there is none. */
const commandAt = (words: readonly string[], names: readonly string[]): string | undefined =>
  [words.slice(0, 2).join(" "), words[0]].find(
    (name) => name !== undefined && names.includes(name),
  );

/** The error of an unknown command. It lists all commands, or those of a group such as `keys`. */
function unknownCommand(words: readonly string[], names: readonly string[]): UsageError {
  const [first = ""] = words;
  const group = names.filter((name) => name.startsWith(`${first} `));
  const known = (group.length > 0 ? group : names).join(", ");
  return new UsageError(`there is no command '${words.slice(0, 2).join(" ")}'; commands: ${known}`);
}

type Options = Readonly<Record<string, CommandOption>>;

interface Parsed {
  readonly values: Readonly<Record<string, string | undefined>>;
  readonly positionals: readonly string[];
}

/** Throws a UsageError if an option has no value or, with `strict`, is not among `known`. */
function parse(argv: readonly string[], known: Options, strict: boolean): Parsed {
  const options: Record<string, { type: "string" | "boolean"; short?: string }> = {};
  for (const [name, { value }] of Object.entries(known))
    options[name] = { type: value === undefined ? "boolean" : "string" };
  options["help"] = { type: "boolean", short: "h" };
  try {
    const config = { args: [...argv], options, strict, allowPositionals: true };
    const { values, positionals } = parseArgs(config);
    const texts = Object.entries(values).map(([name, value]) => [name, String(value)]);
    return { values: Object.fromEntries(texts), positionals };
  } catch (error) {
    // Node's message continues with advice after its first sentence.
    const [message = ""] = (error as Error).message.split(/\.[ \n]|\n/);
    const [, dashed] = /^Option '(--[\w-]+).* is ambiguous/.exec(message) ?? [];
    if (dashed)
      throw new UsageError(`${dashed} needs a value; write one that begins with a dash after =`);
    const names = Object.keys(known).map((name) => `--${name}`);
    const advice = message.startsWith("Unknown option") ? `; options: ${names.join(", ")}` : "";
    throw new UsageError(message + advice);
  }
}

function operandOf({ operand }: Command, rest: readonly string[]): string {
  const unexpected = operand === undefined ? rest : rest.slice(1);
  if (unexpected.length > 0) throw new UsageError(`unexpected argument '${unexpected.join(" ")}'`);
  return rest[0] ?? "";
}

/** Throws a UsageError if the operand or an option is missing or malformed. */
function assertComplete(name: string, command: Command, args: CommandArguments): void {
  const { operand, values } = args;
  if (command.operand !== undefined && !command.operandOptional && operand === "")
    throw new UsageError(`${name} needs ${command.operand}`);
  const options = { ...COMMON_OPTIONS, ...command.options };
  for (const [option, { required, test, expected }] of Object.entries(options)) {
    const value = values[option];
    if (required && !value) throw new UsageError(`${name} needs --${option}`);
    if (value === "" && !test) throw new UsageError(`--${option} needs a value`);
    if (value !== undefined && test && !test(value))
      throw new UsageError(`--${option} must be ${expected}`);
  }
}
