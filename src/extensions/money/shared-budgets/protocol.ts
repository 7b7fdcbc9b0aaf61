// The script in Redis or Valkey, as it is asked and answers. Amounts travel as whole units and
// pico-units of the currency, because a script counts in doubles.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";
import {
  periodName,
  type Budget,
  type Decision,
  type Figures,
  type Purses,
  type Refusal,
  type ReserveRequest,
} from "../budgets/index.ts";
import { leastLeft } from "../token-windows/index.ts";

/**
 * A gateway that has not asked for so many milliseconds is taken for dead: what it held is given
 * back.
 */
export const LEASE_MS = 15_000;
const UNIT = 1_000_000_000_000n;

/**
 * Writes the rows of this gateway in the budgets, and holds one of the offers, or nothing. Without
 * offers it corrects the tokens of the admission that `token` names, if there is one.
 */
export type Task = ReserveRequest;

/** How a budget stands by what all gateways have spent and hold. */
export interface SharedFigures extends Figures {
  /** When the row of this gateway was made, by the store's clock, in milliseconds since 1970. */
  readonly born: number;
  /** How often that row was written, by now. The store has old rows if it says less later. */
  readonly writes: number;
}

/** What this gateway itself has spent and holds. */
export interface OwnFigures extends Figures {
  /** How often it knows its row to have been written; 0: it knows of none. */
  readonly writes: number;
}

/** What came of a task. The decision counts only if there were offers. */
export interface Answer extends Decision {
  /** How its budgets stand. */
  readonly figures: readonly SharedFigures[];
}

/** Whole units and pico-units. */
type Parts = readonly [units: number, picos: number];

/** `granted` and `short`: the numbers of an offer and of a budget, from 1 on; 0: there is none. */
type RawResult = readonly [
  granted: number,
  short: number,
  resetMs: number,
  rows: readonly (readonly [born: number, writes: number, spent: Parts, held: Parts])[],
  windows: readonly (readonly [tokens: number, renewsMs: number])[],
];

/**
 * The words of an ask: the number of its keys, the keys, and the rest. `gateway` names the rows,
 * `rowOf` says what they are, and `now` is the wall clock. All tasks are of one account.
 */
export function wordsOf(
  gateway: string,
  tasks: readonly Task[],
  rowOf: (budget: Budget) => OwnFigures,
  now: number,
): readonly string[] {
  const stated = ({ period, amount, spent, held, writes }: OwnFigures) => ({
    period: periodName(period, now),
    amount: parts(amount),
    spent: parts(spent),
    held: parts(held),
    writes,
  });
  const plain = tasks.map(({ spender, token, tokens, offers }) => ({
    token,
    tokens,
    offers: offers.map(({ room, cost }) => [parts(room), parts(cost)]),
    budgets: spender.budgets.map((budget) => stated(rowOf(budget))),
    limits: spender.windows.map(({ limit }) => limit),
  }));
  const ask = { gateway, window: WINDOW_MS, lease: LEASE_MS, tasks: plain };
  const keys = tasks.flatMap(keysOf);
  return [String(keys.length), ...keys, JSON.stringify(ask)];
}

/** All keys of one account are on one node of a cluster: that of the tag in braces. */
function keysOf({ spender: { account, budgets, windows } }: Task): readonly string[] {
  const tag = `chat-gateway:{account ${account}}`;
  return [
    ...budgets.map(({ name, period }) => `${tag}:budget:${period}:${name}`),
    ...windows.flatMap(({ name }) => [`${tag}:tokens:${name}`, `${tag}:token-counts:${name}`]),
  ];
}

/** What the script has answered to an ask. */
export const readAnswers = (raw: unknown, tasks: readonly Task[], purses: Purses) =>
  (raw as readonly RawResult[]).map((result, index) => answerOf(tasks[index]!, result, purses));

function answerOf(
  { spender, offers }: Task,
  [granted, short, resetMs, rows, windows]: RawResult,
  purses: Purses,
): Answer {
  const all = spender.budgets.map((budget, index) => {
    const [born, writes, spent, held] = rows[index]!;
    return { ...purses.figures(budget), spent: whole(spent), held: whole(held), born, writes };
  });
  const states = spender.windows.map(({ limit }, index) => {
    const [tokens, renewsMs] = windows[index]!;
    return { limit, remaining: Math.max(0, limit - tokens), resetMs: renewsMs };
  });
  const offer = offers[granted - 1];
  const figures = all[short - 1];
  const cost = offers.at(-1)?.cost ?? 0n;
  const refusal: Refusal = figures ? { by: "budget", figures, cost } : { by: "tokens", resetMs };
  return {
    ...(offer ? { offer } : { refusal }),
    tokens: leastLeft(states),
    figures: all,
  };
}

const parts = (amount: bigint): Parts => [Number(amount / UNIT), Number(amount % UNIT)];

const whole = ([units, picos]: Parts): bigint => BigInt(units) * UNIT + BigInt(picos);
