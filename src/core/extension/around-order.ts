// The order in which extensions wrap the completion of a request.

/**
 * The names, from the outermost to the innermost. `outside`: by name, in the order of
 * src/extensions.ts, whom each must wrap; names that are not keys are ignored. Where nothing is
 * demanded the order is kept. Throws a TypeError that names those of a circle.
 */
export function outermostFirst(outside: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const left = new Map(outside);
  const order: string[] = [];
  while (left.size > 0) {
    const wrapped = new Set([...left.values()].flat());
    const next = [...left.keys()].find((name) => !wrapped.has(name));
    if (next === undefined)
      throw new TypeError(
        `each of these extensions must wrap another: ${[...left.keys()].join(", ")}`,
      );
    left.delete(next);
    order.push(next);
  }
  return order;
}
