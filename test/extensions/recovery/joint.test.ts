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
function joined(joint: Joint, pieces: readonly string[], isCut = false): string | undefined {
  try {
    return pieces.map((piece) => joint.push(piece)).join("") + joint.settle(isCut);
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
    ["The quick", [" quicker"], undefined],
    ["It is a", [" apple"], " apple"],
    ["The quick", [" quiet"], " quiet"],
    ["It is an internat", ["international law."], undefined],
    ["It is an internat", [" international law."], undefined],
    ["It is an internat", [" an international law."], undefined],
    ["The weather", [" there"], " there"],
    ["The banana band", [" nana bandit"], undefined],
    ["international", [" national law"], undefined],
    ["I like cats and dogs", [" and dogs"], undefined],
    ["I like cats and dogs", [" dogs"], undefined],
    ["I like cats and dogs", [" cats and"], undefined],
    ["I like cats and dogs", [" and"], " and"],
    ["a b a b", [" a b x"], undefined],
    ["x that that", [" that thatch"], undefined],
    ["if (a) {\n  b();\n}\n", ["\n}\n"], "}\n"],
    ["The answer", [], undefined],
    ["The answer ", [], undefined],
    ["The answer", ["\n"], undefined],
    ["The cat sat on the mat", ["The cat sleeps"], undefined],
    ["The cat sat on the mat", ["The cat"], undefined],
    ["international", ["national law"], undefined],
    ["我们今天去公园散步", ["公园散步然后回家"], undefined],
    ["我们今天去公园散步", ["然后回家"], "然后回家"],
    ["我们今天去公园", ["公园散步"], undefined],
    ["我们今天去公园", [" 公园散步"], undefined],
    ["我们今天去公园。", ["公园。"], undefined],
    ["我们说谢", ["谢你"], "谢你"],
    ["今日は学校です", ["です。"], undefined],
    ["スーパー", ["パーへ"], undefined],
    ["ฉันชอบกิน", ["กินข้าว"], undefined],
    ["我们今天去公园", ["我们明天在家"], undefined],
    ["我们今天去公园", ["\n我们明天在家"], undefined],
    ["a", [" ".repeat(2_000)], undefined],
    ["The answer", ["."], "."],
    [
      "Sure, here is a short story about a brave dog who",
      [" Sure, here is a short story about a brave dog named Rex."],
      undefined,
    ],
    [
      "The cat sat on the mat and looked at the",
      ["\n", "\nThe cat sat on", " the sofa and slept."],
      undefined,
    ],
    [" The cat sat on the mat", ["The cat sleeps on the sofa."], undefined],
    ["\n\nThe cat sat on the mat", [" The cat sleeps"], undefined],
    ["Sure, it is", ["\nSure! It is"], undefined],
    ["The cat sat", [" The"], undefined],
    ["The cat sat", [" Then it slept"], " Then it slept"],
    ["The cat sat ", [" The cat sat on"], undefined],
    ["- apples\n- pears", ["\n- plums"], "\n- plums"],
    ["\n- apples\n- pears", ["\n- plums"], undefined],
    ["- apples\n- pears", ["- plums"], undefined],
    ["1. apples\n2. pears", ["\n1. plums"], undefined],
    ["a", [" apple"], undefined],
    [" ", ["a"], undefined],
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
    assert.equal(joined(joinContinued(shown), [shown, " ", " it was"]), "  it was");
    assert.equal(joined(joinContinued(shown), [shown]), undefined);
    assert.equal(joined(joinContinued(shown), [`${shown} `, "\n"]), undefined);
    assert.equal(joined(joinContinued(shown), [`${shown.slice(0, 40)} and more`]), undefined);
  });

  it("that repeats all of a long text after or without blanks", () => {
    const shown = "It was the best of times, it was the worst of times,";
    assert.equal(joined(joinContinued(`\n${shown}`), [shown, " it was"]), " it was");
    assert.equal(joined(joinContinued(`${shown}\n\n`), [shown, "\n\nit was"]), "it was");
    // It may be a line that is to be said twice.
    assert.equal(joined(joinContinued(shown), [`\n${shown}`, " it was"]), undefined);
    assert.equal(joined(joinContinued(`\n${shown}`), [`\n${shown}`, " it was"]), undefined);
  });

  it("that repeats the last words is refused, however many they are", () => {
    const numbered = Array.from({ length: 400 }, (_, at) => `word${at}`);
    const shown = numbered.join(" ");
    for (const from of [1, 100, 200, 300, 399])
      for (const blanks of ["", " ", "\n\n"])
        for (const lead of ["", "\n", "Intro here. "]) {
          const pieces = [blanks, ...numbered.slice(from).join(" ").split(/(?= )/), " END"];
          assert.equal(joined(joinContinued(lead + shown), pieces), undefined, `${from}`);
        }
    assert.equal(joined(joinContinued(shown), [`\n${shown} END`]), undefined);
    assert.equal(joined(joinContinued(`\n${shown}`), [`${shown} END`]), " END");
  });

  it("that says an earlier part once more is shown from where it differs, or refused", () => {
    const verse = Array.from({ length: 300 }, (_, at) => `word${at}`).join(" ");
    const again = "word5 word6 word7 but now";
    assert.equal(
      joined(joinContinued(verse), ["\n", "word5 word6", " word7", " but now"]),
      `\n${again}`,
    );
    const long = `${"x".repeat(9)} `.repeat(2_000);
    const shown = `Begin. ${long} end`;
    assert.equal(
      joined(joinContinued(shown), [` ${long.slice(0, 9_000)}!`]),
      ` ${long.slice(0, 9_000)}!`,
    );
    assert.equal(joined(joinContinued(shown), [` ${long}`, "!"]), undefined);
    // However it is cut.
    const tooLong = ` ${long.slice(0, 10_500)}!`;
    assert.equal(joined(joinContinued(shown), [tooLong]), undefined);
    assert.equal(joined(joinContinued(shown), [...tooLong]), undefined);
  });

  it("that ends within what it says once more is refused, if it was cut or is long", () => {
    const shown = "I like cats and dogs";
    assert.equal(joined(joinContinued(shown), [" and"], true), undefined);
    assert.equal(joined(joinContinued(shown), [" so"], true), " so");
    assert.equal(joined(joinContinued(shown), [" cats and"]), undefined);
  });

  it("is compared in work that grows with the texts only", () => {
    // Each of these would take minutes if every place were compared by itself.
    const many = "a".repeat(2_000_000);
    assert.equal(
      joined(joinContinued(`x${many}b`), [...many.slice(0, 9_999), "c"])?.length,
      10_000,
    );
    assert.equal(
      joined(joinContinued(`${many}ba`), [...many.slice(0, 9_999), "b", "!"]),
      undefined,
    );
    assert.equal(
      joined(joinContinued(`x${"-".repeat(2_000_000)}`), ["\n", ..."-".repeat(9_000)]),
      `\n${"-".repeat(9_000)}`,
    );
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

  // Now and then a text of some thousand characters.
  const randomText = (): string =>
    Array.from({ length: 1 + integer(integer(50) === 0 ? 1_500 : 40) }, () => pick(WORDS)).join(
      pick(["", " ", " ", "  "]),
    );
  const randomBlanks = (): string => pick(["", "", " ", "\n", "\n\n", " \t"]);

  function inPieces(text: string): string[] {
    const pieces: string[] = [];
    for (let at = 0; at < text.length; ) {
      const size = 1 + integer(6);
      pieces.push(text.slice(at, at + size));
      at += size;
    }
    return pieces;
  }

  const hasWord = (text: string): boolean => /[\p{L}\p{N}]/u.test(text);
  const isUnspaced = (text: string): boolean => (text.match(/\p{sc=Han}/gu) ?? []).length >= 2;

  /** A random ending of a text, and whether it is a repetition where it comes once more. */
  function randomEnding(beginning: string, blanks: string, next: string): [string, boolean] {
    const from = integer(beginning.length);
    const ending = beginning.slice(from).trimStart();
    const before = beginning.slice(0, beginning.length - ending.length);
    const isOfWords = /(^|\s)$/.test(before);
    const isApart = blanks === "" || !/^[\p{L}\p{N}]/u.test(next);
    const isLong = ending.length >= 4 || isUnspaced(ending);
    const isSeveral = ending.length >= 8 || /\s/.test(ending) || isUnspaced(ending);
    const isEnough = isLong && (isOfWords || isSeveral);
    const isTold = isEnough || (isApart && (isLong || isOfWords));
    return [ending, hasWord(ending) && isTold && !/^[\uDC00-\uDFFF]/.test(ending)];
  }

  /** What a provider says. Undefined: a wrong joint could not be told from a right one. */
  type Way = (whole: string, shown: string) => string | undefined;
  const startOf = (whole: string): string => whole.slice(0, whole.length / 2);

  /** How a provider goes on: from where the beginning ended, or repeating something. */
  const WAYS: Readonly<Record<string, Way>> = {
    "goes on": (whole, shown) => whole.slice(beginningOf(shown).length),
    "repeats all": (whole) => whole,
    "repeats all, with other blanks": (whole) => randomBlanks() + whole.trimStart(),
    "repeats the last word": (whole, shown) => {
      const word = /\S*$/.exec(beginningOf(shown))![0];
      // Signs alone are not told apart from new ones.
      return (hasWord(word) ? word : "") + whole.slice(beginningOf(shown).length);
    },
    "repeats the last words": (whole, shown) => {
      const beginning = beginningOf(shown);
      if (beginning === "") return undefined;
      const rest = whole.slice(beginning.length);
      const blanks = randomBlanks();
      const [ending, isTold] = randomEnding(beginning, blanks, rest);
      return isTold ? blanks + ending + rest : undefined;
    },
    "ends while it repeats": (_, shown) => {
      const [ending] = randomEnding(beginningOf(shown) || "x", "", "");
      const part = ending.slice(0, 8 + integer(ending.length));
      return part.length >= 8 && hasWord(part) ? randomBlanks() + part : undefined;
    },
    "drops its first blanks": (whole, shown) => {
      const { length } = beginningOf(shown);
      return /^\s/.test(shown.slice(length)) ? whole.slice(length).trimStart() : undefined;
    },
    "adds nothing": () => "",
    "begins in the middle of a character": (whole, shown) =>
      /[\uD800-\uDBFF]$/.test(shown) ? whole.slice(shown.length) : undefined,
    "answers otherwise": (whole, shown) => {
      const alike = startOf(whole);
      const isTold = shown.length > alike.length && (alike.length >= 8 || /\S\s/.test(alike));
      return isTold ? `${alike}#${whole}` : undefined;
    },
    "answers otherwise, with other blanks": (whole, shown) => {
      const alike = startOf(whole.trimStart());
      const isTold = shown.trimStart().length > alike.length && hasWord(alike);
      return isTold && (alike.length >= 8 || /\S\s/.test(alike))
        ? `${randomBlanks()}${alike}#${whole}`
        : undefined;
    },
  };

  /** How many joints came out whole, and how many were refused. */
  const countJoints = (of: readonly string[], rounds: number) => {
    const outcomes = { whole: 0, refused: 0 };
    while (outcomes.whole + outcomes.refused < rounds) {
      const whole = randomText();
      const shown = whole.slice(0, 1 + integer(whole.length));
      const name = pick(of);
      const said = WAYS[name]!(whole, shown);
      if (said === undefined) continue;
      const text = joined(joinContinued(shown), inPieces(said));
      outcomes[text === undefined ? "refused" : "whole"] += 1;
      if (text !== undefined)
        assert.equal(shown + text, whole, JSON.stringify({ name, shown, said }));
    }
    return outcomes;
  };
  const rounds = LONG ? 200_000 : 20_000;

  it(`are the whole text or refused, seed ${seed}`, () => {
    const { whole } = countJoints([...Object.keys(WAYS), "goes on", "goes on"], rounds);
    assert.ok(whole > rounds / 4, `${whole}`);
  });

  it(`are hardly refused where they go on, seed ${seed}`, () => {
    // The words of these texts come again and again: those of real ones do so less.
    const { whole } = countJoints(["goes on"], rounds / 10);
    assert.ok(whole > (rounds / 10) * 0.8, `${whole}`);
  });
});
