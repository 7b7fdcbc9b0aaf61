// Some proofs are a matter of number: every cut of the bytes, every moment of a kill. The suite
// tries a few of each, and all of them where LONG_TESTS is set. .ci/run sets it for a twelfth of the
// files, another one for each commit.

export const LONG = process.env["LONG_TESTS"] !== undefined;
