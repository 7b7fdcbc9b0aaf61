// The commands that say what an account owes and what became of a request id, checked against sums
// computed independently from the spend log; and all records of a request id while its process
// lives.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { acquireSocketLock } from "../../../../src/extensions/scale/data-files/index.ts";
import { traceRequest } from "../../../../src/extensions/money/billing/trace.ts";
import {
  configFile,
  COUNTED,
  handMade,
  openLine,
  segmentPath,
  settleLine,
  spendId,
  textOf,
  type Line,
} from "../../../support/books.ts";
import { assertFails, assertOneLine, lines, run } from "../../../support/command.ts";
import { folder } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { quickest } from "../../../support/program.ts";
import { runHere } from "../../../support/run-here.ts";
import { waitFor, within } from "../../../support/wait.ts";
import { siteOf } from "../usage/shared.ts";

/** Request ids, each with how a spreadsheet must read it (RFC 4180). */
const IDS = {
  "comma, comma": '"comma, comma"',
  'quote "quoted"': '"quote ""quoted"""',
  " leading": '" leading"',
  "trailing ": '"trailing "',
  "~{}[]\\n": "~{}[]\\n",
};

/** Requests of January 2026: [id, model, cost], and what differs from the others. */
const JANUARY: readonly (readonly [string, string | null, string, Line?])[] = [
  ["comma, comma", "n", "0.1"],
  [
    'quote "quoted"',
    "m",
    "12345678901.000000000001",
    { usage: { ...COUNTED, cache_write_tokens: 5 } },
  ],
  [" leading", null, "0"],
  ["trailing ", "m", "0.000000000009"],
  ["~{}[]\\n", "m", "0.25", { currency: "EUR" }],
  ['quote "quoted"', "m", "7", { account: "beta" }],
];

/** Books with two accounts, and a request of acme in each adjacent month. */
function made(): string {
  const dir = folder();
  const write = (month: string, requests: typeof JANUARY, first: number) => {
    const lines = requests.flatMap(([gateway_request_id, model_served, cost, over], index) => {
      const about: Line = { gateway_request_id, model_requested: "auto", model_served, cost };
      const time = `${month}-1${index}T12:00:00.000Z`;
      const { account = "acme" } = over ?? {};
      const open = openLine(first + index, { time, gateway_request_id, account });
      return [open, settleLine(first + index, { time, ...about, ...over })];
    });
    handMade(dir, `${month}-10.0001.jsonl`, textOf(lines), "let go");
  };
  write("2025-12", [["plain", "m", "1"]], 1);
  write("2026-01", JANUARY, 11);
  write("2026-02", [["plain", "m", "1"]], 21);
  return dir;
}

const sumsOf = (requests: number, cost: string, cache_write_tokens = 0, currency = "USD") => ({
  requests,
  prompt_cache_hit_tokens: 8 * requests,
  prompt_cache_miss_tokens: 12 * requests,
  cache_write_tokens,
  completion_tokens: 7 * requests,
  reasoning_tokens: 3 * requests,
  cost,
  currency,
});

/** This also closes past days, which the command reports on standard error. */
const copied = (config: string) => runHere(["usage", "sync", "--once", "--config", config]);
const statementOf = (config: string, ...more: string[]) => {
  const args = ["--account", "acme", "--month", "2026-01", "--config", config];
  return runHere(["billing", "statement", ...args, ...more]);
};

it("usage sync ends when its reader is gone", async (t) => {
  const sync = run(t, ["usage", "sync", "--config", configFile(demo({ data_dir: made() }))]);
  sync.child.stdout!.destroy();
  const { code, stderr } = await within(sync.ended, "the end");
  assert.equal(code, 1);
  assert.match(stderr, /^chat-gateway: write EPIPE$/m);
});

it("usage sync continues while its output has no room", {
  skip: !existsSync("/dev/full") && "this takes /dev/full, which only Linux has",
}, async (t) => {
  const command = ["sh", "-c", 'exec "$0" "$@" >/dev/full', process.execPath];
  const program = { ...quickest(folder()), command };
  const args = ["usage", "sync", "--config", configFile(demo({ data_dir: made() }))];
  const sync = run(t, args, { program });
  await waitFor(() => sync.stderr().includes("ENOSPC"), "the warning");
  sync.child.kill("SIGTERM");
  const { code } = await within(sync.ended, "the end");
  assert.equal(code, 0);
});

