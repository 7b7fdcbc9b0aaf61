// The manual, as the command `help` shows it.

export interface Topic {
  /** What `help` is asked for: `routing`. */
  readonly name: string;
  /** The heading of the page. */
  readonly title: string;
  /** One sentence that says what the page is about. */
  readonly summary: string;
}

export interface Manual {
  /** Ordered by name. */
  topics(): readonly Topic[];
  /** The page of a topic, in Markdown; undefined if there is none of this name. */
  page(name: string): string | undefined;
}
