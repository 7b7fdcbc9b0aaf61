// Joining the text of another attempt to the shown text: the complete text, or a rejection.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { createJoiner, prefillOf } from "../../../../src/extensions/routing/recovery/joint.ts";
import { LONG } from "../../../support/long.ts";
import { createRandom } from "../../../support/random.ts";

const textIn = (parts: readonly Part[]): string =>
  parts.map((part) => (part.type === "text" ? part.text : "")).join("");

/** What is shown of a text in these pieces. Undefined: it is rejected. */
function joined(shown: string, pieces: readonly string[]): string | undefined {
  const { transform, flush } = createJoiner(shown);
  try {
    return (
      pieces.map((text) => textIn(transform({ type: "text", text }))).join("") + textIn(flush())
    );
  } catch {
    assert.throws(flush, { code: "upstream_error" }, "it keeps refusing");
    return undefined;
  }
}

type Case = readonly [shown: string, pieces: readonly string[], joined: string | undefined];

function checkAll(about: string, cases: readonly Case[]): void {
  describe(about, () => {
    for (const [shown, pieces, expected] of cases)
      it(`${JSON.stringify(shown)} + ${JSON.stringify(pieces)}`.slice(0, 150), () => {
        // However it is split.
        for (const cut of [pieces, [...pieces.join("")], [pieces.join("")]])
          assert.equal(joined(shown, cut), expected);
      });
  });
}

const TIMES = "It was the best of times, it was the worst of times,";
const numbered = Array.from({ length: 400 }, (_, at) => `word${at}`).join(" ");
const dashes = "-".repeat(40);

checkAll("what goes on is shown as it is", [
  ["The quick", [" brown", " fox"], " brown fox"],
  ["The quick bro", ["wn fox"], "wn fox"],
  ["The quick", [" quiet"], " quiet"],
  ["The answer", ["."], "."],
  ["a bal", ["loon"], "loon"],
  ["f(g(x)", [")"], ")"],
  ["The weather", [" here"], " here"],
  ["- apples\n- pears", ["\n- plums"], "\n- plums"],
  ["我们今天去公园散步", ["然后回家"], "然后回家"],
  // An earlier part that is repeated, and does not lead to the end.
  [numbered, [" word5 word6 word7 word8 but now"], " word5 word6 word7 word8 but now"],
  [`Title\n${dashes}`, ["\nText"], "\nText"],
]);

it("a continuation is shown piece by piece once it is recognized", () => {
  const { transform } = createJoiner("The quick");
  const pieces = [" ", "b", "rown", " The quick"];
  const shown = pieces.map((text) => textIn(transform({ type: "text", text })));
  assert.deepEqual(shown, ["", " b", "rown", " The quick"]);
});

checkAll("at most 1,000 blanks precede what goes on", [
  ["The quick", [" ".repeat(1_000), "brown"], `${" ".repeat(1_000)}brown`],
  ["The quick", [" ".repeat(1_001), "brown"], undefined],
]);

checkAll("the blanks that were shown last", [
  ["The quick ", [" brown"], "brown"],
  ["The quick ", ["brown"], undefined],
  ["The quick\n\n", ["\n", "\nbrown"], "brown"],
  ["smile \ud83d", [" \ud83d", "\ude00!"], "\ude00!"],
  ["smile \ud83d", [" \ud83e\udd70!"], undefined],
  [`${TIMES}\n\n`, [TIMES, "\n\nit was"], "it was"],
  [`${TIMES}\n\n`, [TIMES, "it was"], undefined],
]);

checkAll("an exact repetition is dropped", [
  [TIMES, [TIMES, " it was"], " it was"],
  [TIMES, [`${TIMES} it`, " was"], " it was"],
  [`\n${TIMES}`, [TIMES, " it was"], " it was"],
  ["The quick brown", ["The quick brown fox"], " fox"],
  [numbered, [numbered, " END"], " END"],
  // A repetition of the end, 20 characters or more, with nothing before it.
  [TIMES, [TIMES.slice(-23), " it was"], " it was"],
  [numbered, [numbered.slice(-999), " END"], " END"],
  [
    "我们今天去公园散步，然后回家吃饭，晚上看电影聊天喝茶",
    ["去公园散步，然后回家吃饭，晚上看电影聊天喝茶。"],
    "。",
  ],
]);

