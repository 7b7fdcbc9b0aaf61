// How the text of another attempt is joined to the text that was shown before a stream broke. It is
// pure: texts in, the text to be shown out. Whatever cannot be told for certain is refused, because
// a doubled or missing word would be a lie about the reply.
import { ProviderError } from "../../core/providers/provider-error.ts";
import { searchEndings, type EndingSearch } from "./endings.ts";
import { hasWholeWord, hasWord } from "./words.ts";

/** Joins the pieces of one attempt. */
export interface Joint {
  /**
   * Takes the next piece. Returns what can be shown of it now, "" if that is not known yet. Throws
   * a ProviderError if the attempt does not go on from what was shown.
   */
  push(text: string): string;
  /**
   * No further text is to be considered. Returns what was not known yet. Throws as `push`.
   * `isCut`: the model did not end it, but max_tokens or a filter.
   */
  settle(isCut: boolean): string;
}

/**
 * A text that begins as a whole like what was shown is a repetition if that is so long. A shorter
 * one may begin like it by chance.
 */
const MIN_REPEATED = 32;
/**
 * A text that begins like what was shown for so many characters, and then differs, is another
 * answer.
 */
const MIN_ALIKE = 8;
/** Blanks before the first word of a text. */
const MAX_BLANKS = 1_000;
/** Characters of a text that are held back because they stand somewhere in what was shown too. */
const MAX_HELD = 10_000;

/**
 * The attempt cannot be used. It is the work of this text alone, so the breaker does not count it,
 * and to ask again would bring the same.
 */
const refused = (why: string): ProviderError =>
  new ProviderError("upstream_error", `the stream cannot be joined: ${why}`, {
    fromContent: true,
    permanent: true,
  });

/**
 * The part of a text that a model is asked to go on from: without blanks at its end, which many
 * servers remove, and without half of a character.
 */
export const beginningOf = (shown: string): string =>
  shown.replace(/[\uD800-\uDBFF]$/, "").trimEnd();

/** Joins an attempt that was asked from the start: it must repeat all that was shown. */
export function joinRepeated(shown: string): Joint {
  let matched = 0;
  return {
    push(text) {
      const left = shown.length - matched;
      const repeated = text.slice(0, left);
      if (!shown.startsWith(repeated, matched))
        throw refused("its text differs from what was shown");
      matched += repeated.length;
      return text.slice(left);
    },
    settle() {
      if (matched < shown.length) throw refused("its text ends before what was shown");
      return "";
    },
  };
}

/**
 * Joins an attempt that was asked to go on from `beginningOf(shown)`. First it is compared with the
 * start of what was shown, then with the words that it ended in. The blanks before the first word
 * do not count there: models and servers add and drop them.
 */
export function joinContinued(shown: string): Joint {
  const beginning = beginningOf(shown);
  /** What was shown and is not a part of the beginning. The model says it once more. */
  const cutOff = shown.slice(beginning.length);
  const start = compareWithStart(shown);
  /** The blanks that the attempt begins with. */
  let blanks = "";
  let endings: EndingSearch | undefined;
  /** What the attempt says after them, and what is not shown yet. */
  let held = "";
  let joined = false;

  function show(): string {
    joined = true;
    return (blanks + held).slice(cutOff.length);
  }

  /** Takes blanks. Returns what follows them. */
  function takeBlanks(text: string): string {
    const rest = text.trimStart();
    blanks += text.slice(0, text.length - rest.length);
    if (blanks.length > cutOff.length + MAX_BLANKS) throw refused("it begins with too many blanks");
    return rest;
  }

  /** Takes what may be a repetition from the start, or another answer. */
  function takeFromStart(text: string): string {
    const { state, rest } = start.take(text, blanks);
    if (state === "repeated") return takeNew(rest);
    return state === "other" ? takeOther(rest) : "";
  }

  /** Takes what follows a repetition of all that was shown. */
  function takeNew(text: string): string {
    held += text;
    if (held.length > MAX_BLANKS && held.trim() === "")
      throw refused("it goes on with too many blanks");
    joined = held.trim() !== "";
    return joined ? held : "";
  }

  /** Takes what does not begin like what was shown. */
  function takeOther(text: string): string {
    if (!endings && !(blanks + text.charAt(0)).startsWith(cutOff))
      throw refused("it goes on without the blanks that were shown");
    endings ??= searchEndings(beginning, blanks !== "");
    // However the pieces are cut, no more is compared than may be held.
    const found = endings.take(text.slice(0, MAX_HELD + 1 - held.length));
    held += text;
    if (found === "repeated") throw refused(REPEATS_END);
    if (found === "new") return show();
    if (held.length > MAX_HELD) throw refused("it says too much of what was shown once more");
    return "";
  }

  return {
    push(text) {
      if (joined) return text;
      if (cutOff.length > MAX_BLANKS) throw refused("what was shown ends in too many blanks");
      if (endings) return takeOther(text);
      if (start.isOver()) return takeNew(text);
      const rest = start.hasBegun() ? text : takeBlanks(text);
      return rest === "" ? "" : takeFromStart(rest);
    },
    settle(isCut) {
      if (joined) return "";
      // A server that takes the beginning for a complete turn adds nothing, and so does a model
      // that had said all: these cannot be told apart.
      if (!start.hasBegun() || start.isOver()) throw refused(ADDS_NOTHING);
      const last = endings ? "" : takeOther(start.end(blanks));
      if (joined) return last;
      if (endings?.end(isCut) === "repeated") throw refused(REPEATS_END);
      const rest = show();
      if (rest.trim() === "") throw refused(ADDS_NOTHING);
      return rest;
    },
  };
}

