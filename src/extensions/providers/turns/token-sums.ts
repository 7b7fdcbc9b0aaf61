// Sums of the token counts that a native format states separately.

/** The sum of the counts that are stated. Undefined if none of them is. */
export function sumOf(...counts: readonly (number | undefined)[]): number | undefined {
  const stated = counts.filter((count) => count !== undefined);
  return stated.length === 0 ? undefined : stated.reduce((sum, count) => sum + count, 0);
}
