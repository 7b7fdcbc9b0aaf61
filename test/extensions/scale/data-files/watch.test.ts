// Files that an operator names: watched cheaply, read without blocking the event loop, and only if
// they are regular files of a plausible size.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { sha256 } from "../../../../src/core/hash.ts";
import { createKeyring } from "../../../../src/core/accounts/keyring.ts";
import { readKeys, watchKeys } from "../../../../src/extensions/operations/keys/created-keys.ts";
import { checkConfig } from "../../../support/config.ts";
import { watchFile, type ReadResult } from "../../../../src/extensions/scale/data-files/watch.ts";
import { lines, run } from "../../../support/command.ts";
import { folder, replace } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import { writeManyKeys } from "../../../support/many-keys.ts";
import { runHere } from "../../../support/run-here.ts";
import { settled, until, waitFor } from "../../../support/wait.ts";
import { busyMs } from "../../../support/effort.ts";

const MANY = LONG ? 100_000 : 30_000;
const NO_PROC = { skip: !fs.existsSync("/proc/self/io") && "this takes Linux's /proc" };

/** A configuration file in a new folder, with its data_dir. */
function place(over: object = {}) {
  const dir = folder();
  const data = join(dir, "data");
  fs.mkdirSync(data);
  const file = join(dir, "gateway.json");
  const text = JSON.stringify(demo({ data_dir: data, ...over }));
  fs.writeFileSync(file, text);
  return { dir, data, file, text, keys: join(data, "keys.json") };
}

