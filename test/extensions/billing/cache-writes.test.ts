// What was written to a provider's cache: what the client is told of it, what it costs, and that
// every place that shows tokens by class shows it.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  configFile,
  costOf,
  handMade,
  openLine,
  priced,
  settleLine,
  settles,
  textOf,
  usageFile,
  usageRecords,
} from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { demo, readStream, user } from "../../support/gateway.ts";
import {
  chunk,
  completion,
  status,
  stream,
  usageChunk,
  type Behaviour,
} from "../../support/provider.ts";
import { runHere } from "../../support/run-here.ts";
import { within } from "../../support/wait.ts";

const PRICE = {
  input_cache_hit: 0.3,
  input_cache_miss: 3,
  input_cache_write: 3.75,
  output: 15,
};
const STATED = {
  prompt_tokens: 100,
  completion_tokens: 7,
  total_tokens: 107,
  prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 50 },
};
const writing: Behaviour = (asked) =>
  asked.body["stream"]
    ? stream([chunk({ content: "Fine." }), chunk({}, "stop"), usageChunk(STATED)])(asked)
    : status(200, completion({ content: "Fine." }, "stop", { usage: STATED }))(asked);

describe("cache writes", () => {
  it("are told to the client, billed at their price, and in every record", async (t) => {
    const { dir, gw, config, ask } = await priced(
      t,
      { m: writing },
      { models: { m: { price: PRICE } }, admin: { port: 0 } },
    );
    const { usage } = JSON.parse((await ask()).text);
    assert.deepEqual(
      [usage.prompt_cache_miss_tokens, usage.prompt_tokens_details],
      [80, { cached_tokens: 20, cache_write_tokens: 50 }],
    );
    const streamed = await readStream(
      await gw.chat({
        model: "m",
        messages: user("hi"),
        stream: true,
        stream_options: { include_usage: true },
      }),
    );
    assert.deepEqual(streamed.chunks.at(-1)!["usage"], usage);
    const [settle] = settles(dir);
    assert.equal(settle!["usage"].cache_write_tokens, 50);
    // 20 x 0.3 + 30 x 3 + 50 x 3.75 + 7 x 15, in millionths
    assert.equal(settle!["cost"], "0.0003885");
    assert.equal(settle!["cost"], costOf(settle!["usage"], PRICE));

    const admin = gw.gateway.adminAddress();
    const metrics = await (await fetch(`${admin}/metrics`)).text();
    assert.match(
      metrics,
      /gen_ai_client_token_usage_sum\{gen_ai_token_type="cache_write",[^}]*\} 100\n/,
    );
    await within(gw.gateway.close(0), "the gateway to close");
    assert.deepEqual(
      usageRecords(dir).map(({ cache_write_tokens }) => cache_write_tokens),
      [50, 50],
    );
    const month = settle!["time"].slice(0, 7);
    const file = configFile({ ...config, keys: [] });
    const args = ["billing", "statement", "--account", settle!["account"], "--month", month];
    const statement = async (format: string) =>
      (await runHere([...args, "--format", format, "--config", file])).stdout;
    const { total } = JSON.parse(await statement("json"));
    assert.deepEqual([total.cache_write_tokens, total.cost], [100, "0.000777"]);
    const [head, ...rows] = (await statement("csv")).trimEnd().split("\r\n");
    assert.equal(head!.split(",").at(-1), "cache_write_tokens");
    assert.deepEqual(
      rows.map((row) => row.split(",").at(-1)),
      ["50", "50"],
    );
    const audit = await runHere(["audit", "--config", file]);
    assert.equal(audit.code, 0, audit.stdout + audit.stderr);
  });

  it("are 0 in records of earlier versions, and the books stay proved", async () => {
    const dir = folder();
    const time = "2026-01-05T00:00:00.000Z";
    const about = { time, account: "acme" };
    handMade(
      dir,
      "2026-01-05.0001.jsonl",
      textOf([openLine(1, about), settleLine(1, about)]),
      "let go",
    );
    const file = configFile(demo({ data_dir: dir }));
    const run = (...args: string[]) => runHere([...args, "--config", file]);
    assert.equal((await run("usage", "sync", "--once")).code, 0);
    // The record as an earlier version wrote it.
    const path = usageFile(dir, "2026-01");
    const text = readFileSync(path, "utf8").replace(',"cache_write_tokens":0', "");
    writeFileSync(path, text);
    const cursorFile = join(dir, "usage", "cursor.json");
    const cursor = JSON.parse(readFileSync(cursorFile, "utf8"));
    cursor.months["2026-01"] = text.length;
    writeFileSync(cursorFile, JSON.stringify(cursor));

    const statement = ["billing", "statement", "--account", "acme", "--month", "2026-01"];
    const csv = await run(...statement, "--format", "csv");
    assert.match(csv.stdout, /,cache_write_tokens\r\n.*,0\r\n$/);
    const json = await run(...statement, "--format", "json");
    assert.equal(JSON.parse(json.stdout).total.cache_write_tokens, 0);
    const audit = await run("audit");
    assert.equal(audit.code, 0, audit.stdout + audit.stderr);
    const rebuilt = await run("books", "rebuild", "--json");
    assert.equal(JSON.parse(rebuilt.stdout).unchanged, 1, rebuilt.stdout);
  });
});
