// Whether a text begins with the words that another one ends in. The text comes in pieces. It is
// compared with the whole of the other one, in work that grows with the length of both only: by the
// algorithm of Knuth, Morris and Pratt, whose pattern grows here while the search goes on.
import { beginsInWord, hasUnspacedWord, hasWord } from "./words.ts";

/**
 * "repeated": the text begins with an ending of the other one, or may do so. "open": what follows
 * decides, because so far the text stands somewhere in the other one.
 */
export type Finding = "repeated" | "new" | "open";

export interface EndingSearch {
  /** Takes the next piece. Once the finding is not "open", no more is taken. */
  take(piece: string): Finding;
  /**
   * The text has ended: never "open". `isCut`: the model did not end it, so that it might have said
   * more.
   */
  end(isCut: boolean): Finding;
}

/**
 * So many characters at the end of what was shown, said once more, are a repetition. Of scripts
 * without blanks two are enough.
 */
const MIN_ENDING = 4;
/**
 * So many are a repetition wherever they begin and end. A whole text of so many characters that
 * stands in the other one may be a part of an ending.
 */
const MIN_PART = 8;
/** Signs at the end of a text that are counted. */
const MAX_SIGNS = 10_000;

/**
 * `shown`: the other text; it does not end in a blank. `isApart`: a blank stands before the text,
 * so that it begins with a word of its own. The text itself begins without a blank.
 */
export function searchEndings(shown: string, isApart: boolean): EndingSearch {
  const lastWord = lastWordOf(shown);
  const signsAtEnd = signsAtEndOf(shown);
  /** The text so far, by its UTF-16 units. */
  const said: number[] = [];
  /** By a length: how much of the beginning of the text so long stands at its end too. */
  const borders: number[] = [0];
  let saysWord = false;
  /** What was shown before this place is searched. */
  let at = 0;
  /** So much of the text stands before `at`. All of it: the search waits for more. */
  let matched = 0;
  let ended = false;

  function append(unit: number): void {
    const { length } = said;
    let border = borders[length]!;
    while (border > 0 && said[border] !== unit) border = borders[border]!;
    said.push(unit);
    borders.push(length > 0 && said[border] === unit ? border + 1 : 0);
  }

  function search(): void {
    while (at < shown.length && (ended || matched < said.length)) {
      const unit = shown.charCodeAt(at);
      if (matched === said.length) matched = borders[matched]!;
      while (matched > 0 && said[matched] !== unit) matched = borders[matched]!;
      if (said[matched] === unit) matched += 1;
      at += 1;
    }
  }

  /** What it means if the text begins with the last characters that were shown, so many. */
  function kindOf(length: number): "chance" | "words" | "repetition" {
    // Two closing brackets in a row are nothing unusual.
    if (length <= signsAtEnd) return "chance";
    const isUnspaced = hasUnspacedWord(shown.slice(-Math.min(length, MIN_PART)));
    if (isUnspaced || length >= MIN_PART) return "repetition";
    const isLong = length >= MIN_ENDING;
    // "internat" and "international" are the same word, "weather" and "there" are two.
    if (isLong && length >= lastWord) return "repetition";
    return isLong || /^\s?$/.test(shown.charAt(shown.length - length - 1)) ? "words" : "chance";
  }

  /** As `kindOf`. Words that end where the text has a longer word are new: "a" and "apple". */
  function judge(length: number): Finding {
    const kind = kindOf(length);
    if (kind === "chance") return "new";
    if (!isApart || kind === "repetition") return "repeated";
    const next = String.fromCharCode(...said.slice(length, length + 2));
    if (!ended && /^[\uD800-\uDBFF]?$/.test(next)) return "open";
    return beginsInWord(next) ? "new" : "repeated";
  }

  function finding(): Finding {
    if (at < shown.length) return "open";
    for (let length = matched; length > 0; length = borders[length]!) {
      const found = judge(length);
      if (found !== "new") return found;
    }
    return "new";
  }

  return {
    take(piece) {
      saysWord ||= hasWord(piece);
      for (let index = 0; index < piece.length; index += 1) {
        append(piece.charCodeAt(index));
        search();
        const found = finding();
        if (found !== "open") return found;
      }
      return "open";
    },
    end(isCut) {
      ended = true;
      const isPart = at < shown.length && matched === said.length && saysWord;
      if (isPart && (isCut || matched >= MIN_PART)) return "repeated";
      search();
      return finding();
    },
  };
}

/** The length of the last word, between blanks. */
function lastWordOf(text: string): number {
  let length = 0;
  while (length < text.length && /\S/.test(text.charAt(text.length - 1 - length))) length += 1;
  return length;
}

/** How many characters at the end of a text are signs: MAX_SIGNS at most. */
function signsAtEndOf(text: string): number {
  const end = text.slice(-MAX_SIGNS);
  let place = end.length;
  while (place > 0 && !/[\p{L}\p{N}]$/u.test(end.slice(Math.max(0, place - 2), place))) place -= 1;
  return end.length - place;
}
