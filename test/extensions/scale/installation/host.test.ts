// The host of parts that exist once per installation: a part that cannot start, and the order of
// looks.
import { install } from "../../../../src/core/extension/install.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Extension } from "../../../../src/core/extension/installer.ts";
import {
  once,
  type Host,
  type HostPart,
} from "../../../../src/extensions/scale/installation/index.ts";
import { createHost } from "../../../../src/extensions/scale/installation/host.ts";

type Sources = Parameters<typeof createHost>[0];

/** A host with one part. */
function hostOf(sources: object): Host {
  let host!: Host;
  const part = (found: Host): HostPart => {
    host = found;
    return {};
  };
  const installed = install([{ name: "part", install: (gateway) => gateway.on(once, part) }]);
  createHost({ ...(sources as Sources), installed });
  return host;
}

describe("a host", () => {
  it("shows for each model the most open breaker and, among equals, the one that waits longest", async () => {
    const current = () => ({ keys: [], aliases: new Map() });
    const reportOf = (state: string, retry_ms: number) => {
      const models = [{ model: "m", breaker: { state, retry_ms } }];
      return { extensions: { installation: { delays: {}, models } } };
    };
    const reports = [reportOf("open", 0), reportOf("open", 60), reportOf("closed", 90)];
    for (const all of [reports, reports.toReversed()]) {
      const { status } = await hostOf({ current, reports: async () => all }).collectStatus();
      assert.deepEqual(status.models[0]!.breaker, { state: "open", retry_ms: 60 });
    }
  });

  it("collects nothing while no process serves", async () => {
    const collected = hostOf({ reports: async () => [] }).collectStatus();
    await assert.rejects(collected, { message: "No process serves at the moment." });
  });

  it("closes the started parts if one cannot start", async () => {
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
    const sources = { installed } as unknown as Sources;
    assert.throws(() => createHost(sources), /no such file/);
    await setImmediate();
    assert.deepEqual(closed, ["second", "first"]);
  });

  it("completes collections in the order of their beginnings, whatever the processes do", async () => {
    const answers: (() => void)[] = [];
    const reportOf = (inFlight: number) => ({
      ...{ draining: false, inFlight, droppedLines: { access: 0, diagnostics: 0 } },
      extensions: { installation: { delays: {}, models: [] } },
    });
    const reports = () =>
      new Promise((resolve) => {
        const report = reportOf(answers.length);
        answers.push(() => resolve([report]));
      });
    const seen: (number | undefined)[] = [];
    const host = hostOf({ reports });
    host.onStatus((status) => seen.push(status.reports[0]?.inFlight));
    const collected = [host.collectStatus(), host.collectStatus(), host.collectStatus()];
    for (const answer of answers.toReversed()) {
      answer();
      await setImmediate();
    }
    await Promise.all(collected);
    assert.deepEqual(seen, [0, 1, 2]);
  });
});
