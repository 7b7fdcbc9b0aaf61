// What is counted in a stretch of time: in two seconds of one process, and in a bin of the history.
// Every map is bounded, so that no flood of names fills the memory.
import { addTally, emptyAccountTally, emptyTally, type Tally } from "./figures.ts";

/** The name under which is counted what has no tally of its own. No account or model has it. */
export const OTHER = "\0other";
/** Names with a tally of their own in a slice and a bin: the first, and busy ones come early. */
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
function tallyOf(
  tallies: Map<string, Tally>,
  name: string,
  maxNames: number,
  create: () => Tally,
): Tally {
  const known = tallies.get(name);
  if (known) return known;
  const key = tallies.size < maxNames ? name : OTHER;
  const tally = tallies.get(key) ?? create();
  tallies.set(key, tally);
  return tally;
}

export const accountTally = ({ accounts }: Counts, name: string, maxNames = MAX_NAMES): Tally =>
  tallyOf(accounts, name, maxNames, emptyAccountTally);

export const modelTally = ({ models }: Counts, name: string, maxNames = MAX_NAMES): Tally =>
  tallyOf(models, name, maxNames, emptyTally);

/** `maxNames`: the most accounts, and the most models, with a tally of their own. */
export function addCounts(into: Counts, from: Counts, maxNames = MAX_NAMES): void {
  addTally(into.total, from.total);
  for (const [name, tally] of from.accounts) addTally(accountTally(into, name, maxNames), tally);
  for (const [name, tally] of from.models) addTally(modelTally(into, name, maxNames), tally);
}
