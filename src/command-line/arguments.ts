// The command line, read: which command it names, what its options say, and what is wrong with what
// was typed.
import { parseArgs } from "node:util";
import { UsageError, type Command, type CommandArguments, type CommandOption } from "./command.ts";
import { COMMON_OPTIONS, HELP_OPTIONS } from "./help.ts";

/** The commands that there are. Their code is loaded when it is needed. */
export interface CommandTable {
  /** As they are typed: `serve`, `keys list`. */
  readonly names: readonly string[];
  /** Loads the extensions that bring these commands. A name that nothing brings is left out. */
  load(names: readonly string[]): Promise<ReadonlyMap<string, Command>>;
}

/**
 * A command line that has been read. `command` is undefined where help or the version was asked
 * for, as `name` says; `operand` is then the topic of the help, or empty.
 */
export interface CommandLine {
  /** As it was typed; DEFAULT_COMMAND if none was. HELP or VERSION_ASKED if that was asked for. */
  readonly name: string;
  /** Loaded, and ready to run. */
  readonly command: Command | undefined;
  /** Checked against the command's options: nothing required is missing. */
  readonly args: CommandArguments;
}

/** The command that runs where none is named. */
export const DEFAULT_COMMAND = "serve";
export const HELP = "help";
/** What CommandLine.name is where the version was asked for. */
export const VERSION_ASKED = "--version";

/**
 * The words before the first option name the command, whose options follow. Rejects with a
 * UsageError.
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
    return { name: VERSION_ASKED, command: undefined, args: { operand: "", values } };
  if (values["help"] !== undefined || isHelp) {
    const operand = helpAskedFor(positionals, table.names);
    return { name: HELP, command: undefined, args: { operand, values } };
  }
  if (name === undefined || !command) throw unknownCommand(words, table.names);
  const rest = positionals.slice(words.length === 0 ? 0 : name.split(" ").length);
  const args = { operand: operandOf(command, rest), values };
  assertComplete(name, command, args);
  return { name, command, args };
}

/** The topic of the help: the words after `help`, or the command that has `--help`. */
function helpAskedFor(words: readonly string[], names: readonly string[]): string {
  if (words[0] === HELP) return words.slice(1).join(" ");
  return commandAt(words, names) ?? words.join(" ");
}

/** The words before the first option. */
function leadingWords(argv: readonly string[]): readonly string[] {
  const end = argv.findIndex((word) => word.startsWith("-"));
  return end === -1 ? argv : argv.slice(0, end);
}

/** The command that the first two words, or the first one, name. */
const commandAt = (words: readonly string[], names: readonly string[]): string | undefined =>
  [words.slice(0, 2).join(" "), words[0]].find(
    (name) => name !== undefined && names.includes(name),
  );

/** Of a group such as `keys` only the commands of the group are named. */
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

/** Throws a UsageError for an option that is not among these, if `strict`, or has no value. */
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
    // Node adds advice behind the first sentence.
    const [message = ""] = (error as Error).message.split(/\.[ \n]|\n/);
    const [, dashed] = /^Option '(--[\w-]+).* is ambiguous/.exec(message) ?? [];
    if (dashed)
      throw new UsageError(
        `${dashed} needs a value; one that begins with a dash is written behind =`,
      );
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

/** Throws a UsageError for what is missing or malformed. */
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