describe("billing statement", { concurrency: 2 }, () => {
  const config = configFile(demo({ data_dir: made() }));
  before(() => copied(config));

  it("json: the sums by model and in total", async () => {
    const { code, stdout } = await statementOf(config, "--format", "json");
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout), {
      account: "acme",
      month: "2026-01",
      currency: "USD",
      lines: [
        { model: "auto", ...sumsOf(1, "0") },
        { model: "m", ...sumsOf(2, "12345678901.00000000001", 5) },
        { model: "n", ...sumsOf(1, "0.1") },
      ],
      total: sumsOf(4, "12345678901.10000000001", 5),
      other_currencies: { EUR: 1 },
    });
  });

  it("csv: a line per request, in the order of the log", async () => {
    const { code, stdout } = await statementOf(config, "--format", "csv");
    assert.equal(code, 0);
    const [header, ...rows] = stdout.split("\r\n");
    assert.equal(
      header,
      "usage_id,gateway_request_id,account,key_id,model,provider,status,prompt_tokens," +
        "completion_tokens,total_tokens,prompt_cache_hit_tokens,prompt_cache_miss_tokens," +
        "reasoning_tokens,cost,currency,started_at,ended_at,cache_write_tokens",
    );
    const expected = JANUARY.slice(0, -1).map(([id, model, cost, over = {}], index) => {
      const about = [spendId(11 + index), IDS[id as keyof typeof IDS], "acme"];
      const served = ["key_0123456789abcdef", model ?? "auto", "lab", "completed"];
      const paid = [20, 7, 27, 8, 12, 3, cost, over["currency"] ?? "USD"];
      const times = ["2026-01-1", "T11:59:58.500Z,2026-01-1", "T12:00:00.000Z"].join(`${index}`);
      return [...about, ...served, ...paid, times, index === 1 ? 5 : 0].join(",");
    });
    assert.deepEqual(rows, [...expected, ""]);
  });

  it("in another currency has separate sums, in every format", async () => {
    const inEuro = (format: string) => statementOf(config, "--currency", "EUR", "--format", format);
    const { total, other_currencies } = JSON.parse((await inEuro("json")).stdout);
    assert.deepEqual([total, other_currencies], [sumsOf(1, "0.25", 0, "EUR"), { USD: 4 }]);
    assert.equal(lines((await inEuro("csv")).stdout).length, 2);
    const { stdout, stderr } = await inEuro("table");
    assert.match(stdout, /^acme, 2026-01, in EUR\n *model +requests .* cost\n/);
    assert.equal(lines(stdout).at(-1)!.trim().replace(/ +/g, " "), "total 1 8 12 0 7 3 0.25");
    const others = "4 requests were billed in USD and are not in these sums";
    assert.ok(stderr.includes(`${others}: --currency USD has them\n`), stderr);
  });

  it("has one format, and can only be sealed with seals enabled", async () => {
    for (const [more, words] of [
      [["--sealed"], /--sealed needs seals.enabled in the configuration/],
      [["--sealed", "--format", "csv"], /--sealed and --format csv cannot be used together/],
      [["--json", "--format", "table"], /--json and --format table cannot be used together/],
    ] as const) {
      const end = await statementOf(config, ...more);
      assertFails(end, 2, words);
    }
  });

  it("without requests says that the account owes nothing", async () => {
    const { code, stdout, stderr } = await statementOf(config, "--account", "nobody", "--json");
    assert.deepEqual([code, JSON.parse(stdout).total.cost], [0, "0"]);
    assert.equal(stderr, "chat-gateway: nobody has no usage records in 2026-01\n");
  });
});

