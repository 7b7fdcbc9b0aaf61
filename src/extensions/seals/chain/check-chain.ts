// Checks the chain of one segment, line by line, and names what is wrong with it.
import { NO_SEAL, sealOf, splitSeal, type SealedLine } from "./chain.ts";
import { createRecoveryLines } from "./recovery-lines.ts";

/** How many lines before the last are tried, to tell an inserted line from a changed one. */
const LOOK_BACK = 3;

/** Gets what is wrong: `line` is the number of the line, from 1. */
export type Finding = (line: number, what: string) => void;

/** The chain of a segment while it is read. */
export interface ChainCheck {
  /** Takes the next line. */
  take(line: string): void;
  /** No line follows. */
  finish(): void;
  /** How many lines there are. */
  lines(): number;
  /** The number of the last line that has a seal. 0: none has. */
  sealedLines(): number;
  /** The seal of that line. Null: none has. */
  seal(): string | null;
}

/** Begins to check a segment. */
export function createChainCheck(finding: Finding): ChainCheck {
  let number = 0;
  let sealedLines = 0;
  let last = NO_SEAL;
  /** What the seal of the last sealed line should have been. */
  let computed = NO_SEAL;
  /** The seals of the lines before the last one. */
  let earlier: readonly string[] = [];
  let unsealed: string[] = [];
  const recovery = createRecoveryLines();

  function takeSealed(line: SealedLine): void {
    if (number - sealedLines > 1) {
      const lines = span(sealedLines + 1, number - 1);
      finding(
        number - 1,
        `${lines} without a seal before one that has: inserted, or seals removed`,
      );
    }
    unsealed = [];
    const expected = sealOf(last, line.body);
    if (line.seal !== expected) finding(number, explain(line));
    earlier = [last, ...earlier].slice(0, LOOK_BACK);
    last = line.seal;
    computed = expected;
    sealedLines = number;
  }

  /** Why the seal of the current line is not the one that the line before it demands. */
  function explain({ body, seal }: SealedLine): string {
    if (computed !== last && sealOf(computed, body) === seal)
      return "continues the line before it as it was: the seal of that line was changed";
    const back = earlier.findIndex((each) => sealOf(each, body) === seal);
    if (back >= 0) {
      const from = sealedLines - back;
      return (
        `does not continue the line before it, but line ${from - 1}: ` +
        `${span(from, sealedLines)} inserted, or lines swapped, ` +
        "or two copies of the segment put together"
      );
    }
    return "was changed, or lines before it were removed or swapped";
  }

  return {
    take(line) {
      number += 1;
      const sealed = splitSeal(line);
      if (sealed) {
        takeSealed(sealed);
        recovery.take(line);
      } else if (sealedLines > 0) unsealed.push(line);
    },
    finish() {
      unsealed.forEach((line, index) => {
        if (!recovery.accepts(line))
          finding(sealedLines + 1 + index, "has no seal, as lines before it have");
      });
    },
    lines: () => number,
    sealedLines: () => sealedLines,
    seal: () => (sealedLines > 0 ? last : null),
  };
}

const span = (from: number, to: number): string =>
  from === to ? `line ${from} was` : `lines ${from} to ${to} were`;
