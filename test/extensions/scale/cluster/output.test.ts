// The lines of a worker's output, as the first process reads them, and as they leave it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { constants, openSync, writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { MAX_LINE, readLines } from "../../../../src/extensions/scale/cluster/output.ts";
import { lines } from "../../../support/command.ts";
import { folder } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { launch, quickest } from "../../../support/program.ts";
import { todays } from "../../../support/todays.ts";
import { waitFor, within } from "../../../support/wait.ts";
import { send, whole } from "./bench.ts";

async function linesOf(...pieces: readonly (string | Buffer)[]): Promise<string[]> {
  const output = new PassThrough();
  const found: string[] = [];
  readLines(output, (line) => found.push(line));
  for (const piece of pieces) output.write(piece);
  output.end();
  await within(once(output, "end"), "the end of the output");
  return found;
}

describe("the output of a worker", () => {
  it("is cut at line ends only: what JSON may hold ends no line", async () => {
    const record = JSON.stringify({ detail: "one\u2028two\u2029three\rfour\u0085five" });
    assert.deepEqual(await linesOf(`${record}\n${record}\n`), [record, record]);
  });

  it("is the same however its bytes come", async () => {
    const bytes = Buffer.from("é\u2028\n\nlast");
    const single = Array.from(bytes, (byte) => Buffer.from([byte]));
    assert.deepEqual(await linesOf(...single), ["é\u2028", "last"]);
  });

  it("keeps no more of a line without an end than its bound", async () => {
    const most = "x".repeat(MAX_LINE);
    assert.deepEqual(await linesOf(most, "\n"), [most]);
    assert.deepEqual(await linesOf(`${most}x`, "rest\n"), [`${most}x`, "rest"]);
  });
});

describe("the access log of several workers", () => {
  for (const how of todays(["reads on", "lags behind, so that the pipe is full"] as const, 2))
    it(`is whole lines, each request's once, through a pipe whose reader ${how}`, async (t) => {
      const place = folder();
      const pipe = join(place, "pipe");
      execFileSync("mkfifo", [pipe]);
      const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
      const reader = new Socket({ fd, readable: true, writable: false });
      t.after(() => reader.destroy());
      let text = "";
      reader.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      const config = join(place, "gateway.json");
      writeFileSync(config, JSON.stringify(demo({ server: { workers: 3 }, data_dir: folder() })));
      const command = ["sh", "-c", 'exec "$@" >"$0"', pipe, process.execPath];
      const gw = launch({ ...quickest(place), command }, ["--config", config]);
      t.after(async () => {
        gw.child.kill("SIGKILL");
        await gw.ended;
      });
      const address = await waitFor(() => /listens on (\S+) /.exec(text)?.[1], "the address");
      if (how !== "reads on") reader.pause();
      const ids = Array.from({ length: 500 }, (_, serial) => `${serial} `.padEnd(512, '"\\long'));
      const todo = [...ids];
      const client = async () => {
        for (let id = todo.pop(); id !== undefined; id = todo.pop())
          await whole(send(`${address}/v1/models`, undefined, { key: "sk-demo", id }));
      };
      await Promise.all(Array.from({ length: 24 }, client));
      reader.resume();
      const [, ...log] = await waitFor(
        () => text.endsWith("\n") && lines(text).length >= 501 && lines(text),
        "500 lines",
      );
      const records = log.map((line) => JSON.parse(line));
      assert.deepEqual(records.map(({ request_id }) => request_id).sort(), [...ids].sort());
      assert.ok(records.every((record) => record.status === 200));
    });
});
