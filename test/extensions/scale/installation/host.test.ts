// The host of what exists once: what it does if a part of it cannot start.
import { install } from "../../../../src/core/extension/install.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Extension } from "../../../../src/core/extension/installer.ts";
import { once, type HostPart } from "../../../../src/extensions/scale/installation/index.ts";
import { createHost } from "../../../../src/extensions/scale/installation/host.ts";

describe("a host", () => {
  it("closes the parts that have started if one cannot", async () => {
    const closed: string[] = [];
    const part = (name: string, startOnce: () => HostPart): Extension => ({
      name,
      install: (gateway) => gateway.on(once, startOnce),
    });
    const starts = (name: string) =>
      part(name, () => ({
        close() {
          closed.push(name);
        },
      }));
    const fails = part("third", () => {
      throw new Error("no such file");
    });
    const installed = install([starts("first"), starts("second"), fails, starts("fourth")]);
    const sources = { installed } as unknown as Parameters<typeof createHost>[0];
    assert.throws(() => createHost(sources), /no such file/);
    await setImmediate();
    assert.deepEqual(closed, ["second", "first"]);
  });
});
