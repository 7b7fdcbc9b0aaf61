// Collects the differences that a proof finds, for the operator or the auditor.

/** How many findings are named one by one. */
const MAX_NAMED = 10_000;

export interface Findings {
  /** `where`: "spend/2026-11-22.0001.jsonl, line 7". The same is named once. */
  add(where: string, what: string): void;
  /** Sentences, in the order in which they were found. */
  list(): readonly string[];
}

export function createFindings(): Findings {
  const texts = new Set<string>();
  let more = 0;
  return {
    add(where, what) {
      const text = `${where}: ${what}`;
      if (texts.size < MAX_NAMED) texts.add(text);
      else if (!texts.has(text)) more += 1;
    },
    list: () => (more > 0 ? [...texts, `and ${more} more`] : [...texts]),
  };
}
