// Joining the text of another attempt to what was shown: the whole text, or a refusal.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  beginningOf,
  joinContinued,
  joinRepeated,
  type Joint,
} from "../../../src/extensions/recovery/joint.ts";
import { LONG } from "../../support/long.ts";
import { createRandom } from "../../support/random.ts";

/** What is shown of a text that comes in these pieces; undefined: it is refused. */
function joined(joint: Joint, pieces: readonly string[]): string | undefined {
  try {
    return pieces.map((piece) => joint.push(piece)).join("") + joint.settle();
  } catch {
    return undefined;
  }
}

describe("a continuation", () => {
  const CASES: readonly [shown: string, pieces: readonly string[], joined: string | undefined][] = [
    ["The quick", [" brown", " fox"], " brown fox"],
    ["The quick ", [" brown"], "brown"],
    ["The quick ", ["brown"], undefined],
    ["The quick\n\n", ["\n", "\nbrown"], "brown"],
    ["The quick bro", ["wn fox"], "wn fox"],
    ["The quick bro", ["brown fox"], undefined],
    ["The quick", [" qu", "ick brown"], undefined],
    ["The quick", [" quicker"], " quicker"],
    ["It is a", [" apple"], " apple"],
    ["if (a) {\n  b();\n}\n", ["\n}\n"], "}\n"],
    ["The answer", [], undefined],
    ["The answer ", [], undefined],
    ["The answer", ["\n"], undefined],
    ["The cat sat on the mat", ["The cat sleeps"], undefined],
    ["The cat sat on the mat", ["The cat"], undefined],
    ["international", ["national law"], undefined],
    ["我们今天去公园散步", ["公园散步然后回家"], undefined],
    ["我们今天去公园散步", ["然后回家"], "然后回家"],
    ["a", [" ".repeat(2_000)], undefined],
    ["The answer", ["."], "."],
    ["The answer", ["The answer is 5"], undefined],
    ["smile \ud83d", [" \ud83d", "\ude00!"], "\ude00!"],
    ["smile \ud83d", [" \ud83d\ude00!"], "\ude00!"],
    ["smile \ud83d", [" \ud83e\udd70!"], undefined],
  ];
  for (const [shown, pieces, expected] of CASES)
    it(`${JSON.stringify(shown)} + ${JSON.stringify(pieces)}`, () =>
      assert.equal(joined(joinContinued(shown), pieces), expected));

  it("that repeats all of a long text is shown from its end", () => {
    const shown = "It was the best of times, it was the worst of times,";
    assert.equal(joined(joinContinued(shown), [shown, " it was"]), " it was");
    assert.equal(joined(joinContinued(shown), [`${shown} it`, " was"]), " it was");
    assert.equal(joined(joinContinued(shown), [shown.slice(0, 40)]), undefined);
    assert.equal(joined(joinContinued(shown), [`${shown.slice(0, 40)} and more`]), undefined);
  });

  it("that may be more of a pattern, or a repetition of it, is refused", () => {
    const dashes = "-".repeat(40);
    assert.equal(joined(joinContinued(dashes), [`${dashes}\n`]), undefined);
    assert.equal(
      joined(joinContinued("I said so. ".repeat(6)), ["I said so. ".repeat(8)]),
      undefined,
    );
  });

  it("is shown piece by piece once it is known to go on", () => {
    const joint = joinContinued("The quick");
    assert.deepEqual(
      [" ", "b", "rown", " The quick"].map((piece) => joint.push(piece)),
      ["", " b", "rown", " The quick"],
    );
  });
});

describe("a repetition", () => {
  it("is shown from where it is new", () => {
    assert.equal(joined(joinRepeated("The qu"), ["The", " quick", " fox"]), "ick fox");
    assert.equal(joined(joinRepeated("The"), ["The"]), "");
  });

  it("is refused where it differs, and where it ends too soon", () => {
    assert.equal(joined(joinRepeated("The qu"), ["The", " slow"]), undefined);
    assert.equal(joined(joinRepeated("The qu"), ["The"]), undefined);
  });
});

describe("random joints", () => {
  const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);
  const { between, pick } = createRandom(seed);
  const integer = (below: number): number => between(0, below - 1);
  const WORDS = [
    "the",
    "cat",
    "Café",
    "😀",
    "naïve",
    "a",
    "is",
    "123",
    "{",
    "}",
    "\n",
    "- ",
    "日本語",
    "👩‍💻",
  ];

  const randomText = (): string =>
    Array.from({ length: 1 + integer(40) }, () => pick(WORDS)).join(pick(["", " ", " ", "  "]));

  function inPieces(text: string): string[] {
    const pieces: string[] = [];
    for (let at = 0; at < text.length; ) {
      const size = 1 + integer(6);
      pieces.push(text.slice(at, at + size));
      at += size;
    }
    return pieces;
  }

  /**
   * How a provider goes on: from where the beginning ended, or repeating something. Signs alone are
   * not told apart from new ones, so only words are repeated.
   */
  const WAYS: Readonly<Record<string, (whole: string, shown: string) => string>> = {
    "goes on": (whole, shown) => whole.slice(beginningOf(shown).length),
    "repeats all": (whole) => whole,
    "repeats the last word": (whole, shown) => {
      const word = /\S*$/.exec(beginningOf(shown))![0];
      const repeated = /[\p{L}\p{N}]/u.test(word) ? word : "";
      return repeated + whole.slice(beginningOf(shown).length);
    },
    "drops its first blanks": (whole, shown) => whole.slice(beginningOf(shown).length).trimStart(),
    "adds nothing": () => "",
    "begins in the middle of a character": (whole, shown) => whole.slice(shown.length),
    "answers otherwise": (whole) => `${whole.slice(0, whole.length / 2)}#${whole}`,
  };
  /** Where a wrong joint cannot be told from a right one, only a refusal is sure. */
  const isTellable = (name: string, whole: string, shown: string): boolean => {
    const cutOff = shown.slice(beginningOf(shown).length);
    if (name === "drops its first blanks") return /^\s/.test(cutOff);
    if (name === "begins in the middle of a character") return /[\uD800-\uDBFF]$/.test(shown);
    if (name !== "answers otherwise") return true;
    const alike = whole.slice(0, whole.length / 2);
    return shown.length > alike.length && (alike.length >= 8 || /\S\s/.test(alike));
  };

  it(`are the whole text or refused, seed ${seed}`, () => {
    const outcomes = { whole: 0, refused: 0 };
    const rounds = LONG ? 200_000 : 20_000;
    while (outcomes.whole + outcomes.refused < rounds) {
      const whole = randomText();
      const shown = whole.slice(0, 1 + integer(whole.length));
      const [name, way] = pick(Object.entries(WAYS));
      if (!isTellable(name, whole, shown)) continue;
      const text = joined(joinContinued(shown), inPieces(way(whole, shown)));
      if (text !== undefined) assert.equal(shown + text, whole, JSON.stringify({ name, shown }));
      outcomes[text === undefined ? "refused" : "whole"] += 1;
    }
    assert.ok(outcomes.whole > 5_000, JSON.stringify(outcomes));
  });
});
