// Some proofs are a matter of number: every cut of the bytes, every moment of a kill. The suite
// tries a few of each, and all of them where LONG_TESTS is set. .ci/run sets it for a twelfth of the
// files, another one for each commit.

export const LONG = process.env["LONG_TESTS"] !== undefined;

const [, number, of] = /^(\d+)\/(\d+)$/.exec(process.env["LONG_PART"] ?? "")?.map(Number) ?? [];

/** The part of the long form that this run is, from 1; scripts/test.ts tells all files of it. */
export const PART = number !== undefined && of !== undefined ? { number, of } : undefined;
