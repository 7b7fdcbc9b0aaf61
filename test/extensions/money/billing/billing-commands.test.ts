// What an account owes, and where a request id leads: the commands, against sums worked out from
// the spend log by other means.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import {
  configFile,
  handMade,
  openLine,
  settleLine,
  settles,
  sum,
  textOf,
  type Line,
} from "../../../support/books.ts";
import { assertOneLine, lines } from "../../../support/command.ts";
import { folder } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { runHere } from "../../../support/run-here.ts";
import { createRandom } from "../../../support/random.ts";
import { thisMonth } from "../../../support/today.ts";

const IDS = [
  "plain",
  "comma, comma",
  'quote "quoted"',
  '"',
  " leading",
  "trailing ",
  '","',
  "~{}[]\\n",
];
/**
 * Books of two accounts over two months, in two currencies, with ids that CSV and JSON have to
 * mind.
 */
function made(seed: number): string {
  const dir = folder();
  const { between, pick, random } = createRandom(seed);
  const pairOf = (month: string, n: number): string => {
    const day = String(between(1, 28)).padStart(2, "0");
    const about = {
      time: `${month}-${day}T00:00:00.000Z`,
      account: pick(["acme", "beta"]),
      gateway_request_id: pick(IDS),
    };
    const [miss, hit, completion_tokens] = [between(0, 1e9), between(0, 1e9), between(0, 1e9)];
    const usage = {
      ...{ prompt_tokens: miss + hit, completion_tokens },
      total_tokens: miss + hit + completion_tokens,
      ...{ prompt_cache_hit_tokens: hit, prompt_cache_miss_tokens: miss, reasoning_tokens: n },
      // Most requests write nothing to a cache, and their lines do not have it.
      ...(n % 2 === 0 && { cache_write_tokens: Math.floor(miss / 3) }),
    };
    const settle = settleLine(n, {
      ...about,
      model_requested: "auto",
      model_served: pick(["m", "n", null]),
      usage,
      cost: `${between(0, 99)}.${between(1, 999_999)}1`,
      currency: random() < 0.05 ? "EUR" : "USD",
    });
    return textOf([openLine(n, about), settle]);
  };
  for (const [at, month] of ["2026-01", "2026-02"].entries()) {
    const pairs = Array.from({ length: 150 }, (_, n) => pairOf(month, at * 1_000 + n));
    handMade(dir, `${month}-28.0001.jsonl`, pairs.join(""), "let go");
  }
  return dir;
}

/** What a spreadsheet reads: RFC 4180. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/gy;
  while (field.lastIndex < text.length) {
    const [, quoted, bare = "", end] =
      field.exec(text) ?? assert.fail(`not CSV from byte ${field.lastIndex}`);
    rows.at(-1)!.push(quoted === undefined ? bare : quoted.replaceAll('""', '"'));
    if (end === "\r\n" && field.lastIndex < text.length) rows.push([]);
  }
  return rows;
}

const CLASSES = [
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "cache_write_tokens",
  "completion_tokens",
  "reasoning_tokens",
];
/** Of the spend log's lines: requests, tokens of each class, cost. */
const summed = (found: readonly Line[]): Line => ({
  requests: found.length,
  ...Object.fromEntries(
    CLASSES.map((name) => [name, found.reduce((all, { usage }) => all + (usage[name] ?? 0), 0)]),
  ),
  cost: sum(found.map(({ cost }) => cost)),
  currency: "USD",
});
const modelOf = (line: Line): string => line["model_served"] ?? line["model_requested"];
/** Days that are over are closed then, of which commands say so on standard error. */
const copied = (config: string) => runHere(["usage", "sync", "--once", "--config", config]);
const statementOf = (config: string, ...more: string[]) => {
  const args = ["--account", "acme", "--month", "2026-01", "--config", config];
  return runHere(["billing", "statement", ...args, ...more]);
};

