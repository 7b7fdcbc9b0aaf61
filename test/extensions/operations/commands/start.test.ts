// The first moments of a process: signals and configuration changes that arrive before the gateway
// listens.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { lines, run, type Running } from "../../../support/command.ts";
import { folder, replace } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import { writeManyKeys } from "../../../support/many-keys.ts";
import { until, waitFor, within } from "../../../support/wait.ts";

const SIGHUP_BIT = 1n; // the bit of signal 1 in the mask of caught signals

/** Enough keys that reading them takes a while. */
const MANY_KEYS = LONG ? 200_000 : 50_000;

/** A gateway that starts slowly if it has many keys to read. */
function starting(t: TestContext, { workers = 1, keys = 0, detached = false } = {}) {
  const cwd = folder();
  const data = join(cwd, "data");
  mkdirSync(data);
  if (keys > 0) writeManyKeys(join(data, "keys.json"), keys);
  const file = join(cwd, "gateway.json");
  const text = (over: object = {}) =>
    JSON.stringify(demo({ data_dir: data, server: { port: 0, workers }, ...over }));
  writeFileSync(file, text());
  return { gw: run(t, ["--config", file], { cwd, detached }), data, file, text };
}

type Started = ReturnType<typeof starting>;

const statusOf = ({ child }: Running): string => readFileSync(`/proc/${child.pid}/status`, "utf8");

/**
 * Whether a process already handles SIGHUP. Node itself handles SIGTERM and SIGINT from its start,
 * so these prove nothing.
 */
function listensForHangup(gw: Running): boolean {
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(statusOf(gw))?.[1];
  return (BigInt(`0x${caught ?? "0"}`) & SIGHUP_BIT) !== 0n;
}

/** The stages of a start at which a signal arrives, in order. */
const HEARING = "it listens for signals";
const CONFIGURED = "it has read its configuration";
const BORN = "a worker is born";
const STAGES: Readonly<Record<string, (started: Started) => boolean>> = {
  [HEARING]: ({ gw }) => listensForHangup(gw),
  [CONFIGURED]: ({ data }) => existsSync(join(data, "spend")),
  [BORN]: ({ gw: { child } }) =>
    readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim() !== "",
  "it says that it listens": ({ gw }) => gw.stdout() !== "",
};

const isOver = ({ child }: Running): boolean =>
  child.exitCode !== null || child.signalCode !== null;

async function reach(stage: string, started: Started): Promise<void> {
  for (const each of [HEARING, stage])
    await waitFor(() => isOver(started.gw) || STAGES[each]!(started), each);
}

const events = (gw: Running, event: string): number =>
  lines(gw.stderr()).filter((line) => line.includes(`"event":"${event}"`)).length;

/**
 * A gateway suspended at a stage, before it prints its address. If it was faster than this test,
 * another one is tried.
 */
const caught = (t: TestContext, workers: number, stage: string): Promise<Started> =>
  until(async () => {
    const started = starting(t, { workers, keys: MANY_KEYS });
    const { gw } = started;
    await reach(stage, started);
    gw.child.kill("SIGSTOP");
    await waitFor(() => /^State:\s+T/m.test(statusOf(gw)), "the process to stand still");
    await turn(); // this process reads the earlier output in that turn
    await turn();
    if (gw.stdout() === "") return started;
    gw.child.kill("SIGKILL");
    await gw.ended;
    return undefined;
  }, "a gateway that is caught during its start");

const skip = !existsSync("/proc/self/status") && "this takes Linux's /proc";

describe("a signal during the start", { skip }, () => {
  it("SIGHUP is noticed before anything is loaded, and applied once the gateway listens", async (t) => {
    const { gw } = await caught(t, 1, HEARING);
    for (const signal of ["SIGHUP", "SIGCONT", "SIGHUP"] as const) gw.child.kill(signal);
    const url = await gw.address();
    await waitFor(() => events(gw, "reloaded") >= 1, "the reload");
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
  });

  for (const [signals, expected] of [
    [["SIGTERM"], 0],
    [["SIGTERM", "SIGINT"], 1],
  ] as const)
    it(`${signals.join(", then ")} ends it with exit ${expected}, and it never prints its address`, async (t) => {
      const { gw } = await caught(t, 1, HEARING);
      for (const signal of signals) gw.child.kill(signal);
      gw.child.kill("SIGCONT");
      const { code, signal, stdout } = await within(gw.ended, "the end");
      assert.deepEqual([code, signal, stdout], [expected, null, ""]);
    });

  for (const signal of ["SIGHUP", "SIGTERM"] as const)
    it(`${signal} to the whole process group while workers start: no worker is missing, and no death is reported`, async (t) => {
      for (const stage of LONG ? Object.keys(STAGES) : [BORN]) {
        const started = starting(t, { workers: 2, detached: true });
        const { gw } = started;
        await reach(stage, started);
        process.kill(-gw.child.pid!, signal);
        if (signal === "SIGHUP") {
          const url = await gw.address();
          await waitFor(() => isOver(gw) || events(gw, "reloaded") >= 2, "the reload of both");
          assert.equal((await fetch(`${url}/healthz`)).status, 200);
          gw.child.kill("SIGTERM");
        }
        const { code, stderr } = await within(gw.ended, `the end, when ${stage}`);
        assert.deepEqual([code, events(gw, "worker_died")], [0, 0], `when ${stage}: ${stderr}`);
      }
    });

  it("commands that do not serve are ended by signals as usual", async (t) => {
    const dir = folder();
    const file = join(dir, "gateway.json");
    writeFileSync(file, JSON.stringify(demo({ data_dir: join(dir, "data") })));
    const sync = run(t, ["usage", "sync", "--config", file]);
    await waitFor(() => existsSync(join(dir, "data", "spend")), "the sync to begin");
    sync.child.kill("SIGHUP");
    const end = await within(sync.ended, "the end");
    assert.deepEqual([end.code, end.signal], [null, "SIGHUP"]);
  });
});

describe("a change of the configuration during the start", { skip }, () => {
  for (const workers of LONG ? [1, 2] : [2])
    it(`is applied soon after the gateway listens (${workers} processes)`, async (t) => {
      // The folder is created after the configuration is read and before the keys are.
      const { gw, file, text } = await caught(t, workers, CONFIGURED);
      replace(file, text({ keys: [{ account: "later", key: "sk-later" }] }));
      gw.child.kill("SIGCONT");
      const url = await gw.address();
      await until(async () => {
        const headers = { authorization: "Bearer sk-later" };
        const response = await fetch(`${url}/v1/models`, { headers });
        await response.text();
        return response.status === 200;
      }, "the new key to be valid");
    });
});
