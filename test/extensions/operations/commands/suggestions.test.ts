// What the program suggests for a misspelt command, option or topic.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertOneLine } from "../../../support/command.ts";
import { runHere } from "../../../support/run-here.ts";

describe("a misspelt", () => {
  for (const [what, args, words] of [
    ["command", ["chek"], /no command 'chek'; did you mean "check"\?$/m],
    ["command with an operand", ["explian", "auto/chat"], /; did you mean "explain"\?$/m],
    ["command of a group", ["keys", "lits"], /no command 'keys lits'; did you mean "keys list"\?/],
    ["group", ["key", "create"], /no command 'key create'; did you mean "keys create"\?/],
    ["option", ["check", "--jsn"], /Unknown option '--jsn'; did you mean "--json"\?$/m],
    ["common option", ["audit", "--confg", "x"], /; did you mean "--config"\?$/m],
    ["option without a command", ["--prot", "1"], /; did you mean "--port"\?$/m],
    ["place of a file", ["check", "my.json"], /'my\.json'; did you mean --config my\.json\?$/m],
    ["topic", ["help", "routng"], /no topic "routng"; did you mean "routing"\?$/m],
  ] as const) {
    it(`${what} (${args.join(" ")}) is told with what was meant: one line, exit 2`, async () => {
      const end = await runHere(args);
      assertOneLine(end, words);
      assert.equal(end.code, 2);
    });
  }

  for (const [what, args, words] of [
    ["command", ["frobnicate"], /no command 'frobnicate'; commands: serve, init, check/],
    ["group without its command", ["keys"], /no command 'keys'; commands: keys create, keys list/],
    ["option", ["check", "--colour"], /Unknown option '--colour'$/m],
    ["topic", ["help", "nonsense"], /no topic "nonsense"; topics: api, /],
  ] as const) {
    it(`${what} (${args.join(" ")}) that is like no other brings no suggestion`, async () => {
      const end = await runHere(args);
      assertOneLine(end, words);
      assert.equal(end.code, 2);
    });
  }
});
