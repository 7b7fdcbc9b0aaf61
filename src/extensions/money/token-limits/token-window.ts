// The tokens that were admitted in the last minute, of one limit: a sliding window. In any 60
// seconds at most the limit is admitted. A request takes its estimate when it is admitted; when it
// has ended, its real figure takes the place of the estimate, at the moment of its admission.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";

interface Admission {
  readonly id: number;
  /** By the monotonic clock, in milliseconds. */
  readonly time: number;
  tokens: number;
}

export interface TokenWindow {
  /** The tokens that count at `time`. */
  total(time: number): number;
  /** `id` is greater than that of every admission before. */
  add(id: number, time: number, tokens: number): void;
  /** Replaces the tokens of an admission. Nothing happens if it does not count any more. */
  correct(id: number, tokens: number): void;
  /** Milliseconds from `time` until `wanted` tokens have room under `limit`; 0: they have. */
  roomIn(wanted: number, limit: number, time: number): number;
  /**
   * Milliseconds from `time` until the oldest admission does not count any more; 0: there is none.
   */
  renewsIn(time: number): number;
}

export function createTokenWindow(): TokenWindow {
  /** Oldest first. Those before the index `first` do not count any more. */
  let admissions: Admission[] = [];
  let first = 0;
  let sum = 0;

  function prune(time: number): void {
    while (first < admissions.length && admissions[first]!.time + WINDOW_MS <= time) {
      sum -= admissions[first]!.tokens;
      first += 1;
    }
    // The list is copied only when more than half of it is old: constant time on average.
    if (first * 2 <= admissions.length) return;
    admissions = admissions.slice(first);
    first = 0;
  }

  /** The index of the first admission whose id is not below `id`. */
  function indexOf(id: number): number {
    let low = first;
    let high = admissions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (admissions[middle]!.id < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return {
    total(time) {
      prune(time);
      return sum;
    },
    add(id, time, tokens) {
      admissions.push({ id, time, tokens });
      sum += tokens;
    },
    correct(id, tokens) {
      const admission = admissions[indexOf(id)];
      if (admission?.id !== id) return;
      sum += tokens - admission.tokens;
      admission.tokens = tokens;
    },
    roomIn(wanted, limit, time) {
      prune(time);
      let left = sum;
      if (left + wanted <= limit) return 0;
      for (let at = first; at < admissions.length; at += 1) {
        const { tokens, time: admittedAt } = admissions[at]!;
        left -= tokens;
        if (left + wanted <= limit) return admittedAt + WINDOW_MS - time;
      }
      return WINDOW_MS; // more than the limit alone: it never has room
    },
    renewsIn(time) {
      prune(time);
      const oldest = admissions[first];
      return oldest ? oldest.time + WINDOW_MS - time : 0;
    },
  };
}
