// The interface of the manual, which the command `help` shows.

export interface Topic {
  /** The topic's name, an operand of `help`: `routing`. */
  readonly name: string;
  /** The heading of the page. */
  readonly title: string;
  /** One sentence that says what the page is about. */
  readonly summary: string;
}

/** A section of a page that a search has found. */
export interface SearchResult {
  /** The topic of the page: `routing`. */
  readonly name: string;
  /** The heading of the page. */
  readonly title: string;
  /** The heading of the section. For text before the first section: the heading of the page. */
  readonly section: string;
  /** A part of a line of the section, as plain text. */
  readonly excerpt: string;
}

export interface Manual {
  /** All topics, ordered by name. */
  topics(): readonly Topic[];
  /** The page of a topic, in Markdown. Undefined: there is no such topic. */
  page(name: string): string | undefined;
  /** The sections that contain the most words, best first. Empty: no section contains any. */
  search(words: string): readonly SearchResult[];
}
