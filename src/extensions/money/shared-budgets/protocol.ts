// The script in Redis or Valkey, as it is asked and answers. Amounts travel as whole units and
// pico-units of the currency, because a script counts in doubles.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";
import {
  leastLeft,
  periodName,
  type Decision,
  type Figures,
  type Purses,
  type Refusal,
  type ReserveRequest,
  type SpendLimit,
} from "../budgets/index.ts";

/** What a gateway that dies has held is given back after so many milliseconds. */
const LEASE_MS = 15_000;
const UNIT = 1_000_000_000_000n;

/**
 * Writes the rows of this gateway under the limits, and holds one of the offers, or nothing.
 * Without offers it corrects the tokens of the admission that `token` names, if there is one.
 */
export type Task = ReserveRequest;

/** What came of a task. The decision counts only if there were offers. */
export interface Answer extends Decision {
  /** How the budgets stand by what all gateways have spent and hold. */
  readonly figures: readonly Figures[];
  /** The names of those in which this gateway had no row before. */
  readonly missing: readonly string[];
}

/** A limit as the script has it. Without a budget, or without a limit of tokens, these are 0. */
type RawState = readonly [
  wasThere: number,
  spent: number,
  spentPico: number,
  held: number,
  heldPico: number,
  tokens: number,
  renewsMs: number,
];

/** `granted` and `short`: the numbers of an offer and of a limit, from 1 on; 0: there is none. */
type RawResult = readonly [
  granted: number,
  short: number,
  resetMs: number,
  states: readonly RawState[],
];

/**
 * The words of an ask: the number of its keys, the keys, and the rest. `gateway` names the rows,
 * `purses` have what they are, and `now` is the wall clock. All tasks are of one account.
 */
export function wordsOf(
  gateway: string,
  tasks: readonly Task[],
  purses: Purses,
  now: number,
): readonly string[] {
  const stated = ({ tokensPerMinute }: SpendLimit, own: Figures | undefined) => ({
    most: tokensPerMinute ?? undefined,
    period: own && periodName(own.period, now),
    amount: own && parts(own.amount),
    spent: own && parts(own.spent),
    held: own && parts(own.held),
  });
  const keys = tasks.flatMap(({ spender: { account, limits } }) => keysOf(account, limits));
  const plain = tasks.map(({ spender, token, tokens, offers }) => ({
    token,
    tokens,
    offers: offers.map(({ room, cost }) => [parts(room), parts(cost)]),
    limits: spender.limits.map((limit) => stated(limit, purses.figures([limit])[0])),
  }));
  const ask = { gateway, window: WINDOW_MS, lease: LEASE_MS, tasks: plain };
  return [String(keys.length), ...keys, JSON.stringify(ask)];
}

/** All keys of one account are on one node of a cluster: that of the tag in braces. */
function keysOf(account: string, limits: readonly SpendLimit[]): readonly string[] {
  const tag = `chat-gateway:{account ${account}}`;
  return limits.flatMap(({ name, budget }) => [
    `${tag}:budget:${budget?.period ?? ""}:${name}`,
    `${tag}:tokens:${name}`,
    `${tag}:token-counts:${name}`,
  ]);
}

/** What the script has answered to an ask. */
export const readAnswers = (raw: unknown, tasks: readonly Task[], purses: Purses) =>
  (raw as readonly RawResult[]).map((result, index) => answerOf(tasks[index]!, result, purses));

function answerOf(
  { spender: { limits }, offers }: Task,
  [granted, short, resetMs, states]: RawResult,
  purses: Purses,
): Answer {
  const rows = limits.map((limit, index) => {
    const [wasThere, spent, spentPico, held, heldPico] = states[index]!;
    const [own] = purses.figures([limit]);
    const all = { spent: whole(spent, spentPico), held: whole(held, heldPico) };
    return { wasThere, figures: own && { ...own, ...all } };
  });
  const tokens = limits.flatMap(({ tokensPerMinute: limit }, index) => {
    const [, , , , , count, renewsMs] = states[index]!;
    if (limit === null) return [];
    return [{ limit, remaining: Math.max(0, limit - count), resetMs: renewsMs }];
  });
  const offer = offers[granted - 1];
  const figures = rows[short - 1]?.figures;
  const cost = offers.at(-1)?.cost ?? 0n;
  const refusal: Refusal = figures ? { by: "budget", figures, cost } : { by: "tokens", resetMs };
  return {
    ...(offer ? { offer } : { refusal }),
    tokens: leastLeft(tokens),
    figures: rows.flatMap((row) => row.figures ?? []),
    missing: rows.flatMap((row) => (row.figures && !row.wasThere ? row.figures.name : [])),
  };
}

const parts = (amount: bigint): readonly number[] => [Number(amount / UNIT), Number(amount % UNIT)];

const whole = (units: number, picos: number): bigint => BigInt(units) * UNIT + BigInt(picos);
