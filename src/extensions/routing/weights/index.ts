// A library for weighted random choice.

/**
 * Draws an item, with a probability proportional to its weight. `random`: from 0 to less than 1.
 * Undefined: there is no item, or all weights are 0.
 */
export function pickWeighted<T>(
  items: readonly T[],
  weightOf: (item: T) => number,
  random: number,
): T | undefined {
  let left = random * items.reduce((sum, item) => sum + weightOf(item), 0);
  return items.find((item) => {
    left -= weightOf(item);
    return left < 0;
  });
}
