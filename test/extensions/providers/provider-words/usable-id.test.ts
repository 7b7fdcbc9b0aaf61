// The ids of tool calls that clients get, and what the provider stated in them.

import assert from "node:assert/strict";
import { it } from "node:test";
import {
  isUsableId,
  statedId,
  usableId,
} from "../../../../src/extensions/providers/provider-words/index.ts";

it("a usable id has the provider's own in it, if there is room", () => {
  for (const id of ["functions.get_weather:0", "call_0", "functions.mcp__github__create_issue:0"]) {
    assert.ok(isUsableId(usableId(id)));
    assert.equal(statedId(usableId(id)), id);
  }
  for (const id of ["", "x".repeat(41), "a b", "\u0000"]) {
    assert.ok(isUsableId(usableId(id)));
    assert.equal(statedId(usableId(id)) === id, false);
  }
});

it("an id that only looks like one is the provider's own", () => {
  const ids = ["toolu_0000_A", "toolu_0000_AA", "toolu_0000___w", `toolu_0000_${"A".repeat(100)}`];
  for (const id of [...ids, "toolu_01A09q90qw90lq917835lq9", "call_1"])
    assert.equal(statedId(id), id);
});
