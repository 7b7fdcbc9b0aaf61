// When the spend log cannot be written nobody gets an answer that could not be billed: requests are
// refused before a provider is called, what is on its way waits with its last byte, and all goes on
// by itself when there is room again.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import {
  configFile,
  entries,
  only,
  priced,
  segmentPath,
  segments,
  settles,
  usageRecords,
} from "../../support/books.ts";
import { ended } from "../../support/command.ts";
import { folder } from "../../support/folder.ts";
import { configFor, demo, startGateway, user, type RunningGateway } from "../../support/gateway.ts";
import { launch, quickest } from "../../support/program.ts";
import { held, silent, speak, startProvider } from "../../support/provider.ts";
import { until, waitFor, within } from "../../support/wait.ts";

const get = async (url: string) => {
  const response = await fetch(url);
  return { status: response.status, text: await response.text(), headers: response.headers };
};

/** What the gateway's operator sees: readiness, liveness, /status and /metrics. */
async function seen({ url, gateway }: RunningGateway) {
  const admin = gateway.adminAddress();
  const [ready, alive, status, metrics] = await Promise.all([
    get(`${url}/readyz`),
    get(`${url}/healthz`),
    get(`${admin}/status`),
    get(`${admin}/metrics`),
  ]);
  return {
    ready: ready.status,
    alive: alive.status,
    fault: JSON.parse(status.text).spend.fault as string | null,
    writable: /^chat_gateway_spend_log_writable (\d)$/m.exec(metrics.text)?.[1],
  };
}
const WELL = { ready: 200, alive: 200, fault: null, writable: "1" };

async function assertFault(gw: RunningGateway): Promise<void> {
  const { fault, ...rest } = await seen(gw);
  assert.deepEqual(rest, { ready: 503, alive: 200, writable: "0" });
  assert.match(fault ?? "", /^[A-Z]{4,}: /, "what the system said");
}

