// What the last 100 replies of a model to an account have taken at most. Where a client does not
// bound the reply, this does, with a quarter on top: a hold far above the usual cost would block an
// account that has spent nothing. It is no less than what the prompt alone comes to.
import type { Estimate, Outcome } from "./contracts.ts";

const REQUESTS = 100;
/** Accounts and models of which the last requests are remembered. The oldest pair is forgotten. */
const MAX_PAIRS = 10_000;

/** What one request took. */
type Taken = Pick<Outcome, "cost" | "tokens">;

export interface Recent {
  /** Remembers a request that `model` has completed. */
  add(account: string, model: string, taken: Taken): void;
  /**
   * The estimate, or what the last requests took at most and a quarter, if that is less; but no
   * less than the prompt's part of it.
   */
  bound(account: string, estimate: Estimate): Taken;
}

export function createRecent(): Recent {
  const pairs = new Map<string, { taken: Taken[]; next: number }>();
  const nameOf = (account: string, model: string): string => JSON.stringify([account, model]);

  return {
    add(account, model, { cost, tokens }) {
      const name = nameOf(account, model);
      const pair = pairs.get(name) ?? { taken: [], next: 0 };
      if (!pairs.has(name) && pairs.size >= MAX_PAIRS) pairs.delete(pairs.keys().next().value!);
      pairs.set(name, pair);
      pair.taken[pair.next] = { cost, tokens };
      pair.next = (pair.next + 1) % REQUESTS;
    },
    bound(account, { model, cost, tokens, prompt }) {
      const pair = pairs.get(nameOf(account, model));
      if (!pair) return { cost, tokens };
      let most = 0n;
      let mostTokens = 0;
      for (const taken of pair.taken) {
        if (taken.cost > most) most = taken.cost;
        if (taken.tokens > mostTokens) mostTokens = taken.tokens;
      }
      const usual = greater((most * 5n + 3n) / 4n, prompt.cost);
      const usualTokens = Math.max(Math.ceil(mostTokens * 1.25), prompt.tokens);
      return {
        cost: lesser(usual, cost),
        tokens: Math.min(usualTokens, tokens),
      };
    },
  };
}

const greater = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const lesser = (a: bigint, b: bigint): bigint => (a < b ? a : b);
