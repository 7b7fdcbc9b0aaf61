// Collects the findings of a proof, for the operator or the auditor.

/** How many findings are listed. The others are only counted. */
const MAX_LISTED = 10_000;

export interface Findings {
  /** `where`: "spend/2026-11-22.0001.jsonl, line 7". A repeated finding is listed once. */
  add(where: string, problem: string): void;
  /** Sentences, in the order in which they were added. */
  list(): readonly string[];
}

export function createFindings(): Findings {
  const texts = new Set<string>();
  let unlisted = 0;
  return {
    add(where, problem) {
      const text = `${where}: ${problem}`;
      if (texts.size < MAX_LISTED) texts.add(text);
      else if (!texts.has(text)) unlisted += 1;
    },
    list: () => (unlisted > 0 ? [...texts, `and ${unlisted} more`] : [...texts]),
  };
}
