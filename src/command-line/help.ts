// The texts of `help`: about all commands and the manual's topics, a group of commands, or one.
import type { Command, CommandOption } from "./command.ts";
import type { SearchResult, Topic } from "./manual.ts";

/** The members of a command that `help` shows. */
type Described = Omit<Command, "run">;

/** The options of every command. */
export const COMMON_OPTIONS: Readonly<Record<string, CommandOption>> = {
  config: {
    value: "FILE",
    help: "the configuration",
    fallback: "./gateway.json if it exists, else the built-in demo configuration",
  },
  help: { help: "print this help; also -h" },
  version: { help: "print the version of the program" },
};

/** The options of `help`, in addition to COMMON_OPTIONS. */
export const HELP_OPTIONS: Readonly<Record<string, CommandOption>> = {
  search: {
    value: "WORDS",
    help: "print the sections of the manual that have the most of these words",
  },
};

/** All commands, and the manual's topics. */
export function helpText(
  commands: ReadonlyMap<string, Described>,
  topics: readonly Topic[],
): string {
  const { config } = COMMON_OPTIONS;
  return `chat-gateway: a gateway between programs and model providers

${commandList(commands)}
\`help COMMAND\` prints a command's options and an example. \`--version\` prints the version.
Without --config: ${config!.fallback}.
${topicList(topics)}`;
}

/** The commands of a group, such as `keys`. */
export const groupHelp = (commands: ReadonlyMap<string, Described>): string =>
  `${commandList(commands)}\n\`help COMMAND\` prints a command's options and an example.\n`;

const commandList = (commands: ReadonlyMap<string, Described>): string =>
  [...commands]
    .map(([name, command]) => `  ${synopsis(name, command)}\n      ${command.summary}\n`)
    .join("");

function topicList(topics: readonly Topic[]): string {
  if (topics.length === 0) return "";
  const rows = topics.map(({ name, summary }) => [name, summary] as const);
  const how = "`help TOPIC` prints a page, `help --search WORDS` finds one";
  return `\nThe manual: ${how}.\n\n${columns(rows)}`;
}

/** The sections that a search of the manual has found. */
export const searchText = (results: readonly SearchResult[]): string =>
  results
    .map(({ name, section, excerpt }) => `${name}: ${section}\n    ${excerpt}\n`)
    .concat("\n`help TOPIC` prints a page, such as the one before the colon.\n")
    .join("");

/** The help of one command: synopsis, options with their meanings and defaults, and an example. */
export function commandHelp(name: string, command: Described): string {
  const { operand, operandHelp = "", operandOptional, options = {}, summary, example } = command;
  const rows = Object.entries({ ...options, ...COMMON_OPTIONS }).map(
    ([option, described]) => [optionForm(option, described), optionText(described)] as const,
  );
  if (operand !== undefined)
    rows.unshift([operand, operandOptional ? operandHelp : `${operandHelp} (required)`]);
  return `${name}: ${summary}

  ${synopsis(name, command)}

${columns(rows)}
Example:

  ${example}
`;
}

/** The form of an option: `--port N`. */
const optionForm = (name: string, { value }: CommandOption): string =>
  value === undefined ? `--${name}` : `--${name} ${value}`;

function optionText({ help, value, required, fallback }: CommandOption): string {
  if (required) return `${help} (required)`;
  return value === undefined ? help : `${help} (default: ${fallback ?? "none"})`;
}

/** Two columns, indented; the first is as wide as its widest cell. */
function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([first]) => first.length));
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}\n`).join("");
}

/** A command as `help` and the manual show it. */
export const synopsis = (name: string, command: Described): string =>
  [name, ...synopsisOf(command)].join(" ");

/** The operand in capitals, then the options. Optional parts are in brackets. */
function synopsisOf({ operand, operandOptional, options = {} }: Described): string[] {
  const shown = Object.entries(options).map(([name, option]) => {
    const text = optionForm(name, option);
    return option.required ? text : `[${text}]`;
  });
  const named = operandOptional ? `[${operand}]` : operand;
  return [...(named === undefined ? [] : [named]), "[--config FILE]", ...shown];
}
