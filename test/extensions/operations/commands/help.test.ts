// What `help` and `--version` print of the program itself.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { readCommandLine } from "../../../../src/command-line/arguments.ts";
import { serveCommand } from "../../../../src/program.ts";
import { programSlots, type Command } from "../../../../src/command-line/command.ts";
import { installed } from "../../../support/config.ts";
import { runHere } from "../../../support/run-here.ts";

const doNothing = async (): Promise<void> => undefined;
const COMMANDS = new Map<string, Command>([
  ["serve", { ...serveCommand, run: doNothing }],
  ...installed.family(programSlots.command),
]);

const TABLE = { names: [...COMMANDS.keys()], load: async () => COMMANDS };

describe("--version", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };

  for (const args of [["--version"], ["check", "--version"]]) {
    it(`${args.join(" ")}: the version of package.json and that of Node, exit 0`, async () => {
      const { code, stdout, stderr } = await runHere(args);
      assert.deepEqual([code, stderr], [0, ""]);
      assert.ok(stdout.startsWith(`chat-gateway ${version} (Node ${process.versions.node}, `));
      assert.equal(stdout.split("\n").length, 2);
    });
  }
});

describe("help of one command", () => {
  for (const args of [
    ["help", "keys", "create"],
    ["keys", "create", "--help"],
    ["keys", "create", "-h"],
    ["--help", "keys", "create"],
  ]) {
    it(`${args.join(" ")}: its form, its options with their defaults, an example`, async () => {
      const { code, stdout, stderr } = await runHere(args);
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(
        stdout,
        /^keys create: make a key; it is shown this once\n\n {2}keys create \[--config FILE\] --acc/,
      );
      assert.match(stdout, /^ {2}--account A +the account that pays for the key \(required\)$/m);
      assert.match(stdout, /^ {2}--models a,b +the models .* \(default: all\)$/m);
      assert.match(stdout, /^ {2}--json +print one line of JSON$/m);
      assert.match(stdout, /^ {2}--config FILE +the configuration \(default: \.\/gateway\.json /m);
      assert.match(stdout, /\nExample:\n\n {2}keys create --account acme .*\n$/);
    });
  }

  it("of a group: its commands", async () => {
    for (const args of [
      ["help", "keys"],
      ["keys", "--help"],
    ]) {
      const { code, stdout } = await runHere(args);
      assert.equal(code, 0);
      assert.deepEqual(
        [...stdout.matchAll(/^ {2}(\w+ \w+) /gm)].map(([, name]) => name),
        ["keys create", "keys list", "keys revoke"],
      );
    }
  });

  it("tells an operand", async () => {
    const { stdout } = await runHere(["help", "explain"]);
    assert.match(stdout, /^ {2}ALIAS +an alias of the configuration \(required\)$/m);
  });

  for (const [name, command] of COMMANDS) {
    it(`${name} says what each of its options means, and has an example that is right`, async () => {
      const { options = {}, operand, operandMeaning, example } = command;
      for (const [option, { meaning }] of Object.entries(options))
        assert.match(meaning, /^[a-z`].*[^.]$/, option);
      assert.equal(operandMeaning === undefined, operand === undefined);
      const read = await readCommandLine(example.split(" "), TABLE);
      assert.equal(read.name, name);
    });
  }
});
