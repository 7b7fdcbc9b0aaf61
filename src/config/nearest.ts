// The known name nearest to a misspelt one: "did you mean ...?".

/** Longer words are not compared, so that a hostile one costs nothing. */
const MAX_CHARS = 64;
/** More mistakes than this make another word. */
const MAX_MISTAKES = 3;
/** So many characters may have one mistake. */
const CHARS_PER_MISTAKE = 3;

/**
 * The name that a word comes closest to. Case, hyphens and underscores do not count. Undefined if
 * no name is close, or if several are equally close.
 */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  if (word.length > MAX_CHARS) return undefined;
  const typed = folded(word);
  const near = [...new Set(names)]
    .filter((name) => name.length <= 2 * MAX_CHARS)
    .map((name) => ({ name, mistakes: distance(typed, folded(name)) }))
    .filter(({ mistakes }) => mistakes <= mistakesAllowed(typed))
    .sort((a, b) => a.mistakes - b.mistakes);
  const isTied = near[0]?.mistakes === near[1]?.mistakes;
  return isTied ? undefined : near[0]?.name;
}

/** The question for a message: `did you mean "port"?`; undefined as nearest() has it. */
export function didYouMean(word: string, names: Iterable<string>): string | undefined {
  const name = nearest(word, names);
  return name === undefined ? undefined : `did you mean ${JSON.stringify(name)}?`;
}

const folded = (text: string): string => text.toLowerCase().replace(/[-_]/g, "");

const mistakesAllowed = ({ length }: string): number =>
  Math.min(MAX_MISTAKES, Math.floor(length / CHARS_PER_MISTAKE));

/**
 * How many characters were left out, added, replaced, or exchanged with the one beside them (the
 * optimal string alignment distance).
 */
function distance(one: string, other: string): number {
  // The distances of the first characters of `one`, two fewer, one fewer and all, to those of the
  // other.
  let before: readonly number[] = [];
  let above: readonly number[] = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = above[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      const isExchanged = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const exchanged = isExchanged ? before[j - 2]! + 1 : Infinity;
      row.push(Math.min(above[j]! + 1, row[j - 1]! + 1, replaced, exchanged));
    }
    before = above;
    above = row;
  }
  return above[other.length]!;
}
