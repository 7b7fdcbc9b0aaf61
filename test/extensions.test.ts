// Each entry of src/extensions.ts must state what its extension provides, because that decides when
// it is loaded. Most tests load all extensions, so they would not notice one that is missing.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { programSlots } from "../src/command-line/command.ts";
import { configSlots } from "../src/config/extension.ts";
import { install } from "../src/core/extension/install.ts";
import { slots } from "../src/core/extension/places.ts";
import { extensions } from "../src/extensions.ts";

describe("an entry of src/extensions.ts states what its extension brings:", () => {
  for (const entry of extensions) {
    const { name, load, settings = [], commands = [], dialects = [] } = entry;
    it(name, async () => {
      const extension = { name, ...(await load()) };
      const installed = install([extension]);
      const paths = (extension.settings ?? []).map(({ path }) => path);
      assert.deepEqual(paths.sort(), [...settings].sort());
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
