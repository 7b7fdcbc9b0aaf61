// What an account owes, and where a request id leads: the commands, against sums worked out from
// the spend log by other means.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
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
  sum,
  textOf,
  usageRecords,
  type Line,
} from "../../support/books.ts";
import { assertOneLine, lines } from "../../support/command.ts";
import { folder } from "../../support/folder.ts";
import { demo, KEY, user } from "../../support/gateway.ts";
import { speak, status } from "../../support/provider.ts";
import { createRandom } from "../../support/random.ts";
import { runHere } from "../../support/run-here.ts";
import { thisMonth } from "../../support/today.ts";

const IDS = [
  "plain",
  "comma, comma",
  'quote "quoted"',
  '"',
  ",",
  " leading",
  "trailing ",
  "semi;colon",
  "'",
  '","',
  "~{}[]\\n",
];
const MONTHS = ["2026-01", "2026-02"];

/**
 * Books of two accounts over two months, in two currencies, with ids that CSV and JSON have to
 * mind.
 */
function made(seed: number): string {
  const dir = folder();
  const next = createRandom(seed).random;
  const any = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  for (const [at, month] of MONTHS.entries()) {
    const pairs = Array.from({ length: 150 }, (_, each) => {
      const n = at * 1_000 + each;
      const time = `${month}-${String(1 + Math.floor(next() * 28)).padStart(2, "0")}T00:00:00.000Z`;
      const about = {
        time,
        account: any(["acme", "beta"]),
        gateway_request_id: any(IDS),
        model_requested: "auto",
      };
      const [prompt, hit, completion_tokens] = [
        Math.floor(next() * 1e9),
        Math.floor(next() * 1e9),
        Math.floor(next() * 1e9),
      ];
      const usage = {
        prompt_tokens: prompt + hit,
        completion_tokens,
        total_tokens: prompt + hit + completion_tokens,
        prompt_cache_hit_tokens: hit,
        prompt_cache_miss_tokens: prompt,
        reasoning_tokens: Math.floor(completion_tokens / 3),
        // Lines of earlier versions do not have it.
        ...(each % 2 === 0 && { cache_write_tokens: Math.floor(prompt / 3) }),
      };
      const cost = costOf(usage, {
        input_cache_hit: 0.000001,
        input_cache_miss: 3.271592,
        input_cache_write: 4.08949,
        output: 999_999.999999,
      });
      return textOf([
        openLine(n, about),
        settleLine(n, {
          ...about,
          model_served: any(["m", "n", null]),
          usage,
          cost,
          currency: next() < 0.05 ? "EUR" : "USD",
        }),
      ]);
    });
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
const summed = (found: readonly Line[]) => ({
  requests: found.length,
  ...Object.fromEntries(
    CLASSES.map((name) => [name, found.reduce((all, { usage }) => all + (usage[name] ?? 0), 0)]),
  ),
  cost: sum(found.map(({ cost }) => cost)),
  currency: "USD",
});

describe("billing statement", { concurrency: 2 }, () => {
  const seed = (Date.now() ^ process.pid) | 0;
  const dir = made(seed);
  const config = configFile(demo({ data_dir: dir }));
  const statement = (format: string, account = "acme", month = "2026-01") =>
    runHere([
      "billing",
      "statement",
      "--account",
      account,
      "--month",
      month,
      "--format",
      format,
      "--config",
      config,
    ]);
  const owed = settles(dir).filter(
    ({ account, time }) => account === "acme" && time.startsWith("2026-01"),
  );
  const inDollars = owed.filter(({ currency }) => currency === "USD");
  const euros = owed.length - inDollars.length;

  it(`json: the sums by model and in total are those of the spend log (seed ${seed})`, async () => {
    const { code, stdout } = await statement("json");
    assert.equal(code, 0);
    const { lines: byModel, total, other_currencies, ...head } = JSON.parse(stdout);
    assert.deepEqual(head, { account: "acme", month: "2026-01", currency: "USD" });
    const models = [
      ...new Set(inDollars.map((line) => line["model_served"] ?? line["model_requested"])),
    ].sort();
    assert.deepEqual(
      byModel,
      models.map((model) => ({
        model,
        ...summed(
          inDollars.filter((line) => (line["model_served"] ?? line["model_requested"]) === model),
        ),
      })),
    );
    assert.deepEqual(total, summed(inDollars));
    assert.deepEqual(other_currencies, euros > 0 ? { EUR: euros } : {});
  });

  it(`csv: a line a request, each with its gateway_request_id, which survives (seed ${seed})`, async () => {
    const { code, stdout } = await statement("csv");
    assert.equal(code, 0);
    const [header, ...rows] = parseCsv(stdout);
    assert.deepEqual([...header!, "details"], Object.keys(usageRecords(dir)[0]!));
    const column = (name: string) => rows.map((row) => row[header!.indexOf(name)]);
    assert.ok(rows.every((row) => row.length === header!.length));
    assert.deepEqual(
      column("gateway_request_id"),
      owed.map((line) => line["gateway_request_id"]),
    );
    assert.deepEqual(
      column("usage_id"),
      owed.map((line) => line["spend_id"]),
    );
    assert.deepEqual(
      [column("cost"), column("currency")],
      [owed.map(({ cost }) => cost), owed.map(({ currency }) => currency)],
    );
    for (const name of CLASSES)
      assert.deepEqual(
        column(name),
        owed.map(({ usage }) => String(usage[name] ?? 0)),
      );
  });

  it(`table: the same sums, for people; other currencies are told (seed ${seed})`, async () => {
    const { code, stdout, stderr } = await statement("table");
    assert.equal(code, 0);
    const [title, header, ...rows] = lines(stdout);
    assert.equal(title, "acme, 2026-01, in USD");
    assert.match(header!, /^ *model +requests .* cost$/);
    const total = summed(inDollars) as Line;
    assert.deepEqual(rows.at(-1)!.trim().split(/ +/), [
      "total",
      ...["requests", ...CLASSES.slice(0, 4), "cost"].map((name) => String(total[name])),
    ]);
    assert.equal(
      stderr,
      euros > 0
        ? `chat-gateway: warning: ${euros} requests were billed in EUR and are not in these sums: --currency EUR has them\n`
        : "",
    );
  });

  for (const format of ["json", "table", "csv"]) {
    it(`${format} in a currency that is no longer the configured one: its own sums, and a word about the others (seed ${seed})`, async () => {
      const inEuros = owed.filter(({ currency }) => currency === "EUR");
      const more = ["--format", format, "--currency", "EUR", "--config", config];
      const args = ["billing", "statement", "--account", "acme", "--month", "2026-01", ...more];
      const { code, stdout, stderr } = await runHere(args);
      assert.equal(code, 0);
      if (format === "csv") {
        assert.equal(lines(stdout).length, 1 + inEuros.length);
        return;
      }
      if (format === "json") {
        const { total, currency, other_currencies } = JSON.parse(stdout);
        assert.deepEqual([currency, total.currency, total.requests], ["EUR", "EUR", euros]);
        assert.equal(total.cost, sum(inEuros.map(({ cost }) => cost)));
        assert.deepEqual(other_currencies, { USD: inDollars.length });
      } else assert.match(stdout, /^acme, 2026-01, in EUR\n/);
      const warning = `${inDollars.length} requests were billed in USD and are not in these sums: --currency USD has them`;
      assert.ok(stderr.includes(warning), stderr);
    });
  }

  it("an account, or a month, without requests: nothing is owed", async () => {
    for (const [account, month] of [
      ["nobody", "2026-01"],
      ["acme", "2026-03"],
    ] as const) {
      const { code, stdout } = await statement("json", account, month);
      assert.deepEqual(
        [code, JSON.parse(stdout).lines, JSON.parse(stdout).total.cost],
        [0, [], "0"],
      );
    }
  });

  it("of a running gateway, to the last reply; secrets that are not in this shell are no fault", async (t) => {
    const secrets = {
      providers: { lab: { api_key: "$LAB_KEY" } },
      keys: [
        { account: "acme", key: "$ACME_KEY" },
        { account: "beta", key: "$BETA_KEY" },
      ],
    };
    const { dir, config, ask } = await priced(
      t,
      { m: speak("Hi."), bad: status(500) },
      {
        keys: [
          { account: "acme", key: KEY },
          { account: "beta", key: "sk-beta" },
        ],
        usage: { sync_ms: 86_400_000 },
      },
    );
    for (let i = 0; i < 5; i += 1)
      await ask(
        { model: i === 0 ? "bad" : "m", messages: user("hi") },
        i > 2 ? { authorization: "Bearer sk-beta" } : {},
      );
    const file = configFile({
      ...config,
      ...secrets,
      providers: { lab: { ...(config as any).providers.lab, api_key: "$LAB_KEY" } },
    });
    const month = thisMonth();
    const { code, stdout, stderr } = await runHere([
      "billing",
      "statement",
      "--account",
      "acme",
      "--month",
      month,
      "--format",
      "json",
      "--config",
      file,
    ]);
    assert.deepEqual([code, stderr], [0, ""]);
    const of = settles(dir).filter(({ account }) => account === "acme");
    assert.deepEqual([of.length, JSON.parse(stdout).total], [3, summed(of)]);
    assert.deepEqual(
      JSON.parse(stdout).lines.map(({ model, requests }: Line) => [model, requests]),
      [
        ["bad", 1],
        ["m", 2],
      ],
    );
  });
});

describe("billing trace", { concurrency: 2 }, () => {
  const dir = made(7);
  const config = configFile(demo({ data_dir: dir }));
  const trace = (id: string, ...more: string[]) =>
    runHere(["billing", "trace", ...more, "--config", config, "--", id]);

  it("found, in several accounts: every record, and no other's", async () => {
    for (const id of ['quote "quoted"', "comma, comma"]) {
      const { code, stdout } = await trace(id, "--json");
      const { gateway_request_id, records } = JSON.parse(stdout);
      const expected = settles(dir).filter((line) => line["gateway_request_id"] === id);
      assert.deepEqual([code, gateway_request_id], [0, id]);
      assert.deepEqual(
        records.map(({ usage_id, account }: Line) => [usage_id, account]).sort(),
        expected.map(({ spend_id, account }) => [spend_id, account]).sort(),
      );
      assert.equal(new Set(records.map(({ account }: Line) => account)).size, 2);
    }
  });

  it("found, for people: a line a record, with its account", async () => {
    const { code, stdout } = await trace("plain");
    const expected = settles(dir).filter((line) => line["gateway_request_id"] === "plain");
    const [header, ...rows] = lines(stdout);
    assert.equal(code, 0);
    assert.match(header!, /^ *account +key_id +model /);
    assert.deepEqual(
      rows.map((row) => row.trim().split(/ +/)[0]).sort(),
      expected.map(({ account }) => account).sort(),
    );
    for (const { spend_id } of expected) assert.ok(stdout.includes(spend_id));
  });

  it("not found: one line, exit 1", async () => {
    const end = await trace("plai");
    assertOneLine(end, /no usage record has the gateway_request_id "plai"/);
    assert.equal(end.code, 1);
  });
});

describe("books that are not there", { concurrency: 2 }, () => {
  for (const command of [
    ["audit"],
    ["billing", "trace", "x"],
    ["billing", "statement", "--account", "acme", "--month", "2026-01"],
  ]) {
    it(`${command.join(" ")}: says so, exit 1, and makes none`, async () => {
      const data_dir = join(folder(), "data");
      const end = await runHere([...command, "--config", configFile(demo({ data_dir }))]);
      assertOneLine(end, /there are no books in .*data: no gateway has run with it/);
      assert.equal(end.code, 1);
      assert.ok(!existsSync(data_dir));
    });
  }

  it("an account without records: an empty statement, and a word about it", async () => {
    const data_dir = folder();
    handMade(data_dir, "2026-01-31.0001.jsonl", textOf([openLine(1), settleLine(1)]), "let go");
    const { code, stdout, stderr } = await runHere([
      "billing",
      "statement",
      "--account",
      "nobody",
      "--month",
      "2026-01",
      "--json",
      "--config",
      configFile(demo({ data_dir })),
    ]);
    assert.deepEqual(
      [code, JSON.parse(stdout).total.requests, stderr],
      [0, 0, "chat-gateway: nobody has no usage records in 2026-01\n"],
    );
  });
});

describe("mistakes in the arguments", { concurrency: 2 }, () => {
  const statement = ["billing", "statement"];
  for (const [args, words] of [
    [[...statement, "--account", "a", "--month", "2026-13"], /--month must be a month such as/],
    [[...statement, "--month", "2026-01"], /billing statement needs --account/],
    [[...statement, "--account", "a"], /billing statement needs --month/],
    [
      [...statement, "--account", "a", "--month", "2026-01", "--format", "xml"],
      /--format must be table, csv or json/,
    ],
    [
      [...statement, "--account", "a", "--month", "2026-01", "--currency", "euro"],
      /--currency must be three capital letters such as USD/,
    ],
    [["billing", "trace"], /billing trace needs REQUEST_ID/],
    [["billing"], /no command 'billing'/],
    [["audit", "--month", "2026-01"], /audit has no option --month/],
  ] as const) {
    it(`${args.join(" ")}: one line, exit 2`, async () => {
      const end = await runHere(args);
      assertOneLine(end, words);
      assert.equal(end.code, 2);
    });
  }
});
