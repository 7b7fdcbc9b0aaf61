// `audit` on books that somebody has tampered with: each kind of change is found, and its record
// named.

import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { checkConfig, createGateway } from "../../support/config.ts";
import {
  configFile,
  handMade,
  openLine,
  segmentPath,
  settleLine,
  settles,
  spendId,
  sum,
  textOf,
  usageFile,
  usageRecords,
} from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";
import { runHere } from "../../support/run-here.ts";

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
  function copied() {
    const dir = folder();
    cpSync(clean, dir, { recursive: true });
    const config = configFile(demo({ data_dir: dir, ...KEEP }));
    const audit = (...more: string[]) => runHere(["audit", ...more, "--config", config]);
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
    it(`${name}: exit 1, and the difference names the record`, async () => {
      const { dir, audit } = copied();
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

  it("books that are right: exit 0, and the sums of both sides", async () => {
    const { audit } = copied();
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
          held: "0",
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

  it("for people: the sums, and that the books are right; or what is wrong", async () => {
    const { dir, audit } = copied();
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
