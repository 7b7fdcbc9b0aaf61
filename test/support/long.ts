// Exhaustive tests try every cut of some bytes, or every moment of a kill. Usually they try a few
// of these; if LONG_TESTS is set, they try all. .ci/run sets it for a twelfth of the files, a
// different one for each commit.

/** Whether exhaustive tests try everything. */
export const LONG = process.env["LONG_TESTS"] !== undefined;

const [, number, of] = /^(\d+)\/(\d+)$/.exec(process.env["LONG_PART"] ?? "")?.map(Number) ?? [];

/** The part of the exhaustive tests in this run, from 1. scripts/test.ts sets LONG_PART. */
export const PART = number !== undefined && of !== undefined ? { number, of } : undefined;

const day = Math.floor(Date.now() / 86_400_000);

/**
 * Selects from many similar slow cases: one in `share`, at least one, different ones each day. If
 * this run has one part of the exhaustive tests, selects that part of a long list.
 */
export function todays<T>(cases: readonly T[], share: number): readonly T[] {
  if (PART && cases.length > PART.of)
    return cases.filter((_, at) => at % PART.of === PART.number - 1);
  if (LONG) return cases;
  const step = Math.min(share, cases.length);
  return cases.filter((_, at) => (at + day) % step === 0);
}
