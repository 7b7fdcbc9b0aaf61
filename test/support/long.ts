// Some proofs are a matter of number: every cut of the bytes, every moment of a kill. The suite
// tries a few of each, and all of them where LONG_TESTS is set. .ci/run sets it for a twelfth of the
// files, another one for each commit.

export const LONG = process.env["LONG_TESTS"] !== undefined;

const [, number, of] = /^(\d+)\/(\d+)$/.exec(process.env["LONG_PART"] ?? "")?.map(Number) ?? [];

/** The part of the long form that this run is, from 1; scripts/test.ts tells all files of it. */
export const PART = number !== undefined && of !== undefined ? { number, of } : undefined;

const day = Math.floor(Date.now() / 86_400_000);

/**
 * Of cases that are much alike, and each take long, one of every `share`, others each day; at least
 * one. In parts of the long form a long list is divided among them.
 */
export function todays<T>(cases: readonly T[], share: number): readonly T[] {
  if (PART && cases.length > PART.of)
    return cases.filter((_, at) => at % PART.of === PART.number - 1);
  if (LONG) return cases;
  const step = Math.min(share, cases.length);
  return cases.filter((_, at) => (at + day) % step === 0);
}
