// What is counted in a stretch of time: in two seconds of one process, and in a bin of the history.
// Every map is bounded, so that no flood of names fills the memory.
import {
  addTally,
  count,
  emptyAccountTally,
  emptyTally,
  type Figure,
  type Tally,
} from "./figures.ts";

/** The name under which is counted what has no tally of its own. No account or model has it. */
export const OTHER = "\0other";
/**
 * The most accounts, and the most models, with a tally of their own in a stretch of time: those that
 * came first, and busy ones come early.
 */
const MAX_NAMES = 100;

export interface Counts {
  /** The figures of the whole gateway. */
  readonly total: Tally;
  /** By account. The name "" stands for requests without an authenticated caller. */
  readonly accounts: Map<string, Tally>;
  /** By model. */
  readonly models: Map<string, Tally>;
}

export const emptyCounts = (): Counts => ({
  total: emptyTally(),
  accounts: new Map(),
  models: new Map(),
});

/** The tally of a name, or that of the others. */
function tallyOf(tallies: Map<string, Tally>, name: string, create: () => Tally): Tally {
  const known = tallies.get(name);
  if (known) return known;
  const key = tallies.size < MAX_NAMES ? name : OTHER;
  const tally = tallies.get(key) ?? create();
  tallies.set(key, tally);
  return tally;
}

export const accountTally = ({ accounts }: Counts, name: string): Tally =>
  tallyOf(accounts, name, emptyAccountTally);

export const modelTally = ({ models }: Counts, name: string): Tally =>
  tallyOf(models, name, emptyTally);

/** Counts in several tallies. */
export function countIn(tallies: readonly Tally[], figure: Figure, value = 1): void {
  for (const tally of tallies) count(tally, figure, value);
}

export function addCounts(into: Counts, from: Counts): void {
  addTally(into.total, from.total);
  for (const [name, tally] of from.accounts) addTally(accountTally(into, name), tally);
  for (const [name, tally] of from.models) addTally(modelTally(into, name), tally);
}
