// What `help` and `--version` print about the program itself, and the errors for unknown arguments.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { readCommandLine } from "../../../../src/command-line/arguments.ts";
import { serveCommand } from "../../../../src/program.ts";
import { programSlots, type Command } from "../../../../src/command-line/command.ts";
import { assertFails, outputOf } from "../../../support/command.ts";
import { installed } from "../../../support/config.ts";
import { runHere } from "../../../support/run-here.ts";

const doNothing = async (): Promise<void> => undefined;
const COMMANDS = new Map<string, Command>([
  ["serve", { ...serveCommand, run: doNothing }],
  ...installed.family(programSlots.command),
]);
const TABLE = { names: [...COMMANDS.keys()], load: async () => COMMANDS };

const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
const VERSION = new RegExp(`^chat-gateway ${version} \\(Node ${process.versions.node}, .*\\n$`);
const USAGE = /serve \[--config FILE\] \[--host H\] \[--port N\].*check \[--config FILE\]/s;
const KEYS_CREATE = [
  /^keys create: create a key, and show it this once\n\n {2}keys create \[--config FILE\] --acc/,
  /^ {2}--account A +the account that pays for the key \(required\)$/m,
  /^ {2}--models a,b +the models .* \(default: all\)$/m,
  /^ {2}--json +print one line of JSON$/m,
  /^ {2}--config FILE +the configuration \(default: \.\/gateway\.json /m,
  /\nExample:\n\n {2}keys create --account acme .*\n$/,
];
/** The commands of the group `keys`, and no others. */
const KEYS =
  /^ {2}keys create .*\n {6}.*\n {2}keys list .*\n {6}.*\n {2}keys revoke .*\n {6}.*\n\n`help C/;

describe("stdout, exit 0, of", () => {
  for (const [args, ...expected] of [
    [["--version"], VERSION],
    [["check", "--version"], VERSION],
    [["--help"], USAGE],
    [["help"], USAGE],
    [["help", "keys", "create"], ...KEYS_CREATE],
    [["keys", "create", "--help"], ...KEYS_CREATE],
    [["keys", "create", "-h"], ...KEYS_CREATE],
    [["--help", "keys", "create"], ...KEYS_CREATE],
    [["help", "keys"], KEYS],
    [["keys", "--help"], KEYS],
    [["help", "explain"], /^ {2}ALIAS +an alias of the configuration \(required\)$/m],
  ] as readonly (readonly [readonly string[], ...RegExp[]])[])
    it(args.join(" "), async () => {
      const stdout = outputOf(await runHere(args));
      for (const words of expected) assert.match(stdout, words);
    });
});

describe("the help of each command", () => {
  for (const [name, command] of COMMANDS)
    it(`${name} explains each option, and has a valid example`, async () => {
      const { options = {}, operand, operandHelp, example } = command;
      for (const [option, { help }] of Object.entries(options))
        assert.match(help, /^[a-z`].*[^.]$/, option);
      assert.equal(operandHelp === undefined, operand === undefined);
      const read = await readCommandLine(example.split(" "), TABLE);
      assert.equal(read.name, name);
    });
});

describe("a mistake in the arguments is one line on stderr, exit 2", () => {
  for (const [args, words] of [
    [["frobnicate"], /no command 'frobnicate'; commands: serve, init, check/],
    [["toString"], /no command 'toString'/],
    [["keys"], /no command 'keys'; commands: keys create, keys list/],
    [["check", "--colour"], /Unknown option '--colour'; options: --config, .*--live, --json$/m],
    [["help", "nonsense"], /no topic "nonsense"; topics: api, /],
    [["serve", "now"], /unexpected argument 'now'/],
    [["--colour"], /--colour/],
    [["serve", "--json"], /Unknown option '--json'/],
    [["--port"], /--port/],
    [["--port", "http"], /--port must be a number from 0 to 65535/],
    [["--port", "-1"], /--port needs a value; write one that begins with a dash after =$/m],
    [["--host", ""], /--host needs a value$/m],
    [["check", "--config", ""], /--config needs a value$/m],
    [["--port", "65536"], /--port must be a number from 0 to 65535/],
    [["explain"], /explain needs ALIAS$/m],
  ] as const)
    it(args.join(" "), async () => {
      const end = await runHere(args);
      assertFails(end, 2, words);
    });
});
