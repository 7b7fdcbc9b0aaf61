// Bounds how much is done at once.

/** Does work when it is its turn. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

/** Lets `most` pieces of work run at once. The others wait in the order in which they came. */
export function createTurns(most: number): Turns {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < most) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The next one takes over the place of this one.
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}
