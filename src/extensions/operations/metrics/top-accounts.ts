// Which accounts GET /metrics names. Accounts are as many as an operator has customers, so only
// those that are refused most get series of their own, and the others are counted as one.
//
// An account is ranked by its errors, of which those of an hour ago count half. A free place goes
// to the first that comes; after that an account takes the place of the last one when it has more
// than twice as many. Errors are counted where they belonged when they happened, and are never
// moved. So no counter goes backwards: an account that loses its place keeps its figures, is not
// shown meanwhile, and continues from them when it returns.

/** Named at once. "other" stands beside them, and requests without a valid key. */
export const MAX_NAMED = 50;
/**
 * The most accounts that are counted separately, in each process and here. Any further one is
 * "other".
 */
export const MAX_KNOWN = 1_000;
/** Stands for all accounts that are not named. An account of this name is one of them. */
export const OTHER = "other";
/** The account of requests without a valid key. It is always named, beyond MAX_NAMED. */
const NOBODY = "";

/** Processes whose counts are remembered, also while one stands still or after it has ended. */
const MAX_PROCESSES = 100;
/** So long until an error counts half, in milliseconds. */
const HALF_LIFE_MS = 3_600_000;
/** So many times as many errors as the last of the named an account needs to take its place. */
const LEAD = 2;

/** As a family of Samples: by account and code, with "\0" between them. The last figure counts. */
export type Figures = ReadonlyMap<string, readonly number[]>;

export interface TopAccounts {
  /** Takes what processes have counted by now, by their ids. */
  take(counted: ReadonlyMap<string, Figures>): void;
  /** The samples that are shown, in the same form. */
  shown(): Figures;
}

interface Account {
  readonly name: string;
  /** Errors, the older ones faded. */
  score: number;
  isNamed: boolean;
  /** Errors by code that were counted under its name. */
  readonly errors: Map<string, number>;
}

interface Growth {
  readonly account: Account | undefined;
  readonly code: string;
  readonly errors: number;
}

/** `monotonic`: milliseconds. */
export function createTopAccounts(monotonic: () => number): TopAccounts {
  const accounts = new Map<string, Account>();
  const others = new Map<string, number>();
  const before = new Map<string, ReadonlyMap<string, number>>();
  let takenAt = monotonic();

  function fade(): void {
    const now = monotonic();
    const factor = 0.5 ** ((now - takenAt) / HALF_LIFE_MS);
    takenAt = now;
    for (const account of accounts.values()) account.score *= factor;
  }

  /** Undefined: it is not counted separately. */
  function accountOf(name: string): Account | undefined {
    const known = accounts.get(name);
    if (known || name === OTHER || accounts.size > MAX_KNOWN) return known;
    const account = { name, score: 0, isNamed: name === NOBODY, errors: new Map() };
    accounts.set(name, account);
    return account;
  }

  /** What a process has counted since it was last heard of, which may be several looks ago. */
  function growthOf([id, figures]: readonly [string, Figures]): Growth[] {
    const earlier = before.get(id);
    const counts = new Map([...figures].map(([labels, values]) => [labels, values.at(-1)!]));
    before.delete(id); // so that the one that was heard of longest ago stands first
    before.set(id, counts);
    return [...counts].map(([labels, count]) => {
      const at = labels.lastIndexOf("\0");
      const errors = count - (earlier?.get(labels) ?? 0);
      return { account: accountOf(labels.slice(0, at)), code: labels.slice(at + 1), errors };
    });
  }

  function forgetOldest(): void {
    for (const id of before.keys()) {
      if (before.size <= MAX_PROCESSES) return;
      before.delete(id);
    }
  }

  return {
    take(counted) {
      fade();
      const growths = [...counted].flatMap(growthOf).filter(({ errors }) => errors > 0);
      forgetOldest();
      for (const { account, errors } of growths) if (account) account.score += errors;
      const grown = new Set(growths.flatMap(({ account }) => account ?? []));
      renewNames([...accounts.values()], [...grown]);
      for (const { account, code, errors } of growths) {
        const counts = account?.isNamed ? account.errors : others;
        counts.set(code, (counts.get(code) ?? 0) + errors);
      }
    },
    shown() {
      const named = [...accounts.values()].filter(({ isNamed }) => isNamed);
      const rows = [...named, { name: OTHER, errors: others }];
      return new Map(
        rows.flatMap(({ name, errors }) =>
          [...errors].map(([code, count]) => [`${name}\0${code}`, [count]] as const),
        ),
      );
    },
  };
}

/** Names those of the grown accounts that have earned it. Only they can rise. */
function renewNames(all: readonly Account[], grown: readonly Account[]): void {
  const named = all.filter(({ name, isNamed }) => isNamed && name !== NOBODY);
  const rising = grown.filter(({ isNamed }) => !isNamed).sort((a, b) => b.score - a.score);
  for (const account of rising) {
    if (named.length >= MAX_NAMED) {
      const last = named.reduce((least, other) => (other.score < least.score ? other : least));
      if (account.score <= LEAD * last.score) return;
      last.isNamed = false;
      named.splice(named.indexOf(last), 1);
    }
    account.isNamed = true;
    named.push(account);
  }
}
