// The first moments of a process: signals and changes of the configuration that come before the
// gateway listens.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ended, lines, run, type Running } from "../../../support/command.ts";
import { folder, replace } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import { writeManyKeys } from "../../../support/many-keys.ts";
import { until, waitFor, within } from "../../../support/wait.ts";

const SIGHUP_BIT = 1n; // of the mask of caught signals: that of number 1
const NO_PROC = { skip: !existsSync("/proc/self/status") && "this takes Linux's /proc" };

/** So many that reading them takes a while. */
const MANY_KEYS = LONG ? 200_000 : 50_000;

/**
 * Whether a process listens for SIGHUP by now. Node itself listens for SIGTERM and SIGINT from its
 * start on, so these tell nothing.
 */
function listensForHangup(pid: number | undefined): boolean {
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (BigInt(`0x${caught ?? "0"}`) & SIGHUP_BIT) !== 0n;
}

/** A gateway whose start takes a while: it has many keys to read. */
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

/** What a start has come to when a signal comes, in the order of a start. */
const CONFIGURED = "it has read its configuration";
const BORN = "a worker is born";
const STAGES: Readonly<Record<string, (started: Started) => boolean>> = {
  "it listens for signals": ({ gw }) => listensForHangup(gw.child.pid),
  [CONFIGURED]: ({ data }) => existsSync(join(data, "spend")),
  [BORN]: ({ gw }) => hasChildren(gw.child.pid),
  "it says that it listens": ({ gw }) => gw.stdout() !== "",
};

/** Of all stages in the long form, of the usual one elsewhere; workers are born where there are two. */
const stages = (usual: string, workers: number): readonly string[] =>
  LONG ? Object.keys(STAGES).filter((stage) => workers > 1 || stage !== BORN) : [usual];

const reach = (stage: string, started: Started): Promise<unknown> =>
  waitFor(() => isOver(started.gw) || STAGES[stage]!(started), stage);

const hasChildren = (pid: number | undefined): boolean =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim() !== "";

const events = (gw: Running, event: string): number =>
  lines(gw.stderr()).filter((line) => line.includes(`"event":"${event}"`)).length;
const isOver = ({ child }: Running): boolean =>
  child.exitCode !== null || child.signalCode !== null;
const listening = (gw: Running): Promise<unknown> =>
  waitFor(() => isOver(gw) || listensForHangup(gw.child.pid), "the process to listen for signals");

/**
 * A gateway that stands still after `reached`, before it says that it listens for requests. One that
 * was quicker than this process is let go for the next.
 */
const caught = (t: TestContext, workers: number, reached: (started: Started) => Promise<unknown>) =>
  until(async () => {
    const started = starting(t, { workers, keys: MANY_KEYS });
    const { gw } = started;
    await reached(started);
    gw.child.kill("SIGSTOP");
    const status = () => readFileSync(`/proc/${gw.child.pid}/status`, "utf8");
    await waitFor(() => /^State:\s+T/m.test(status()), "the process to stand still");
    await turn(); // in which this process reads what was said before
    await turn();
    if (gw.stdout() === "") return started;
    gw.child.kill("SIGKILL");
    await gw.ended;
    return undefined;
  }, "a gateway that is caught during its start");

