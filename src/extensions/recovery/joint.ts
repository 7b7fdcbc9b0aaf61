// How the text of another attempt is joined to the text that was shown before a stream broke. It is
// pure: texts in, the text to be shown out. Whatever cannot be told for certain is refused, because
// a doubled or missing word would be a lie about the reply.
import { ProviderError } from "../../core/providers/provider-error.ts";

/** Joins the pieces of one attempt. */
export interface Joint {
  /**
   * Takes the next piece. Returns what can be shown of it now, "" if that is not known yet. Throws
   * a ProviderError if the attempt does not go on from what was shown.
   */
  push(text: string): string;
  /** No further text is to be considered. Returns what was not known yet. Throws as `push`. */
  settle(): string;
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
/** Characters at the end of what was shown that are looked through for repeated words. */
const WINDOW = 1_000;
/** So many characters at the end of a word, said once more, are a repetition. */
const MIN_WORD_END = 4;

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

/** Joins an attempt that was asked to go on from `beginningOf(shown)`. */
export function joinContinued(shown: string): Joint {
  const beginning = beginningOf(shown);
  /** What was shown and is not a part of the beginning. The model says it once more. */
  const cutOff = shown.slice(beginning.length);
  // A model that repeats words repeats those that it was given, or those that were shown.
  const given = lastWords(beginning);
  const words = lastWords(shown);
  /** As long as the attempt repeats what was shown from its start: how much of it. */
  let repeated: number | undefined = 0;
  let held = "";
  let joined = false;

  /** Takes a piece of a repetition. Returns what follows it; undefined: it goes on, or is none. */
  function takeRepeated(text: string, matched: number): string | undefined {
    const piece = text.slice(0, shown.length - matched);
    if (!shown.startsWith(piece, matched)) {
      const alike = shown.slice(0, matched + sharedLength(piece, shown.slice(matched)));
      if (isAnotherAnswer(alike)) throw refused("it is another answer, from the start");
      repeated = undefined;
      held = shown.slice(0, matched) + text;
      return undefined;
    }
    repeated = matched + piece.length;
    if (repeated < shown.length) return undefined;
    if (shown.length >= MIN_REPEATED && !isOneTextAgainAndAgain(shown))
      return text.slice(piece.length);
    throw refused("it may repeat what was shown, or begin like it");
  }

  /** What is new of a text that is no repetition. Undefined: more text is needed to tell. */
  function newIn(text: string, ended: boolean): string | undefined {
    if (!text.startsWith(cutOff)) {
      if (!ended && cutOff.startsWith(text)) return undefined;
      throw refused("it goes on without the blanks that were shown");
    }
    const rest = text.slice(cutOff.length);
    if (!ended && rest.length > WINDOW && rest.trimStart() === "")
      throw refused("it goes on with too many blanks");
    const found = [given.in(text, ended), words.in(rest, ended)];
    if (found.includes("repeated")) throw refused("it repeats the last words that were shown");
    return found.includes("unknown") ? undefined : rest;
  }

  function show(text: string | undefined): string {
    joined = text !== undefined;
    return text ?? "";
  }

  /**
   * What is new of a text that has ended. A server that takes the beginning for a complete turn
   * adds nothing, and so does a model that had said all: these cannot be told apart.
   */
  function showLast(text: string): string {
    const rest = newIn(text, true) ?? "";
    if (rest.trim() === "") throw refused("it adds nothing to what was shown");
    return show(rest);
  }

  return {
    push(text) {
      if (joined) return text;
      if (cutOff.length > WINDOW) throw refused("what was shown ends in too many blanks");
      if (repeated === undefined) held += text;
      else {
        const rest = takeRepeated(text, repeated);
        if (rest !== undefined || repeated !== undefined) return show(rest);
      }
      return show(newIn(held, false));
    },
    settle() {
      if (joined) return "";
      if (repeated === undefined) return showLast(held);
      const alike = shown.slice(0, repeated);
      if (isAnotherAnswer(alike)) throw refused("it repeats a part of what was shown");
      return showLast(alike);
    },
  };
}

/** How many characters two texts share at their beginnings. */
function sharedLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
}

/**
 * `alike`: what the beginnings of an attempt and of what was shown have in common. A whole word is
 * enough: what goes on after a word begins with a blank or a sign.
 */
const isAnotherAnswer = (alike: string): boolean => alike.length >= MIN_ALIKE || /\S\s/.test(alike);

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

interface LastWords {
  /**
   * Whether a text repeats them. "unknown": that depends on what follows; not if the text has
   * `ended`.
   */
  in(text: string, ended: boolean): Finding;
}

type Finding = "repeated" | "new" | "unknown";

/**
 * The words at the end of a text, from the end of one up to as many as fit the window. Signs alone
 * are no words: two closing brackets in a row are nothing unusual.
 */
function lastWords(shown: string): LastWords {
  const end = shown.slice(-WINDOW);
  const starts = [...end.matchAll(/(?<=^|\s)\S/g)].map(({ index }) => index);
  // A script without blanks has one long word.
  for (let index = (starts.at(-1) ?? 0) + 1; index <= end.length - MIN_WORD_END; index += 1)
    starts.push(index);
  const endings = starts
    .map((index) => end.slice(index).trimEnd())
    .filter((ending) => /[\p{L}\p{N}]/u.test(ending));
  const endsInBlank = /\s$/.test(shown);

  return {
    in(text, ended) {
      const begun = text.trimStart();
      if (begun === "") return ended ? "new" : "unknown";
      // Without a blank between them the end of what was shown may be a part of a word.
      const isApart = endsInBlank || begun.length < text.length;
      const found = endings.map((ending) => comparedWith(ending, begun, isApart));
      if (found.includes("repeated")) return "repeated";
      return found.includes("unknown") && !ended ? "unknown" : "new";
    },
  };
}

/** `isApart`: only whole words count. */
function comparedWith(ending: string, text: string, isApart: boolean): Finding {
  if (!text.startsWith(ending)) return ending.startsWith(text) ? "unknown" : "new";
  const next = text.slice(ending.length);
  if (isApart && next === "") return "unknown";
  return isApart && /^[\p{L}\p{N}]/u.test(next) ? "new" : "repeated";
}
