// Aliases whose candidates are not comparable: what bounds them, what `check` warns of, and what
// `explain` says of the models that are left out.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { runHere } from "../../../support/run-here.ts";
import { ValidationError } from "../../../../src/core/schema/checker.ts";

const at = (blended: number) => ({ input_cache_miss: blended, output: blended });
const model = (reasoning_score: number, blended: number) => ({
  provider: "demo",
  reasoning: true,
  reasoning_score,
  quality_score: 10,
  price: at(blended),
});

interface Row {
  readonly models: Readonly<Record<string, object>>;
  readonly alias: object;
  /** What `check` says of the alias; undefined: nothing. */
  readonly warning?: RegExp;
  /** The candidates that `explain` lists, with their ranks. */
  readonly order: readonly (readonly [string, number | null])[];
}

const ALIKE = { a: model(60, 1), b: model(30, 10) };
const DEARER = { a: model(60, 1), b: model(59, 10.1) };
const WEAKER = { a: model(60, 1), b: model(29, 1) };
const both = [
  ["a", 1],
  ["b", 2],
] as const;

const ROWS: Readonly<Record<string, Row>> = {
  "within ten times the price and half of the score": {
    models: ALIKE,
    alias: { policy: "reasoning" },
    order: both,
  },
  "more than ten times as dear": {
    models: DEARER,
    alias: { policy: "reasoning" },
    warning: /^falls back as far as b, which costs more than ten times as much as a: max_price/,
    order: both,
  },
  "less than half of the score": {
    models: WEAKER,
    alias: { policy: "reasoning" },
    warning: /^falls back as far as b, which scores less than half of a: max_price/,
    order: both,
  },
  both: {
    models: { a: model(60, 1), b: model(29, 11) },
    alias: { policy: "reasoning" },
    warning: /costs more than ten times as much as .*scores less than half of a/,
    order: both,
  },
  "a price that the operator has bounded": {
    models: DEARER,
    alias: { policy: "reasoning", max_price: 10.1 },
    order: both,
  },
  "a bound that leaves the dear one out": {
    models: DEARER,
    alias: { policy: "reasoning", max_price: 10 },
    order: [
      ["a", 1],
      ["b", null],
    ],
  },
  "a bound of the score that leaves the weak one out": {
    models: WEAKER,
    alias: { policy: "reasoning", min_score: 29.5 },
    order: [
      ["a", 1],
      ["b", null],
    ],
  },
  "a list, which is the operator's own choice": {
    models: { a: model(60, 1), b: model(1, 1_000) },
    alias: { models: ["a", "b"] },
    order: both,
  },
  "an alias that is switched off": {
    models: DEARER,
    alias: { policy: "reasoning", enabled: false },
    order: both,
  },
};

const settings = ({ models, alias }: Pick<Row, "models" | "alias">) => ({
  providers: { demo: { dialect: "demo" } },
  models,
  aliases: { x: alias },
});

describe("comparable candidates", () => {
  for (const [name, row] of Object.entries(ROWS))
    it(name, async () => {
      const file = join(folder(), "gateway.json");
      writeFileSync(file, JSON.stringify(settings(row)));
      const checked = await runHere(["check", "--json", "--config", file]);
      assert.equal(checked.code, 0, checked.stderr);
      const warnings: { path: string; message: string }[] = JSON.parse(checked.stdout).warnings;
      const ofAlias = warnings.filter(
        ({ path, message }) => path === "aliases.x" && !message.includes("context_tokens"),
      );
      assert.equal(ofAlias.length, row.warning ? 1 : 0, JSON.stringify(warnings));
      if (row.warning) assert.match(ofAlias[0]!.message, row.warning);
      const explained = await runHere(["explain", "x", "--json", "--config", file]);
      const { candidates } = JSON.parse(explained.stdout);
      assert.deepEqual(
        candidates.map((each: any) => [each.model, each.rank]),
        row.order,
      );
      const out = candidates.filter((each: any) => each.rank === null);
      for (const { why } of out) assert.match(why, /^out: .*(above max_price|below min_score) /);
    });

  it("bounds have no meaning beside a list, and are refused there", () => {
    for (const bound of [{ min_score: 1 }, { max_price: 1 }])
      assert.throws(
        () => checkConfig(settings({ models: ALIKE, alias: { models: ["a"], ...bound } })),
        ValidationError,
      );
  });
});