describe("billing trace", { concurrency: 2 }, () => {
  const config = configFile(demo({ data_dir: made() }));
  const trace = (id: string, ...more: string[]) =>
    runHere(["billing", "trace", ...more, "--config", config, "--", id]);
  before(() => copied(config));

  it("found, in several accounts: every record with its receipt, and no other's", async () => {
    const id = 'quote "quoted"';
    const { gateway_request_id, records, receipts } = JSON.parse(
      (await trace(id, "--json")).stdout,
    );
    const found = records.map(({ usage_id, account }: Line) => [usage_id, account]);
    const [own, others] = [spendId(12), spendId(16)];
    assert.deepEqual(found, [
      [own, "acme"],
      [others, "beta"],
    ]);
    const told = receipts.map(({ spend_id }: Line) => spend_id);
    assert.deepEqual([gateway_request_id, told], [id, [own, others]]);
    const rows = lines((await trace(id)).stdout);
    assert.match(rows[0]!, /^ *account +model +provider /);
    assert.equal(rows.length, 3, "for people: a line a record");
  });

  it("not found: one line, exit 1", async () => {
    const end = await trace("plai");
    assertFails(end, 1, /no usage record has the gateway_request_id "plai"/);
  });
});

describe("a command that cannot answer", { concurrency: 2 }, () => {
  const statement = ["billing", "statement"];
  for (const args of [
    ["billing", "trace", "x"],
    [...statement, "--account", "acme", "--month", "2026-01"],
  ]) {
    it(`${args.join(" ")} without books: says so, exit 1, and creates none`, async () => {
      const data_dir = join(folder(), "data");
      const end = await runHere([...args, "--config", configFile(demo({ data_dir }))]);
      assertOneLine(end, /there are no books in .*data: no gateway has run with it/);
      assert.deepEqual([end.code, existsSync(data_dir)], [1, false]);
    });
  }

  const whose = ["--account", "a", "--month", "2026-01"];
  for (const [args, words] of [
    [[...statement, "--account", "a", "--month", "2026-13"], /--month must be a month such as/],
    [[...statement, ...whose, "--format", "xml"], /--format must be table, csv or json/],
    [[...statement, ...whose, "--currency", "euro"], /--currency must be three capital letters/],
    [["billing", "trace"], /billing trace needs REQUEST_ID/],
    [["billing"], /no command 'billing'/],
  ] as const) {
    it(`${args.join(" ")}: one line, exit 2`, async () => {
      const end = await runHere(args);
      assertFails(end, 2, words);
    });
  }
});

const NAME = "2026-01-31.0001.jsonl";
const WAITING = { aborted: false, reason: undefined };

function booksOf(lines: readonly Line[]) {
  const { dir, share, other } = siteOf(lines);
  return { dir, books: share(), other: other() };
}
describe("traceRequest", () => {
  it("finds an open request of a live process, until some process has copied its end", async (t) => {
    const { dir, books, other } = booksOf([openLine(1), settleLine(1)]);
    const second = "2026-01-31.0002.jsonl";
    handMade(dir, second, textOf([openLine(7), openLine(8)]), "let go");
    t.after((await acquireSocketLock(segmentPath(dir, "2026-01-31.0002.sock")))!);
    const trace = await traceRequest(books, "request 7", WAITING);
    assert.deepEqual([trace.records, trace.receipts, trace.spend], [[], [], [openLine(7)]]);
    assert.deepEqual((await traceRequest(books, "request", WAITING)).spend, [], "a part of the id");
    // Another process copies the ends of both.
    appendFileSync(segmentPath(dir, second), textOf([settleLine(7), settleLine(8)]));
    await other.copyNow();
    assert.deepEqual((await traceRequest(books, "request 7", WAITING)).spend, [settleLine(7)]);
  });

  it("finds the records of a deleted segment, without its lines", async () => {
    const { dir, books } = booksOf([openLine(1), settleLine(1)]);
    await books.copyNow();
    await books.files.store.setCursor({});
    rmSync(segmentPath(dir, NAME));
    const trace = await traceRequest(books, "request 1", WAITING);
    assert.deepEqual([trace.records.length, trace.receipts.length, trace.spend], [1, 1, []]);
    assert.ok(trace.records.every((record) => !record.details && !record.log));
  });

  it("stops when its caller is gone", async () => {
    const { books } = booksOf([openLine(1), settleLine(1)]);
    const cancel = { aborted: true, reason: new Error("gone") };
    const tracing = traceRequest(books, "request 1", cancel);
    await assert.rejects(tracing, { message: "gone" });
  });
});