async function assertRefused(gw: RunningGateway, body: object = {}): Promise<void> {
  const response = await gw.chat({ model: "m", messages: user("hi"), ...body });
  assert.equal(response.status, 503);
  assert.match(response.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
  const { error } = (await response.json()) as { error: Record<string, unknown> };
  assert.deepEqual(
    [error["type"], error["code"], error["param"]],
    ["service_unavailable_error", "server_overloaded", null],
  );
  assert.doesNotMatch(JSON.stringify(error), /spend|ENO|\//, "nothing of the inside");
}

/** Asks for the readiness again and again until it is there. */
const recovered = (gw: RunningGateway): Promise<unknown> =>
  until(
    async () => (await get(`${gw.url}/readyz`)).status === 200,
    "the gateway to be ready again",
  );

describe("a data_dir that cannot be made", { concurrency: 4 }, () => {
  /**
   * `path`: where, seen from a folder, data_dir is to be; `obstacle`: the file that is in the way.
   */
  const CASES: [name: string, path: string, obstacle: string][] = [
    ["a file stands in its place", "data", "data"],
    ["a file stands in its parent's place", "there/data", "there"],
    ["a file stands in the place of its spend folder", "data", "data/spend"],
  ];
  for (const [name, path, obstacle] of CASES) {
    it(`${name}: refused without asking a provider; away: goes on by itself`, async (t) => {
      const at = folder();
      if (obstacle.includes("/")) mkdirSync(join(at, "data"));
      writeFileSync(join(at, obstacle), "in the way");
      const provider = await startProvider(t, { m: speak("Hi.") });
      const gw = await startGateway(
        t,
        configFor(provider.url, ["m"], { data_dir: join(at, path), usage: { sync_ms: 50 } }),
      );
      await assertFault(gw);
      await assertRefused(gw);
      await assertRefused(gw, { stream: true });
      assert.equal(provider.asked.length, 0);
      const told = gw.diagnostics.filter(({ event }) => event === "spend_log_failed");
      assert.ok(told.length === 1 && told[0]!["level"] === "error", JSON.stringify(told));
      unlinkSync(join(at, obstacle));
      await recovered(gw);
      assert.deepEqual(await seen(gw), WELL);
      assert.equal((await gw.chat({ model: "m", messages: user("hi") })).status, 200);
      assert.ok(gw.diagnostics.some(({ event }) => event === "spend_log_recovered"));
      await gw.gateway.close(0);
      assert.deepEqual(
        entries(join(at, path)).map(({ settle }) => settle["status"]),
        ["completed"],
        "what was refused stands in no book",
      );
      assert.equal(usageRecords(join(at, path)).length, 1);
    });
  }

  it("the spend folder is moved away while it runs: it goes on in a new segment, in its place", async (t) => {
    const { dir, gw, ask } = await priced(t, { m: speak("Hi.") }, { usage: { sync_ms: 50 } });
    renameSync(join(dir, "spend"), join(dir, "elsewhere"));
    await waitFor(() => segments(dir).length > 0, "a new segment");
    await recovered(gw);
    assert.equal((await ask()).status, 200);
    assert.equal(only(dir).settle["status"], "completed");
  });

  for (const what of ["spend", ""]) {
    it(`${what || "all of data_dir"} is deleted while it runs: it goes on in the same segment, which has all again`, async (t) => {
      const { dir, gw, ask } = await priced(t, { m: speak("Hi.") }, { usage: { sync_ms: 50 } });
      await ask();
      const before = segments(dir);
      rmSync(join(dir, what), { recursive: true });
      await waitFor(() => segments(dir).length > 0, "the segment");
      assert.deepEqual(segments(dir), before);
      await recovered(gw);
      assert.equal((await ask()).status, 200);
      assert.deepEqual(
        entries(dir).map(({ settle }) => settle["status"]),
        ["completed", "completed"],
      );
    });
  }
});

/** Mounts a file system of 512 KiB there; whether the system lets us. */
const mountSmallDisk = (path: string): boolean =>
  spawnSync("mount", ["-t", "tmpfs", "-o", "size=512k", "none", path]).status === 0;
const unmount = (path: string) => spawnSync("umount", ["-l", path]);

function cannotMount(): string | false {
  const path = folder();
  if (!mountSmallDisk(path)) return "the system lets this user mount no file system: it takes root";
  unmount(path);
  return false;
}

describe("a full disk", { concurrency: 2, skip: cannotMount() }, () => {
  /** Takes all the room that is left; the way to give it back. */
  function fill(path: string): () => void {
    const file = join(path, "filler");
    const fd = openSync(file, "a");
    for (const size of [65_536, 4_096, 1]) {
      try {
        for (;;) writeSync(fd, Buffer.alloc(size));
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
      }
    }
    closeSync(fd);
    return () => unlinkSync(file);
  }

  async function onSmallDisk(t: TestContext) {
    const disk = folder();
    assert.ok(mountSmallDisk(disk));
    const slow = [held(), held()];
    const provider = await startProvider(t, {
      m: speak("Hi."),
      slow: slow[0]!.behaviour,
      slow2: slow[1]!.behaviour,
      silent,
    }).catch((error) => {
      unmount(disk);
      throw error;
    });
    const config = configFor(provider.url, ["m", "slow", "slow2", "silent"], {
      data_dir: join(disk, "data"),
      usage: { sync_ms: 50 },
    });
    const gw = await startGateway(t, config).catch((error) => {
      unmount(disk);
      throw error;
    });
    t.after(() => {
      unmount(disk);
    }); // after the gateway has closed
    return { disk, dir: join(disk, "data"), provider, gw, config, slow };
  }

  /**
   * Asks until a line cannot be written: how many were answered before (in the room that was left
   * of the last page), and the status of the last one, which is refused if it was its open line,
   * and has to wait if it was its settle line.
   */
  async function untilFault(
    gw: RunningGateway,
  ): Promise<{ answered: number; last: Promise<number> }> {
    const fault = waitFor(
      () => gw.diagnostics.some(({ event }) => event === "spend_log_failed"),
      "the spend log's fault",
    ).then(() => "fault");
    for (let answered = 0; ; answered += 1) {
      const last = gw.chat({ model: "m", messages: user("hi") }).then(async (response) => {
        await response.text();
        return response.status;
      });
      last.catch(() => undefined);
      if ((await Promise.race([last, fault])) !== 200) return { answered, last };
    }
  }

  it("refuses without asking a provider, holds back the last byte of what is on its way, and loses nothing", async (t) => {
    const world = await onSmallDisk(t);
    const { disk, dir, provider, gw, config, slow } = world;
    await (await gw.chat({ model: "m", messages: user("hi") })).text();
    const streams = await Promise.all(
      ["slow", "slow2"].map((model) => gw.chat({ model, stream: true, messages: user("hi") })),
    );
    const texts = streams.map(() => "");
    const whole = streams.map(async (response, at) => {
      const decoder = new TextDecoder();
      for await (const piece of response.body!)
        texts[at] += decoder.decode(piece as Uint8Array, { stream: true });
      return texts[at]!;
    });
    whole.forEach((each) => {
      each.catch(() => undefined);
    }); // waited for below
    const giveBack = fill(disk);
    const { answered, last } = await untilFault(gw);
    const asked = provider.asked.length;
    await assertFault(gw);
    await assertRefused(gw);
    slow.forEach(({ finish }) => {
      finish();
    });
    await waitFor(() => texts.every((text) => text.includes('"ne."')), "the last words");
    await assertFault(gw);
    await assertRefused(gw, { stream: true });
    assert.ok(
      texts.every((text) => !text.includes("[DONE]") && !text.includes('"stop"')),
      "the end waits for the books",
    );
    assert.doesNotMatch(readFileSync(segmentPath(dir), "utf8"), /"type":"settle"[^\n]*"slow2?"/);
    assert.equal(provider.asked.length, asked, "what is refused is not asked of a provider");

    giveBack();
    const served =
      answered +
      ((await within(last, "the answer of the one whose line could not be written")) === 200
        ? 1
        : 0);
    assert.equal(
      asked,
      3 + served,
      "an open line that cannot be written keeps its request from the provider",
    );
    for (const text of await within(Promise.all(whole), "the ends of the streams"))
      assert.match(text, /data: \[DONE\]\n\n$/);
    assert.equal(
      settles(dir).filter(
        (each) => each["model_served"]?.startsWith("slow") && each["status"] === "completed",
      ).length,
      2,
      "they came with their lines",
    );
    await recovered(gw);
    assert.equal((await gw.chat({ model: "m", messages: user("hi") })).status, 200);
    assert.deepEqual(await seen(gw), WELL);
    const { code, stdout } = await ended(t, ["audit", "--json", "--config", configFile(config)]);
    const audit = JSON.parse(stdout);
    assert.deepEqual([code, audit.ok, audit.differences, audit.in_flight], [0, true, [], 0]);
    const found = entries(dir);
    assert.equal(
      found.filter(({ settle }) => settle["status"] === "completed").length,
      1 + 2 + served + 1,
    );
    assert.ok(
      found.every(
        ({ settle }) =>
          settle["status"] === "completed" ||
          (settle["status"] === "failed" &&
            settle["cost"] === "0" &&
            settle["attempts"].length === 0),
      ),
    );
    await gw.gateway.close(0);
  });

  it("a gateway that is stopped on a full disk: what it could not settle is settled by the next", async (t) => {
    const world = await onSmallDisk(t);
    const { disk, dir, provider, gw, config } = world;
    const cut = gw.chat({ model: "silent", messages: user("hi") }).catch(() => undefined);
    await provider.nth(0);
    const giveBack = fill(disk);
    const { answered } = await untilFault(gw);
    await within(gw.gateway.close(0), "the gateway to close");
    await cut;
    giveBack();
    const next = await startGateway(t, config);
    await waitFor(
      () => settles(dir).some((each) => each["model_requested"] === "silent"),
      "what was left to be settled",
    );
    await next.gateway.close(0);
    const found = entries(dir);
    assert.equal(found.filter(({ settle }) => settle["status"] === "completed").length, answered);
    assert.equal(found.filter(({ settle }) => settle["model_requested"] === "silent").length, 1);
    assert.deepEqual(
      usageRecords(dir)
        .map(({ usage_id }) => usage_id)
        .sort(),
      found.map(({ settle }) => settle["spend_id"]).sort(),
    );
  });
});

it("a gateway whose working folder is deleted serves on, and ends when it is told to", async (t) => {
  const cwd = folder();
  writeFileSync(join(cwd, "gateway.json"), JSON.stringify(demo({ usage: { sync_ms: 20 } })));
  const gw = launch({ ...quickest(folder()), cwd }, []);
  t.after(() => gw.child.kill("SIGKILL"));
  const url = await within(gw.address, "the gateway to listen");
  rmSync(cwd, { recursive: true });
  await waitFor(
    () => existsSync(join(cwd, "data", "spend")),
    "its data_dir, an absolute path by then, to be made anew",
  );
  assert.equal((await get(`${url}/healthz`)).status, 200);
  gw.child.kill("SIGTERM");
  assert.equal((await within(gw.ended, "the end")).code, 0);
});
