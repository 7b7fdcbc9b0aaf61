// Removes secrets from a provider's text, for the operator's logs, /status and the ledger. The
// text may quote keys, and is not trusted. All secrets of this configuration are removed, and
// everything that looks like a key: `sk-...` and the like, the word after Bearer, the values of
// `key=` and similar names, the user and password of a URL, and long runs of letters and digits.
// Control characters are removed, so that they cannot forge lines or colours.
//
// The work is bounded: a long text is cut first, and every pattern runs in linear time. Not
// recognized: a short key of another party without a prefix or name, and a key with blanks in it.
import { sha256 } from "../../../core/hash.ts";

/** The most characters of a text that are read. */
const READ_CHARS = 4_096;
/** The most characters of a text that are quoted. */
const SHOWN_CHARS = 300;
/** The most characters of a word: a secret is not longer. */
const LONGEST_WORD = 512;
/** Placeholders such as "x" are not secrets: removing them would garble every text. */
const SHORTEST_SECRET = 4;
const MARK = "[redacted]";

const LINE_ENDS = /[\t\n\v\f\r\u0085\u2028\u2029]/g;
/**
 * Control and formatting characters, which can hide text or reverse its direction, and halves of
 * surrogate pairs.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}]/gu;
const WORDS = /[^\s"'`<>(){}[\],;]{4,512}/g;
/** Parts of a word that may be a key: between two kinds of quotes, in a path, after a sign. */
const PIECES = /[\w.~-]{4,512}/g;
const RUNS = /[A-Za-z0-9+/_=-]{20,}/g;
const CAMEL_CASE = /^[A-Z]?[a-z]{2,14}(?:[A-Z][a-z]{2,14})*$/;
/** `api_key: ...` and the like: a name, `:` or `=`, and the secret. */
const NAMED_SECRET = new RegExp(
  "(api[ _-]?key|access[ _-]?key|secret|token|passw(?:or)?d|credential)" +
    /(["']?\s{0,4}(?:provided|given|is)?\s{0,4}[:=]\s{0,4}["']?)[^\s"'`,;&]+/.source,
  "gi",
);
const PATTERNS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/:\/\/\S{1,512}@/g, `://${MARK}@`],
  [/\bBearer\s{1,4}(?!token\b|auth)[^\s"'`,;]+/gi, `Bearer ${MARK}`],
  [
    /\b(authorization["']?\s{0,4}[:=]\s{0,4}["']?)(?:(?:basic|bearer|token)\s{1,4})?[^\s"'`,;]+/gi,
    `$1${MARK}`,
  ],
  [NAMED_SECRET, `$1$2${MARK}`],
  [/(key=["']?)[^\s"'`,;&]+/gi, `$1${MARK}`],
  [/(\bpass(?:phrase|code)?=["']?)[^\s"'`,;&]+/gi, `$1${MARK}`],
  // A JSON web token has three parts. The last one may be short.
  [/\beyJ[\w-]{6,}\.[\w-]+(?:\.[\w-]*)?/g, MARK],
  [/\bxox[a-z]-[^\s"'`,;<>(){}[\]\\]{3,}/g, MARK],
  [/\b[sprc]k[-_][^\s"'`,;<>(){}[\]\\]{3,}/g, MARK],
  [/\b(?:gsk|csk|xai|pplx|hf|nvapi|tgp|gh[pousr]|glpat)[-_][^\s"'`,;<>(){}[\]\\]{10,}/g, MARK],
  [/\bAIza[\w-]{10,}/g, MARK],
];

/**
 * Returns a function that removes secrets from a text and cuts it at 300 characters. It removes
 * `secrets`, also in base64 or URL encoding, and words whose SHA-256 is in `digests`.
 */
export function createRedact(
  secrets: readonly string[],
  digests: ReadonlySet<string>,
): (text: string) => string {
  const forms = [...new Set(secrets.filter(isSecret).flatMap(formsOf))];
  forms.sort((a, b) => b.length - a.length); // longest first: one may contain another

  /** Clients' keys are known by their digests only. A key may be followed by punctuation. */
  function isKey(word: string): boolean {
    const endings = new Set([word, word.replace(/[.:!?]+$/, "")]);
    return [...endings].some((form) => digests.has(sha256(form)));
  }
  const withoutKey = (word: string): string => (isKey(word) ? MARK : word);
  const withoutKeys = (word: string): string =>
    isKey(word) ? MARK : word.replace(PIECES, withoutKey);

  return (text) => {
    let left = readable(text);
    for (const form of forms) left = left.replaceAll(form, MARK);
    if (digests.size > 0) left = left.replace(WORDS, withoutKeys);
    for (const [pattern, replacement] of PATTERNS) left = left.replace(pattern, replacement);
    left = left.replace(RUNS, (run) => (isRandom(run) ? MARK : run));
    const shown = left.slice(0, SHOWN_CHARS).replace(UNSEEN, ""); // the cut may split a pair
    return Buffer.from(shown).toString(); // a slice would keep the whole text in memory
  };
}

const isSecret = (text: string): boolean => text.length >= SHORTEST_SECRET;

/** A secret verbatim, and as it appears in a URL, in JSON and in base64. */
const formsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  JSON.stringify(secret).slice(1, -1),
  Buffer.from(secret)
    .toString("base64")
    .replace(/={1,2}$/, ""),
];

/** One line of printable text. If it was cut, without the last word, which may be incomplete. */
function readable(text: string): string {
  const line = text.slice(0, READ_CHARS).replace(LINE_ENDS, " ").replace(UNSEEN, "");
  if (text.length <= READ_CHARS) return line.trim();
  const lastBlank = line.lastIndexOf(" ");
  return line.slice(0, lastBlank === -1 ? -LONGEST_WORD : lastBlank).trim();
}

/**
 * Whether a run is probably random, and not a name such as `claude-sonnet-4-5-20250929` or
 * `streamGenerateContent`. Each piece between punctuation is judged by itself.
 */
const isRandom = (run: string): boolean => run.split(/[-_/+=]/).some(isRandomPiece);

function isRandomPiece(piece: string): boolean {
  if (piece.length < 12 || CAMEL_CASE.test(piece)) return false;
  return piece.length >= 20 || (/\d/.test(piece) && /[a-z]/i.test(piece));
}
