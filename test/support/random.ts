// Random numbers that are repeated for the same seed.

/** Random choices by Mulberry32. A seed determines them, but not the timing of processes. */
export function createRandom(seed: number) {
  let state = seed;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const between = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
  return {
    random,
    between,
    pick: <T>(list: readonly T[]): T => list[between(0, list.length - 1)]!,
  };
}
