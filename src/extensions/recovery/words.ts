// What counts as a word where two texts are compared.

/** A letter with its accents, or a digit. Signs alone are no words. */
const WORD = "\\p{L}\\p{M}\\p{N}";
const HAS_WORD = /[\p{L}\p{N}]/u;
const BEGINS_IN_WORD = new RegExp(`^[${WORD}]`, "u");
const ENDS_IN_WORD = new RegExp(`[${WORD}]$`, "u");
const WHOLE_WORD = new RegExp(`[\\p{L}\\p{N}][^${WORD}]`, "u");

/** Scripts that put no blanks between words. Most of their words have two characters or more. */
const SCRIPTS = ["Han", "Hira", "Kana", "Bopo", "Thai", "Laoo", "Khmr", "Mymr", "Tibt", "Yiii"];
const UNSPACED = `(?=[\\p{L}\\p{M}])[${SCRIPTS.map((name) => `\\p{scx=${name}}`).join("")}]`;
const UNSPACED_WORD = new RegExp(`${UNSPACED}[^]*?${UNSPACED}`, "u");

export const hasWord = (text: string): boolean => HAS_WORD.test(text);
export const beginsInWord = (text: string): boolean => BEGINS_IN_WORD.test(text);

/** Whether a text has two characters of scripts without blanks: as much as a word. */
export const hasUnspacedWord = (text: string): boolean => UNSPACED_WORD.test(text);

/** Whether a text has a whole word, if it goes on in each of these ways. */
export const hasWholeWord = (text: string, ...ways: readonly string[]): boolean =>
  WHOLE_WORD.test(text) ||
  hasUnspacedWord(text) ||
  (ENDS_IN_WORD.test(text) && !ways.some(beginsInWord));
