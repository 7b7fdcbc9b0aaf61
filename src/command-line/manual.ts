// The manual, as the command `help` shows it.

export interface Topic {
  /** What `help` is asked for: `routing`. */
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
  /** The heading of the section; that of the page for a text before the first section. */
  readonly section: string;
  /** A part of a line of the section, as plain text. */
  readonly excerpt: string;
}

export interface Manual {
  /** Ordered by name. */
  topics(): readonly Topic[];
  /** The page of a topic, in Markdown; undefined if there is none of this name. */
  page(name: string): string | undefined;
  /** The sections that have the most of the words, the best ones first; empty if none has any. */
  search(words: string): readonly SearchResult[];
}
