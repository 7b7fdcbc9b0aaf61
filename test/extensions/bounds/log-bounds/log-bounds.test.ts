// A log whose reader is too slow, alone and in a gateway: the backlog is bounded, and dropped lines
// are counted and reported.

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import net from "node:net";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { createLineLog } from "../../../../src/core/http/line-log.ts";
import { boundLog, MAX_BACKLOG } from "../../../../src/extensions/bounds/log-bounds/index.ts";
import { configFile } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { demo, startGateway } from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import { launch, quickest } from "../../../support/program.ts";
import { until, waitFor, within } from "../../../support/wait.ts";

/** A reader of a log that reads nothing until resume() is called. */
function createStalledReader() {
  const stream = new PassThrough({ encoding: "utf8", decodeStrings: false });
  let text = "";
  stream.on("data", (chunk: string) => (text += chunk)).pause();
  return {
    stream,
    /** The lines read so far. */
    lines: () => text.split("\n").filter((line) => line !== ""),
    /** From now on it reads everything. */
    resume: () => stream.resume(),
  };
}

/** The number of lines that a log dropped, from the metrics. */
async function droppedFrom(admin: string, log: string): Promise<number> {
  const metrics = await (await fetch(`${admin}/metrics`)).text();
  const found = new RegExp(`^chat_gateway_log_lines_dropped_total\\{log="${log}"\\} (\\d+)$`, "m");
  return Number(found.exec(metrics)?.[1] ?? 0);
}

describe("the gateway's logs", () => {
  it("a diagnostics log with a stalled reader later says how many lines were dropped", async (t) => {
    const reader = createStalledReader();
    const gateway = await startGateway(t, demo(), { diagnostics: reader.stream });
    for (let at = 0; at < 10_000; at += 1) {
      gateway.gateway.diagnose({ event: "test", level: "info", text: "x".repeat(1_000) });
      if (at % 100 === 99) await new Promise(setImmediate);
    }
    const waiting = reader.stream.writableLength;
    assert.ok(waiting <= MAX_BACKLOG && waiting > MAX_BACKLOG * 0.9, `${waiting} are kept`);
    const admin = gateway.gateway.adminAddress()!;
    const dropped = await droppedFrom(admin, "diagnostics");
    assert.ok(dropped > 1_000, `${dropped} dropped`);
    assert.equal(await droppedFrom(admin, "access"), 0);
    reader.resume();
    const told = () => reader.lines().filter((line) => line.includes("log_lines_dropped"));
    await waitFor(() => told()[0], "the line that tells of it");
    gateway.gateway.diagnose({ event: "test", level: "info", text: "it goes on" });
    await waitFor(() => reader.lines().at(-1)!.includes("it goes on"), "the next line");
    const [{ time: _, ...recovered }, ...others] = told().map((line) => JSON.parse(line));
    const about = { event: "log_lines_dropped", level: "warn", log: "diagnostics" };
    assert.deepEqual([recovered, others], [{ ...about, lines: dropped }, []]);
    const kept = reader.lines().map((line) => JSON.parse(line).text?.length);
    assert.equal(kept.filter((length) => length === 1_000).length + dropped, 10_000);
  });

  for (const workers of LONG ? [1, 2] : [2]) {
    it(`an unread access log of ${workers} process(es) keeps a bounded backlog, and reports dropped lines`, async (t) => {
      const file = configFile(demo({ data_dir: folder(), server: { workers } }));
      const program = quickest(folder());
      const { child, address, admin, stderr, ended } = launch(program, ["--config", file]);
      t.after(() => child.kill("SIGKILL"));
      const port = Number(new URL(await within(address, "the gateway to listen")).port);
      const metricsAt = admin();
      let lines = 0;
      child.stdout!.on("data", (text: string) => (lines += text.split("\n").length - 1));
      child.stdout!.pause(); // a new listener would make it flow
      const count = 11_000;
      const head = `GET /${"p".repeat(700)} HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${"i".repeat(255)}`;
      const socket = net.connect(port, "127.0.0.1");
      t.after(() => socket.destroy());
      let answers = 0;
      const count404 = (text: string) => (answers += text.split("HTTP/1.1 404").length - 1);
      socket.setEncoding("latin1").on("data", count404);
      socket.write(`${head}\r\n\r\n`.repeat(count));
      await waitFor(() => answers >= count * 0.9, "the answers");
      // The reader may fall behind again while the last lines arrive, which is reported again.
      const toldOf = () =>
        stderr()
          .split("\n")
          .filter((line) => line.includes("log_lines_dropped"))
          .reduce((sum, line) => sum + Number(JSON.parse(line).lines), 0);
      const readDropped = async () => droppedFrom(metricsAt, "access");
      await until(async () => (await readDropped()) > 1_000, "lines to be dropped");
      child.stdout!.resume();
      await waitFor(
        () => toldOf() > 0 && lines + toldOf() === count,
        "each line to be written, or told as dropped",
      );
      assert.equal(await readDropped(), toldOf());
      child.kill("SIGTERM");
      assert.equal((await within(ended, "the end")).code, 0);
    });
  }
});

it("a long path in the access log is cut at 512 characters, and marked as cut", async (t) => {
  const gateway = await startGateway(t, demo());
  for (const [id, length] of [
    ["longest", 511],
    ["longer", 512],
  ] as const) {
    await fetch(`${gateway.url}/${"p".repeat(length)}`, { headers: { "x-request-id": id } });
    const { path } = await gateway.accessOf(id);
    assert.equal(path, length < 512 ? `/${"p".repeat(length)}` : `/${"p".repeat(511)}\u2026`);
  }
});

describe("a line log", () => {
  it("counts lines that cannot be written, and continues once another reader opens the pipe", () => {
    const written: ((error?: Error) => void)[] = [];
    const texts: string[] = [];
    const write = (text: string, done: () => void) => {
      texts.push(text);
      written.push(done);
    };
    const out: any = Object.assign(new EventEmitter(), { writableLength: 0, write });
    let lost = 0;
    const log = boundLog(out, { dropped: () => (lost += 1), recovered: (n) => assert.equal(n, 2) });
    log("one\ntwo\n");
    out.writableLength = MAX_BACKLOG;
    log("three\n");
    out.writableLength = 1;
    log("four\n"); // all are dropped until the backlog is empty: one gap, not many
    written[0]!(new Error("EPIPE"));
    out.writableLength = 0;
    log("five\n");
    written[1]!(new Error("EPIPE"));
    assert.deepEqual([lost, written.length], [5, 2]);
    log("six\n");
    written[2]!();
    log("seven\n");
    // The disk may have been full in the middle of a line: the next one must not continue it.
    assert.deepEqual(texts, ["one\ntwo\n", "\nfive\n", "\nsix\n", "seven\n"]);
  });

  it("drops nothing for a reader that keeps up, however much one turn writes", async () => {
    const reader = createStalledReader();
    reader.resume();
    const write = boundLog(reader.stream, {
      dropped: () => assert.fail("a line was dropped"),
      recovered: () => assert.fail("nothing was dropped"),
    });
    const log = createLineLog(write);
    for (let at = 0; at < 20_000; at += 1) log.write({ at, text: "x".repeat(1_000) });
    await new Promise(setImmediate);
    assert.equal(reader.lines().length, 20_000);
  });
});