/** The bytes that a process has read from files so far. */
const bytesRead = (pid: number | undefined): number =>
  Number(/^rchar: (\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);

/** The digest of a file's content. Null: there is no file. */
const stateOf = (file: string): string | null =>
  fs.existsSync(file) ? sha256(fs.readFileSync(file)) : null;

/** What a watcher reports about a file. `then` is called each time. */
function watched(t: TestContext, file: string, then: (told: readonly string[]) => void = () => {}) {
  const told: string[] = [];
  const watcher = watchFile(
    file,
    (found: ReadResult) => {
      told.push("error" in found ? String(found.error.message) : found.bytes.toString());
      then(told);
    },
    { knownState: stateOf(file) },
  );
  t.after(() => watcher.close());
  return told;
}

describe("a watched file", () => {
  it("of the same size and modification time but other content is a change", async (t) => {
    const { file } = place();
    fs.writeFileSync(file, "one");
    const told = watched(t, file);
    const { atime, mtime } = fs.statSync(file);
    for (const text of ["two", "six"]) {
      fs.writeFileSync(file, text);
      fs.utimesSync(file, atime, mtime);
      await waitFor(() => told.at(-1) === text, `the change to "${text}"`);
    }
    assert.deepEqual(told, ["two", "six"]);
  });

  it("written again at the moment when the previous change was noticed is a change", async (t) => {
    const { file } = place();
    fs.writeFileSync(file, "000");
    const told = watched(t, file, ({ length }) => {
      if (length < 5) fs.writeFileSync(file, `00${length + 1}`);
    });
    fs.writeFileSync(file, "001");
    await waitFor(() => told.length === 5, "five changes");
    assert.deepEqual(told, ["001", "002", "003", "004", "005"]);
  });

  it("touched, or replaced by one with the same content, is not a change", async (t) => {
    const { file, text } = place();
    const told = watched(t, file);
    fs.utimesSync(file, new Date(), new Date());
    replace(file, text);
    const control = watched(t, join(file, "..", "control.json"));
    fs.writeFileSync(join(file, "..", "control.json"), "new");
    await waitFor(() => control.length > 0, "a look at a file that was made at the same time");
    assert.deepEqual(told, []);
    replace(file, "other");
    await waitFor(() => told.length > 0, "the real change");
    assert.deepEqual(told, ["other"]);
  });
});

const fifo = (path: string) => {
  fs.rmSync(path, { force: true });
  execFileSync("mkfifo", [path]);
};
const makeLarge = (path: string) => {
  fs.writeFileSync(`${path}.large`, "");
  fs.truncateSync(`${path}.large`, 600 * 1024 ** 2);
  fs.renameSync(`${path}.large`, path);
};

it("a file that is missing or not regular is reported once, and read once it is back; one that never existed is not reported", async (t) => {
  const { dir, file } = place();
  fs.writeFileSync(file, "one");
  const told = watched(t, file);
  const never = watched(t, join(dir, "never"));
  for (const [make, expected] of [
    [fs.rmSync, /^ENOENT: no such file .*gateway\.json/],
    [(path: string) => fs.writeFileSync(path, "one"), /^one$/],
    [fifo, /^it is a FIFO, not a regular file$/],
    [makeLarge, /^it has more than 16777216 bytes$/],
    [(path: string) => replace(path, "two"), /^two$/],
  ] as const) {
    const before = told.length;
    make(file);
    await waitFor(() => told.length > before, String(expected));
    assert.equal(told.length, before + 1);
    assert.match(told.at(-1)!, expected);
  }
  assert.deepEqual(never, []);
});

describe("something else in place of a file", () => {
  it("a FIFO, a device or a too large configuration: check says so at once, exit 1", async () => {
    const { dir } = place();
    const [pipe, large] = [join(dir, "pipe"), join(dir, "large")];
    fifo(pipe);
    makeLarge(large);
    for (const [file, why] of [
      [pipe, "it is a FIFO, not a regular file"],
      ["/dev/zero", "it is a device, not a regular file"],
      [large, "it has more than 16777216 bytes"],
      [dir, "EISDIR"],
    ]) {
      const { code, stderr } = await runHere(["check", "--config", file!]);
      assert.deepEqual([code, stderr], [1, `chat-gateway: cannot read ${file}: ${why}\n`]);
    }
  });

  it("certificates and created keys that are FIFOs are reported, and nothing hangs", async () => {
    const dir = folder();
    const [pipe, data] = [join(dir, "pipe"), join(dir, "data")];
    fifo(pipe);
    const { file } = place({ server: { port: 0, tls: { cert_file: pipe, key_file: pipe } } });
    const found = await runHere(["check", "--config", file]);
    const why = `${pipe} cannot be read: it is a FIFO, not a regular file`;
    assert.deepEqual(
      [found.code, lines(found.stderr)],
      [1, ["cert", "key"].map((of) => `chat-gateway: server.tls.${of}_file: ${why}`)],
    );
    fs.mkdirSync(data);
    fifo(join(data, "keys.json"));
    const keys = await runHere(["keys", "list", "--config", place({ data_dir: data }).file]);
    assert.deepEqual([keys.code, /keys\.json: it is a FIFO/.test(keys.stderr)], [1, true]);
  });
});

describe(`${MANY} created keys`, () => {
  const SILENT = { changed: () => undefined, diagnose: () => undefined };

  /** The longest time between two turns of the event loop until `done`, in milliseconds. */
  async function longestTurn(done: () => boolean): Promise<number> {
    let longest = 0;
    let before = busyMs();
    await waitFor(() => {
      const now = busyMs();
      longest = Math.max(longest, now - before);
      before = now;
      return done();
    }, "the keys to be taken over");
    return longest;
  }

  it("are loaded without blocking the event loop as long as one read of them does", async (t) => {
    const { data, keys } = place();
    writeManyKeys(keys, 1);
    let changes = 0;
    const told: (object & { level?: string })[] = [];
    const store = watchKeys({
      dataDir: data,
      changed: () => {
        changes += 1;
      },
      diagnose: (event) => told.push(event),
    });
    t.after(() => store.close());
    const atOnce: number[] = [];
    const held: number[] = [];
    for (let round = 1; round <= 3; round += 1) {
      writeManyKeys(`${keys}.new`, MANY + round);
      const began = busyMs();
      readKeys(`${keys}.new`);
      atOnce.push(busyMs() - began);
      fs.renameSync(`${keys}.new`, keys);
      held.push(await longestTurn(() => changes === round));
      assert.equal(store.current().byDigest.size, MANY + round);
    }
    const faults = told.filter(({ level }) => level !== "info");
    assert.deepEqual(faults, []);
    t.diagnostic(`at once ${Math.min(...atOnce)} ms, the longest turn ${Math.min(...held)} ms`);
    assert.ok(Math.min(...held) < 0.75 * Math.min(...atOnce), `${held} ms, at once ${atOnce} ms`);
  });

  it("cost nothing when a new configuration is loaded, and still apply", (t) => {
    const { data, keys } = place();
    writeManyKeys(keys, MANY);
    const began = busyMs();
    const store = watchKeys({ dataDir: data, ...SILENT });
    const reading = busyMs() - began;
    t.after(() => store.close());
    const accounts = { "account-7": { rpm: null, max_in_flight: 3 } };
    const config = checkConfig(demo({ accounts, limits: { rpm: 5 } }));
    const start = busyMs();
    const build = () => createKeyring(config, store.current(), Date.now);
    const ring = Array.from({ length: 50 }, build).at(-1)!;
    const building = busyMs() - start;
    assert.ok(building < reading, `50 keyrings take ${building} ms, reading the keys ${reading}`);
    const { account, maxInFlight, limits } = ring.authenticate("Bearer sk-7");
    assert.deepEqual([account, maxInFlight, limits[0]?.rpm], ["account-7", 3, null]);
    assert.equal(ring.authenticate(`Bearer sk-${MANY - 1}`).limits[0]?.rpm, 5);
    assert.equal(ring.authenticate("Bearer sk-demo").account, "demo");
    assert.throws(() => ring.authenticate(`Bearer sk-${MANY}`), /not valid/);
    assert.equal(ring.accounts().size, 1_001);
  });

  it("report faults in keys.json with their index in the whole file", () => {
    const { data, keys } = place();
    writeManyKeys(keys, 5_000);
    const list = JSON.parse(fs.readFileSync(keys, "utf8"));
    list[10].account = "";
    list[4_321].rpm = -1;
    fs.writeFileSync(keys, JSON.stringify(list));
    assert.throws(
      () => watchKeys({ dataDir: data, ...SILENT }),
      /^Error: \S+keys\.json: \[10\]\.account: .*\n\S+keys\.json: \[4321\]\.rpm: [^\n]*$/,
    );
  });

  it(
    "are read when they have changed, and neither at every look nor for each /status of several workers",
    NO_PROC,
    async (t) => {
      const { file, keys } = place({ server: { port: 0, workers: 2 } });
      writeManyKeys(keys, MANY);
      const { size } = fs.statSync(keys);
      const gw = run(t, ["--config", file]);
      await gw.address();
      const admin = /admin on (http:[^\s;)]+)/.exec(gw.stdout())?.[1];
      const wholeReads = () => Math.floor(bytesRead(gw.child.pid) / (size / 8));
      await settled(wholeReads, "the reading of an unchanged file to stop", 2_000);
      // If the process was suspended, a look at a recently changed file may come in between.
      await until(async () => {
        const before = bytesRead(gw.child.pid);
        for (let count = 0; count < 5; count += 1) {
          const status = (await (await fetch(`${admin}/status`)).json()) as any;
          assert.equal(status.limits.accounts.length, 1_001);
        }
        return bytesRead(gw.child.pid) - before < size;
      }, `five answers for which less is read than the ${size} bytes of the file`);
    },
  );
});