const REPEATS_END = "it repeats the last words that were shown";
const ADDS_NOTHING = "it adds nothing to what was shown";

/** What is known of a text that may repeat what was shown from its start. */
interface FromStart {
  /**
   * "alike": it does so far. "repeated": it has repeated all. "other": it does not begin like it,
   * not for as much as a word.
   */
  readonly state: "alike" | "repeated" | "other";
  /** What follows the repetition; of an "other" text all of it. "" where it is "alike". */
  readonly rest: string;
}

interface StartComparison {
  /**
   * Takes the next piece of a text, of which `blanks` stood before. Throws where the text may be a
   * repetition or not, and where it is another answer.
   */
  take(piece: string, blanks: string): FromStart;
  /** A text has come. */
  hasBegun(): boolean;
  /** All that was shown has been repeated. */
  isOver(): boolean;
  /** The text has ended, and was "alike". Returns all of it. Throws as `take`. */
  end(blanks: string): string;
}

/** Compares a text with the start of what was shown, both without the blanks before them. */
function compareWithStart(shown: string): StartComparison {
  const start = shown.trimStart();
  const shownBlanks = shown.slice(0, shown.length - start.length);
  let matched = 0;
  let begun = false;

  /** Whether the text is another answer. `rest`: what follows what is alike. */
  function isAnother(rest: string, blanks: string): boolean {
    const alike = start.slice(0, matched);
    const hasSameBlanks = blanks === shownBlanks;
    // After a line break of its own a text may well begin with the same sign: the next of a list.
    if (blanks !== "" && !hasSameBlanks && !hasWord(alike)) return false;
    const length = hasSameBlanks ? blanks.length + matched : matched;
    if (length >= MIN_ALIKE || /\S\s/.test(alike)) return true;
    return hasWholeWord(alike, rest, start.slice(matched));
  }

  return {
    take(piece, blanks) {
      begun = true;
      const before = matched;
      const length = sharedLength(piece, start, matched);
      matched += length;
      const rest = piece.slice(length);
      if (matched === start.length) {
        const isCertain = start.length >= MIN_REPEATED && !isOneTextAgainAndAgain(start);
        // After a blank the same words may be said once more, such as a line of a song.
        if (isCertain && blanks === "") return { state: "repeated", rest };
        throw refused("it may repeat what was shown, or begin like it");
      }
      if (rest === "") return { state: "alike", rest };
      if (isAnother(rest, blanks)) throw refused("it is another answer, from the start");
      return { state: "other", rest: start.slice(0, before) + piece };
    },
    hasBegun: () => begun,
    isOver: () => begun && matched === start.length,
    end(blanks) {
      if (isAnother("", blanks)) throw refused("it repeats a part of what was shown");
      return start.slice(0, matched);
    },
  };
}

/** How many characters at the beginning of `text` stand in `other` too, from `at` on. */
function sharedLength(text: string, other: string, at: number): number {
  let length = 0;
  while (length < text.length && text[length] === other[at + length]) length += 1;
  return length;
}

/**
 * Whether a text is a shorter one said several times, such as a line of dashes. What goes on with
 * it may look like a repetition of all of it.
 */
function isOneTextAgainAndAgain(text: string): boolean {
  const { length } = text;
  let rest = length;
  for (let factor = 2; factor <= rest; factor += 1) {
    if (rest % factor !== 0) continue;
    while (rest % factor === 0) rest /= factor;
    // For each prime factor: it is that many times the same.
    const period = length / factor;
    if (text.startsWith(text.slice(period))) return true;
  }
  return false;
}
