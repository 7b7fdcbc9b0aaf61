// Which callers are being refused, why, and since when; and which keys are used. An episode lasts
// as long as the same key is refused with the same code at least every ten minutes.
import type { KeyCount, RefusalCount } from "./contracts.ts";

/** Minutes without a refusal after which the next one begins an episode of its own. */
const PAUSE_MS = 10 * 60_000;
/** Episodes that are kept. */
const MAX_EPISODES = 200;
/** The most keys whose use is kept. */
const MAX_KEYS = 1_000;

/** A row of refusals. */
export interface Episode {
  /** Null: the caller was not authenticated. */
  readonly account: string | null;
  /** As Caller.keyId. Null as above. */
  readonly key: string | null;
  /** As RefusalCount.status. */
  readonly status: number;
  /** As RefusalCount.code. */
  readonly code: string;
  /** Refusals so far. */
  count: number;
  /** The first refusal, in milliseconds since 1970. */
  since: number;
  /** The last refusal, in milliseconds since 1970. */
  last: number;
}

/** The use of a key since the gateway started. */
export interface KeyUse extends Readonly<KeyCount> {
  /** As Caller.keyId. */
  readonly key: string;
}

export interface Refusals {
  /** Counts them in the episodes that go on, or begins others. */
  add(refusals: Iterable<RefusalCount>): void;
  /** Those that go on or ended after `from`, the most frequent first. */
  since(from: number): readonly Episode[];
}

export function createRefusals(): Refusals {
  const episodes = new Map<string, Episode>();

  function addOne({ count, first, last, ...who }: RefusalCount): void {
    const name = [who.account ?? "", who.key ?? "", who.code].join("\0");
    const known = episodes.get(name);
    if (known && first - known.last <= PAUSE_MS) {
      known.count += count;
      known.since = Math.min(known.since, first);
      known.last = Math.max(known.last, last);
      return;
    }
    episodes.delete(name);
    episodes.set(name, { ...who, count, since: first, last });
    if (episodes.size > MAX_EPISODES) episodes.delete(oldestOf(episodes, ({ last: time }) => time));
  }

  return {
    add(refusals) {
      for (const refusal of refusals) addOne(refusal);
    },
    since: (from) =>
      [...episodes.values()]
        .filter(({ last }) => last >= from)
        .sort((a, b) => b.count - a.count || b.last - a.last),
  };
}

export interface KeyUses {
  /** Adds what keys did in one slice, by their ids. */
  add(counts: ReadonlyMap<string, KeyCount>): void;
  /** Those that were used last, in no particular order. */
  all(): readonly KeyUse[];
}

export function createKeyUses(): KeyUses {
  const uses = new Map<string, KeyCount>();
  return {
    add(counts) {
      for (const [key, count] of counts) {
        const known = uses.get(key) ?? { requests: 0, refused: 0, cost: 0, last: 0 };
        uses.set(key, {
          requests: known.requests + count.requests,
          refused: known.refused + count.refused,
          cost: known.cost + count.cost,
          last: Math.max(known.last, count.last),
        });
        if (uses.size > MAX_KEYS) uses.delete(oldestOf(uses, ({ last }) => last));
      }
    },
    all: () => [...uses].map(([key, count]) => ({ key, ...count })),
  };
}

/** The name of the entry whose time lies furthest back. */
function oldestOf<T>(entries: ReadonlyMap<string, T>, timeOf: (value: T) => number): string {
  let oldest = { name: "", time: Infinity };
  for (const [name, value] of entries)
    if (timeOf(value) < oldest.time) oldest = { name, time: timeOf(value) };
  return oldest.name;
}
