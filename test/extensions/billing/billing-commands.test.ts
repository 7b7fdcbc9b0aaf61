// What an account owes, where a request id leads, and the proof of the books: the real commands,
// against sums worked out from the spend log by other means, and against books that somebody has
// tampered with.

import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it, type TestContext } from "node:test";
import { checkConfig } from "../../support/config.ts";
import { createGateway } from "../../support/config.ts";
import {
  configFile,
  costOf,
  handMade,
  openLine,
  priced,
  segmentPath,
  settleLine,
  settles,
  spendId,
  sum,
  textOf,
  usageFile,
  usageRecords,
  type Line,
} from "../../support/books.ts";
import { assertOneLine, ended, lines } from "../../support/command.ts";
import { folder } from "../../support/folder.ts";
import { demo, KEY, user } from "../../support/gateway.ts";
import { speak, status } from "../../support/provider.ts";
import { createRandom } from "../../support/random.ts";

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
      };
      const cost = costOf(usage, {
        input_cache_hit: 0.000001,
        input_cache_miss: 3.271592,
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
  "completion_tokens",
  "reasoning_tokens",
];
/** Of the spend log's lines: requests, tokens of each class, cost. */
const summed = (found: readonly Line[]) => ({
  requests: found.length,
  ...Object.fromEntries(
    CLASSES.map((name) => [name, found.reduce((all, { usage }) => all + usage[name], 0)]),
  ),
  cost: sum(found.map(({ cost }) => cost)),
  currency: "USD",
});

describe("billing statement", { concurrency: 2 }, () => {
  const seed = (Date.now() ^ process.pid) | 0;
  const dir = made(seed);
  const config = configFile(demo({ data_dir: dir }));
  const statement = (t: TestContext, format: string, account = "acme", month = "2026-01") =>
    ended(t, [
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

  it(`json: the sums by model and in total are those of the spend log (seed ${seed})`, async (t) => {
    const { code, stdout } = await statement(t, "json");
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

  it(`csv: a line a request, each with its gateway_request_id, which survives (seed ${seed})`, async (t) => {
    const { code, stdout } = await statement(t, "csv");
    assert.equal(code, 0);
    const [header, ...rows] = parseCsv(stdout);
    assert.deepEqual(header, Object.keys(usageRecords(dir)[0]!));
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
        owed.map(({ usage }) => String(usage[name])),
      );
  });

  it(`table: the same sums, for people; other currencies are told (seed ${seed})`, async (t) => {
    const { code, stdout, stderr } = await statement(t, "table");
    assert.equal(code, 0);
    const [title, header, ...rows] = lines(stdout);
    assert.equal(title, "acme, 2026-01, in USD");
    assert.match(header!, /^ *model +requests .* cost$/);
    const total = summed(inDollars) as Line;
    assert.deepEqual(rows.at(-1)!.trim().split(/ +/), [
      "total",
      ...["requests", ...CLASSES.slice(0, 3), "cost"].map((name) => String(total[name])),
    ]);
    assert.equal(
      stderr,
      euros > 0
        ? `chat-gateway: warning: ${euros} requests were billed in EUR and are not in these sums: --currency EUR has them\n`
        : "",
    );
  });

  for (const format of ["json", "table", "csv"]) {
    it(`${format} in a currency that is no longer the configured one: its own sums, and a word about the others (seed ${seed})`, async (t) => {
      const inEuros = owed.filter(({ currency }) => currency === "EUR");
      const more = ["--format", format, "--currency", "EUR", "--config", config];
      const args = ["billing", "statement", "--account", "acme", "--month", "2026-01", ...more];
      const { code, stdout, stderr } = await ended(t, args);
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

  it("an account, or a month, without requests: nothing is owed", async (t) => {
    for (const [account, month] of [
      ["nobody", "2026-01"],
      ["acme", "2026-03"],
    ] as const) {
      const { code, stdout } = await statement(t, "json", account, month);
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
    const month = new Date().toISOString().slice(0, 7);
    const { code, stdout, stderr } = await ended(t, [
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
  const trace = (t: TestContext, id: string, ...more: string[]) =>
    ended(t, ["billing", "trace", ...more, "--config", config, "--", id]);

  it("found, in several accounts: every record, and no other's", async (t) => {
    for (const id of ['quote "quoted"', "comma, comma"]) {
      const { code, stdout } = await trace(t, id, "--json");
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

  it("found, for people: a line a record, with its account", async (t) => {
    const { code, stdout } = await trace(t, "plain");
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

  it("not found: one line, exit 1", async (t) => {
    const end = await trace(t, "plai");
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
    it(`${command.join(" ")}: says so, exit 1, and makes none`, async (t) => {
      const data_dir = join(folder(), "data");
      const end = await ended(t, [...command, "--config", configFile(demo({ data_dir }))]);
      assertOneLine(end, /there are no books in .*data: no gateway has run with it/);
      assert.equal(end.code, 1);
      assert.ok(!existsSync(data_dir));
    });
  }

  it("an account without records: an empty statement, and a word about it", async (t) => {
    const data_dir = folder();
    handMade(data_dir, "2026-01-31.0001.jsonl", textOf([openLine(1), settleLine(1)]), "let go");
    const { code, stdout, stderr } = await ended(t, [
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

const PROVED = (requests: number) =>
  `proved: ${requests} requests settled from 2026-01-31T12:00:01.500Z to 2026-01-31T12:00:01.500Z\n`;

describe("audit", { concurrency: 2 }, () => {
  const SEGMENT = "2026-01-31.0001.jsonl";
  const KEEP = { spend: { keep_days: 36_500 } };
  const clean = folder();
  handMade(
    clean,
    SEGMENT,
    textOf([1, 2, 3, 4, 5].flatMap((n) => [openLine(n), settleLine(n)])),
    "let go",
  );
  const owed = sum(settles(clean).map(({ cost }) => cost));

  /**
   * Books that are right, copied into usage records, in a folder of their own; and how they are
   * audited.
   */
  function copied(t: TestContext) {
    const dir = folder();
    cpSync(clean, dir, { recursive: true });
    const config = configFile(demo({ data_dir: dir, ...KEEP }));
    const audit = (...more: string[]) => ended(t, ["audit", ...more, "--config", config]);
    return { dir, audit };
  }

  before(async () => {
    const gateway = createGateway(checkConfig(demo({ data_dir: clean, ...KEEP }), {}));
    await gateway.listen();
    await gateway.close(0);
    assert.equal(usageRecords(clean).length, 5);
  });

  /**
   * Rewrites a file's lines, as an array that `change` edits, and if it is a usage file the size of
   * it that counts.
   */
  function edit(dir: string, what: "usage" | "spend", change: (lines: string[]) => string[]): void {
    const path = what === "usage" ? usageFile(dir, "2026-01") : segmentPath(dir, SEGMENT);
    const text = change(readFileSync(path, "utf8").split("\n").slice(0, -1))
      .map((line) => `${line}\n`)
      .join("");
    writeFileSync(path, text);
    if (what === "spend") return;
    const cursor = JSON.parse(readFileSync(join(dir, "usage", "cursor.json"), "utf8"));
    cursor.months["2026-01"] = Buffer.byteLength(text);
    writeFileSync(join(dir, "usage", "cursor.json"), JSON.stringify(cursor));
  }
  const without = (word: string) => (all: string[]) => all.filter((line) => !line.includes(word));
  const third = spendId(3);

  const TAMPERED: [name: string, what: "usage" | "spend", change: (lines: string[]) => string[]][] =
    [
      ["a usage record deleted", "usage", without(third)],
      ["a usage record doubled", "usage", (all) => [...all, all[2]!]],
      [
        "a usage record's cost altered",
        "usage",
        (all) =>
          all.map((line, at) => (at === 2 ? line.replace(/"cost":"0\.0/, '"cost":"0.1') : line)),
      ],
      [
        "a usage record's account altered",
        "usage",
        (all) => all.map((line, at) => (at === 2 ? line.replace('"acme"', '"beta"') : line)),
      ],
      [
        "a usage record made up",
        "usage",
        (all) => [
          ...all.filter((line) => !line.includes(spendId(5))),
          all[4]!,
          all[4]!.replace(spendId(5), third.replace("sp_0", "sp_1")),
        ],
      ],
      [
        "a settle line removed from the spend log",
        "spend",
        (all) => all.filter((line) => !(line.includes(third) && line.includes('"settle"'))),
      ],
      [
        "a settle line doubled at the end",
        "spend",
        (all) => [...all, all.find((line) => line.includes(third) && line.includes('"settle"'))!],
      ],
      [
        "a settle line's cost altered, all else the same",
        "spend",
        (all) =>
          all.map((line) =>
            line.includes(third) ? line.replace(/"cost":"0\.0/, '"cost":"0.1') : line,
          ),
      ],
    ];
  for (const [name, what, change] of TAMPERED) {
    it(`${name}: exit 1, and the difference names the record`, async (t) => {
      const { dir, audit } = copied(t);
      edit(dir, what, change);
      const { code, stdout } = await audit("--json");
      const { ok, differences } = JSON.parse(stdout);
      assert.deepEqual([code, ok], [1, false]);
      const id = name.includes("made up") ? third.replace("sp_0", "sp_1") : third;
      assert.ok(
        differences.some((each: string) => each.includes(id)) &&
          differences.every(
            (each: string) => each.includes(id) || each.includes("is not what it was"),
          ),
        JSON.stringify(differences),
      );
    });
  }

  it("books that are right: exit 0, and the sums of both sides", async (t) => {
    const { audit } = copied(t);
    const { code, stdout } = await audit("--json");
    assert.deepEqual(
      [code, JSON.parse(stdout)],
      [
        0,
        {
          ok: true,
          settled: 5,
          recorded: 5,
          in_flight: 0,
          cost_settled: { USD: owed },
          cost_recorded: { USD: owed },
          proved: {
            requests: 5,
            from: "2026-01-31T12:00:01.500Z",
            to: "2026-01-31T12:00:01.500Z",
          },
          retired: { records: 0, from: null, to: null },
          not_proved: { records: 0, from: null, to: null },
          differences: [],
        },
      ],
    );
  });

  it("for people: the sums, and that the books are right; or what is wrong", async (t) => {
    const { dir, audit } = copied(t);
    const right = await audit();
    assert.deepEqual(
      [right.code, right.stdout, right.stderr],
      [
        0,
        `settled 5 for ${owed} USD; recorded 5 for ${owed} USD; in flight 0\n${PROVED(5)}the books are right\n`,
        "",
      ],
    );
    edit(dir, "usage", without(third));
    const wrong = await audit();
    assert.equal(wrong.code, 1);
    assert.match(
      wrong.stdout,
      new RegExp(
        `^settled 5 for .*; recorded 4 for .*\\n${PROVED(4)}the books are wrong:\\n {2}${third}: .*\\n$`,
      ),
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
    it(`${args.join(" ")}: one line, exit 2`, async (t) => {
      const end = await ended(t, args);
      assertOneLine(end, words);
      assert.equal(end.code, 2);
    });
  }
});
