// Full-text search of the manual, by section. A section matches a word in its text, its heading or
// the title of its page; case does not matter, and the word may be a part of a longer one. Results
// are the sections that match the most words.
import type { SearchResult } from "../../../command-line/manual.ts";

/** The most sections that a search returns. */
export const MAX_RESULTS = 20;
/** The most words of a search: each one costs a scan of the whole manual. */
const MAX_WORDS = 20;
/** The most characters of an excerpt, without its ellipses. */
const EXCERPT_CHARS = 110;
/** The least number of characters before the first word found, if the line has them. */
const BEFORE_CHARS = 30;

/** A page to be searched. */
export interface SearchedPage {
  /** The name of its topic: `routing`. */
  readonly name: string;
  /** Its Markdown. */
  readonly text: string;
}

interface Section {
  readonly heading: string;
  readonly lines: readonly string[];
}

/** The sections with the most words. Those with more words in their headings come first. */
export function searchPages(
  pages: readonly SearchedPage[],
  wanted: string,
): readonly SearchResult[] {
  const all = new Set(wanted.toLowerCase().split(/\s+/).filter(Boolean));
  const words = [...all].slice(0, MAX_WORDS);
  let most = 1;
  let found: { readonly result: SearchResult; readonly inHeadings: number }[] = [];
  for (const { name, text } of pages) {
    const sections = sectionsOf(text);
    const title = sections[0]?.heading ?? name;
    for (const { heading, lines } of sections) {
      const headings = `${title} ${heading}`;
      const had = hits(`${headings}\n${lines.join("\n")}`, words);
      if (had < most) continue;
      if (had > most) found = [];
      most = had;
      const result = { name, title, section: heading, excerpt: excerptOf(lines, words) };
      found.push({ result, inHeadings: hits(headings, words) });
    }
  }
  found.sort((one, other) => other.inHeadings - one.inHeadings);
  return found.slice(0, MAX_RESULTS).map(({ result }) => result);
}

/** How many of the words a text contains. `words` are in lower case. */
function hits(text: string, words: readonly string[]): number {
  const lower = text.toLowerCase();
  return words.filter((word) => lower.includes(word)).length;
}

/** The sections of a page. The first one is the text below the title. */
function sectionsOf(page: string): readonly Section[] {
  const sections: { heading: string; lines: string[] }[] = [];
  let isCode = false;
  for (const line of page.split("\n")) {
    if (line.startsWith("```")) isCode = !isCode;
    const [, heading] = (!isCode && /^#+ (.+)$/.exec(line)) || [];
    if (heading !== undefined) sections.push({ heading, lines: [] });
    else if (isText(line)) sections.at(-1)?.lines.push(plain(line));
  }
  return sections;
}

/** Whether a line has text. Code fences, table rules and marks of generated blocks have none. */
const isText = (line: string): boolean => !/^(```|<!--|\|[-| :]+$|\s*$)/.test(line);

/** A line without its Markdown markup. */
const plain = (line: string): string =>
  line
    .replace(/!?\[([^\]]+)\]\([^)\s]+\)/g, "$1")
    .replace(/`|\*\*|^\s*(- |\d+\. )|^\| | \|$/g, "")
    .replace(/(?<!\\) \| /g, "  ")
    .replaceAll("\\|", "|");

/** A part of the line with the most words, or of the first line if no line has any. */
function excerptOf(lines: readonly string[], words: readonly string[]): string {
  const [first = "", ...others] = lines.map((line) => line.trim());
  const line = others.reduce(
    (best, other) => (hits(other, words) > hits(best, words) ? other : best),
    first,
  );
  if (line.length <= EXCERPT_CHARS) return line;
  const places = words.map((word) => line.toLowerCase().indexOf(word)).filter((at) => at >= 0);
  const start = Math.max(0, Math.min(...places) - BEFORE_CHARS);
  const from = places.length === 0 ? 0 : line.lastIndexOf(" ", start) + 1;
  const limit = from + EXCERPT_CHARS;
  const isCut = limit < line.length;
  const part = line.slice(from, isCut ? line.lastIndexOf(" ", limit) : undefined);
  return `${from > 0 ? "…" : ""}${part}${isCut ? "…" : ""}`;
}
