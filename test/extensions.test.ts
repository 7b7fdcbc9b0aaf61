// The table of src/extensions.ts says of each extension what it brings, because that decides when it
// is loaded. Most tests load all of them, and would not see that a configuration loads too few.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { programSlots } from "../src/command-line/command.ts";
import { configSlots } from "../src/config/extension.ts";
import { install } from "../src/core/extension/install.ts";
import { slots } from "../src/core/extension/places.ts";
import { extensions } from "../src/extensions.ts";

/** Settings of another extension that load these. */
const NEEDED_FOR: Readonly<Record<string, readonly string[]>> = {
  "messages-api": ["apis"],
  "responses-api": ["apis"],
};

/** Whom an extension must wrap, so that each sees what it is to see of a request. */
const MUST_WRAP: Readonly<Record<string, readonly string[]>> = {
  // The details of an error are those that the client gets: the outermost has the last word.
  "messages-api": ["responses-api", "budgets", "sticky", "recovery"],
  "responses-api": ["budgets", "sticky", "recovery"],
  budgets: ["recovery"],
  // A conversation that was drawn to a model stays with it, however fast others are.
  shares: ["sticky"],
  fastest: ["sticky"],
  // It knows a conversation by what the client sent, without what recovery lets a model continue.
  sticky: ["recovery"],
  // A stream that is continued passes again through what chooses candidates and times attempts.
  recovery: ["patience", "context-room", "left-streams", "capacity", "provider-limits"],
  "context-room": ["provider-limits"],
};

it("the order of src/extensions.ts lets each wrap whom it must", async () => {
  const loaded = await Promise.all(
    extensions.map(async ({ name, load }) => ({ name, ...(await load()) })),
  );
  const { arounds } = install(loaded);
  for (const [outer, inner] of Object.entries(MUST_WRAP))
    for (const name of inner) {
      assert.ok(arounds.includes(outer) && arounds.includes(name), `${outer} and ${name} wrap`);
      assert.ok(arounds.indexOf(outer) < arounds.indexOf(name), `${outer} wraps ${name}`);
    }
});

describe("an entry of src/extensions.ts states what its extension brings:", () => {
  for (const entry of extensions) {
    const { name, load, settings = [], commands = [], dialects = [] } = entry;
    it(name, async () => {
      const extension = { name, ...(await load()) };
      const installed = install([extension]);
      const paths = (extension.settings ?? []).map(({ path }) => path);
      assert.deepEqual([...paths, ...(NEEDED_FOR[name] ?? [])].sort(), [...settings].sort());
      const brought = [...installed.family(programSlots.command).keys()];
      assert.deepEqual(brought.sort(), [...commands].sort());
      assert.deepEqual([...installed.family(slots.dialect).keys()], dialects);
      const { hasManual = false, hasConfig = false, startsProcesses = false } = entry;
      assert.equal(installed.filled(programSlots.manual) !== undefined, hasManual);
      assert.equal(installed.filled(configSlots.builtInConfig) !== undefined, hasConfig);
      assert.equal(installed.filled(programSlots.supervise) !== undefined, startsProcesses);
    });
  }
});
