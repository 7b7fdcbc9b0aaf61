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
  let found: string | undefined;
  let fewest = mistakesAllowed(typed) + 1;
  let isTied = false;
  for (const name of new Set(names)) {
    const known = folded(name);
    if (Math.abs(known.length - typed.length) > fewest) continue;
    const mistakes = distance(typed, known);
    if (mistakes > fewest) continue;
    isTied = mistakes === fewest;
    fewest = mistakes;
    found = name;
  }
  return isTied || fewest > mistakesAllowed(typed) ? undefined : found;
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
  // rows[i][j]: the distance of the first i characters to the first j of the other.
  const rows = [Array.from({ length: other.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) row.push(step(rows, row, [i, j], [one, other]));
    rows.push(row);
  }
  return rows[one.length]![other.length]!;
}

function step(
  rows: readonly (readonly number[])[],
  row: readonly number[],
  [i, j]: readonly [number, number],
  [one, other]: readonly [string, string],
): number {
  const above = rows[i - 1]!;
  const isSame = one[i - 1] === other[j - 1];
  const least = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (isSame ? 0 : 1));
  const isExchanged = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
  return isExchanged ? Math.min(least, rows[i - 2]![j - 2]! + 1) : least;
}