describe("billing statement", { concurrency: 2 }, () => {
  const seed = (Date.now() ^ process.pid) | 0;
  const dir = made(seed);
  const config = configFile(demo({ data_dir: dir }));
  before(() => copied(config));
  const owed = settles(dir)
    .filter(({ account, time }) => account === "acme" && time.startsWith("2026-01"))
    // Statements go day by day, and within a day as the log does.
    .sort(
      (one, other) => Number(one["time"] > other["time"]) - Number(one["time"] < other["time"]),
    );
  const inDollars = owed.filter(({ currency }) => currency === "USD");
  const inEuros = owed.filter(({ currency }) => currency === "EUR");

  it(`json: the sums by model and in total are those of the spend log (seed ${seed})`, async () => {
    const { code, stdout } = await statementOf(config, "--format", "json");
    const models = [...new Set(inDollars.map(modelOf))].sort();
    const sumOf = (model: string) => summed(inDollars.filter((line) => modelOf(line) === model));
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout), {
      account: "acme",
      month: "2026-01",
      currency: "USD",
      lines: models.map((model) => ({ model, ...sumOf(model) })),
      total: summed(inDollars),
      other_currencies: inEuros.length > 0 ? { EUR: inEuros.length } : {},
    });
  });

  it(`csv: a line a request, with its id, its tokens and its cost (seed ${seed})`, async () => {
    const { code, stdout } = await statementOf(config, "--format", "csv");
    assert.equal(code, 0);
    const [header, ...rows] = parseCsv(stdout);
    const names = ["gateway_request_id", "usage_id", "cost", "currency", ...CLASSES];
    assert.deepEqual(
      rows.map((row) => names.map((name) => row[header!.indexOf(name)])),
      owed.map((line) => [
        ...[line["gateway_request_id"], line["spend_id"], line["cost"], line["currency"]],
        ...CLASSES.map((name) => String(line["usage"][name] ?? 0)),
      ]),
    );
  });

  it(`in another currency: its own sums, in every form (seed ${seed})`, async () => {
    const inEuro = (format: string) => statementOf(config, "--currency", "EUR", "--format", format);
    const { total, other_currencies } = JSON.parse((await inEuro("json")).stdout);
    const expected: Line = { ...summed(inEuros), currency: "EUR" };
    assert.deepEqual([total, other_currencies], [expected, { USD: inDollars.length }]);
    assert.equal(lines((await inEuro("csv")).stdout).length, 1 + inEuros.length);
    const { stdout, stderr } = await inEuro("table");
    assert.match(stdout, /^acme, 2026-01, in EUR\n *model +requests .* cost\n/);
    const shown = ["requests", ...CLASSES, "cost"].map((name) => expected[name]);
    assert.equal(lines(stdout).at(-1)!.trim().replace(/ +/g, " "), `total ${shown.join(" ")}`);
    const others = `${inDollars.length} requests were billed in USD and are not in these sums`;
    assert.ok(stderr.includes(`${others}: --currency USD has them\n`), stderr);
  });

  it("an account without requests owes nothing, and a word says so", async () => {
    const { code, stdout, stderr } = await statementOf(config, "--account", "nobody", "--json");
    assert.deepEqual([code, JSON.parse(stdout).total.cost], [0, "0"]);
    assert.equal(stderr, "chat-gateway: nobody has no usage records in 2026-01\n");
  });

  it("a request of a closed day that comes late is on the bill of the first open day", async () => {
    const before = JSON.parse((await statementOf(config, "--json")).stdout);
    const late = textOf([openLine(9_999), settleLine(9_999, { cost: "0.000000000001" })]);
    handMade(dir, "2026-01-31.0009.jsonl", late, "let go");
    assert.deepEqual(JSON.parse((await statementOf(config, "--json")).stdout), before);
    const { stdout } = await statementOf(config, "--month", thisMonth(), "--json");
    assert.equal(JSON.parse(stdout).total.cost, "0.000000000001");
  });
});

describe("billing statement --sealed", () => {
  const config = demo({ data_dir: made(1) });
  const sealed = configFile({ ...config, seals: { enabled: true } });
  before(() => copied(sealed));

  it("has the bill, signed", async () => {
    const { bill, signature } = JSON.parse((await statementOf(sealed, "--sealed")).stdout);
    assert.deepEqual(bill, JSON.parse((await statementOf(sealed, "--json")).stdout));
    assert.match(signature, /^[0-9a-f]{128}$/);
  });

  it("needs seals, and is JSON, which no other format is", async () => {
    for (const [more, words] of [
      [["--sealed"], /--sealed needs seals.enabled in the configuration/],
      [["--sealed", "--format", "csv"], /--sealed and --format csv exclude each other/],
      [["--json", "--format", "table"], /--json and --format table exclude each other/],
    ] as const) {
      const end = await statementOf(configFile(config), ...more);
      assertOneLine(end, words);
      assert.equal(end.code, 2);
    }
  });
});

describe("billing trace", { concurrency: 2 }, () => {
  const dir = made(7);
  const config = configFile(demo({ data_dir: dir }));
  const trace = (id: string, ...more: string[]) =>
    runHere(["billing", "trace", ...more, "--config", config, "--", id]);
  const settled = (id: string) => settles(dir).filter((line) => line["gateway_request_id"] === id);

  it("found, in several accounts: every record and its receipt, and no other's", async () => {
    const id = 'quote "quoted"';
    const { stdout } = await trace(id, "--json");
    const { gateway_request_id, records, receipts } = JSON.parse(stdout);
    const expected = settled(id).map(({ spend_id, account }) => [spend_id, account]);
    const found = records.map(({ usage_id, account }: Line) => [usage_id, account]);
    assert.deepEqual([gateway_request_id, found.sort()], [id, expected.sort()]);
    const told = receipts.map(({ spend_id, ended_at }: Line) => [spend_id, ended_at]);
    assert.deepEqual(
      told,
      records.map(({ usage_id, ended_at }: Line) => [usage_id, ended_at]),
    );
  });

  it("found, for people: a line a record, with its account", async () => {
    const rows = lines((await trace("plain")).stdout);
    assert.match(rows[0]!, /^ *account +model +provider /);
    assert.equal(rows.length, 1 + settled("plain").length);
  });

  it("not found: one line, exit 1", async () => {
    const end = await trace("plai");
    assertOneLine(end, /no usage record has the gateway_request_id "plai"/);
    assert.equal(end.code, 1);
  });
});

describe("what cannot be answered", { concurrency: 2 }, () => {
  const statement = ["billing", "statement"];
  for (const args of [
    ["billing", "trace", "x"],
    [...statement, "--account", "acme", "--month", "2026-01"],
  ]) {
    it(`${args.join(" ")} without books: says so, exit 1, and makes none`, async () => {
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
      assertOneLine(end, words);
      assert.equal(end.code, 2);
    });
  }
});