describe("a signal during the start", () => {
  for (const workers of [1, 2]) {
    const what = workers === 1 ? "one process" : "two workers";

    it(
      `SIGHUP is heard before anything is loaded, and acted upon when it listens (${what})`,
      NO_PROC,
      async (t) => {
        const { gw } = await caught(t, workers, ({ gw }) => listening(gw));
        gw.child.kill("SIGHUP");
        gw.child.kill("SIGCONT");
        gw.child.kill("SIGHUP");
        const url = await gw.address();
        await waitFor(() => events(gw, "reloaded") >= workers, "the reload");
        assert.equal((await fetch(`${url}/healthz`)).status, 200);
      },
    );

    it(
      `SIGTERM ends it with exit 0, and it never says that it listens (${what})`,
      NO_PROC,
      async (t) => {
        const { gw } = await caught(t, workers, ({ gw }) => listening(gw));
        gw.child.kill("SIGTERM");
        gw.child.kill("SIGCONT");
        const { code, signal, stdout } = await within(gw.ended, "the end");
        assert.deepEqual([code, signal, stdout], [0, null, ""]);
      },
    );

    it(`SIGHUP at many moments from then on: none dies (${what})`, NO_PROC, async (t) => {
      for (const stage of stages(CONFIGURED, workers)) {
        const started = starting(t, { workers });
        const { gw } = started;
        await listening(gw);
        await reach(stage, started);
        gw.child.kill("SIGHUP");
        await gw.address();
        await waitFor(
          () => isOver(gw) || events(gw, "reloaded") >= workers,
          `the reload after a SIGHUP when ${stage}`,
        );
        assert.ok(!isOver(gw), `a SIGHUP when ${stage} ended it`);
        gw.child.kill("SIGTERM");
        assert.equal((await within(gw.ended, "the end")).code, 0);
      }
    });
  }

  for (const signal of ["SIGHUP", "SIGTERM"] as const) {
    it(
      `${signal} to the whole process group while workers are born: no worker is missing, nothing is told as a death`,
      NO_PROC,
      async (t) => {
        for (const stage of stages(BORN, 2)) {
          const started = starting(t, { workers: 2, detached: true });
          const { gw } = started;
          await listening(gw);
          await reach(stage, started);
          process.kill(-gw.child.pid!, signal);
          if (signal === "SIGHUP") {
            const url = await gw.address();
            assert.equal((await fetch(`${url}/healthz`)).status, 200);
            gw.child.kill("SIGTERM");
          }
          const { code, stderr } = await within(gw.ended, `the end, when ${stage}`);
          assert.deepEqual([code, events(gw, "worker_died")], [0, 0], `when ${stage}: ${stderr}`);
        }
      },
    );
  }

  it("a second SIGTERM during the start ends it at once, exit 1", NO_PROC, async (t) => {
    const { gw } = await caught(t, 1, ({ gw }) => listening(gw));
    gw.child.kill("SIGTERM");
    gw.child.kill("SIGINT");
    gw.child.kill("SIGCONT");
    const { code, signal } = await within(gw.ended, "the end");
    assert.deepEqual([code, signal], [1, null]);
  });

  it("commands that serve nothing are ended by signals as ever", NO_PROC, async (t) => {
    const dir = folder();
    const file = join(dir, "gateway.json");
    writeFileSync(file, JSON.stringify(demo({ data_dir: join(dir, "data") })));
    const sync = run(t, ["usage", "sync", "--config", file]);
    await waitFor(() => existsSync(join(dir, "data", "spend")), "the sync to begin");
    sync.child.kill("SIGHUP");
    const end = await within(sync.ended, "the end");
    assert.deepEqual([end.code, end.signal], [null, "SIGHUP"]);
    assert.equal((await ended(t, ["check", "--config", file])).code, 0);
  });
});

describe("a change of the configuration during the start", () => {
  for (const workers of [1, 2]) {
    it(
      `is put in force soon after it listens (${workers === 1 ? "one process" : "two workers"})`,
      NO_PROC,
      async (t) => {
        // The folder is made when the configuration has been read; the keys are read after that.
        const { gw, file, text } = await caught(t, workers, ({ data }) =>
          waitFor(() => existsSync(join(data, "spend")), "the configuration to be read"),
        );
        replace(file, text({ keys: [{ account: "later", key: "sk-later" }] }));
        gw.child.kill("SIGCONT");
        const url = await gw.address();
        const status = await until(async () => {
          const response = await fetch(`${url}/v1/models`, {
            headers: { authorization: "Bearer sk-later" },
          });
          await response.text();
          return response.status === 200 && response.status;
        }, "the new key to be valid");
        assert.equal(status, 200);
      },
    );
  }
});