checkAll("what may or may not be a repetition is refused", [
  [TIMES, [TIMES.slice(-19), " it was"], undefined],
  ["The quick bro", ["brown fox"], undefined],
  ["It is an internat", ["international law."], undefined],
  ["I like cats and dogs", [" and dogs"], undefined],
  ["I like cats and dogs", [" dogs"], undefined],
  ["The", ["The answer"], undefined],
  ["今日はとても良い学校です", ["学校です。"], undefined],
  // The line may be meant to occur twice.
  [TIMES, [`\n${TIMES}`, " it was"], undefined],
  [numbered, ["\n\n", numbered.slice(-999), " END"], undefined],
  // The same text occurs in several places.
  [dashes, [`${dashes}\n`], undefined],
  [`Title\n${dashes.slice(20)}`, [`${dashes.slice(20)}\n`], undefined],
  ["I said so. ".repeat(6), ["I said so. ".repeat(8)], undefined],
  // The repetition does not reach the end.
  [TIMES, [TIMES.slice(0, 40), " and more"], undefined],
  [numbered, [numbered.slice(-999, -501), " END"], undefined],
  [TIMES, [TIMES.slice(10, 40)], undefined],
]);

checkAll("another answer, or none, is refused", [
  ["The answer", [], undefined],
  ["The answer ", [], undefined],
  ["The answer", ["\n"], undefined],
  ["The answer", [" ".repeat(2_000)], undefined],
  [TIMES, [TIMES], undefined],
  [TIMES, [`${TIMES} `, "\n"], undefined],
  ["The cat sat on the mat", ["The dog sleeps"], undefined],
  [`${TIMES} and more`, ["\n", TIMES, " and less"], undefined],
]);

it("an empty answer is rejected also before a tool call", () => {
  const call: Part = { type: "tool_call", call: 0, id: "1", name: "f" };
  assert.throws(() => createJoiner("The answer").transform(call), { code: "upstream_error" });
  const { transform } = createJoiner("The answer");
  transform({ type: "text", text: " is" });
  assert.deepEqual(transform(call), [call]);
});

describe("random joints", () => {
  const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);
  const { between, pick } = createRandom(seed);
  const WORDS = ["the", "cat", "Café", "😀", "naïve", "a", "is", "123", "{", "}", "\n", "日本語"];
  /** A text in which no two parts can be confused. */
  const randomText = (): string =>
    Array.from({ length: between(1, 60) }, (_, at) => `${pick(WORDS)}${at}`).join(
      pick(["", " ", "  ", "\n"]),
    );
  const inPieces = (text: string): string[] => {
    const size = between(1, 300);
    return Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
      text.slice(at * size, (at + 1) * size),
    );
  };

  it(`give the complete text or a rejection, seed ${seed}`, () => {
    const rounds = LONG ? 200_000 : 20_000;
    const count = { gone: 0, repeated: 0, ended: 0, whole: 0, refused: 0 };
    for (let round = 0; round < rounds; round += 1) {
      const whole = randomText();
      const shown = whole.slice(0, between(1, whole.length));
      const beginning = prefillOf(shown);
      if (beginning === "") continue;
      const way = pick(["gone", "gone", "repeated", "ended"] as const);
      const from = { gone: beginning.length, repeated: 0, ended: between(0, beginning.length - 4) };
      const said = whole.slice(Math.max(0, from[way]));
      const text = joined(shown, inPieces(said));
      count[text === undefined ? "refused" : "whole"] += 1;
      if (text === undefined) continue;
      count[way] += 1;
      assert.equal(shown + text, whole, JSON.stringify({ way, shown, said }));
    }
    assert.ok(count.gone > rounds / 4, JSON.stringify(count));
    assert.ok(count.repeated > 0 && count.ended > 0, JSON.stringify(count));
  });
});
