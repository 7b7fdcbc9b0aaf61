// The arguments and answers of the script in Redis or Valkey. An amount is sent as whole units and
// pico-units of the currency, because Lua's numbers are doubles, which cannot hold it exactly.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";
import {
  periodName,
  type Budget,
  type Decision,
  type Figures,
  type SpendCounters,
  type Refusal,
  type ReserveRequest,
} from "../budgets/index.ts";
import { leastLeft } from "../token-windows/index.ts";

/** The hold in a row expires if its gateway has not written the row for so long. */
export const LEASE_MS = 15_000;
/** Pico-units in a whole unit. */
const PICOS = 1_000_000_000_000n;

/**
 * Writes the rows of this gateway in the budgets of the spender. Then holds the first offer that
 * fits or, without offers, corrects the tokens of the admission that `holdId` names, if any.
 */
export type Task = ReserveRequest;

/** The figures of a budget for all gateways together. */
export interface SharedFigures extends Figures {
  /** When this gateway's row was created, by the store's clock, in milliseconds since 1970. */
  readonly createdAt: number;
  /** How often that row was written. If it is less later, the store has gone back to old rows. */
  readonly writes: number;
}

/** The figures of a budget for this gateway alone. */
export interface OwnFigures extends Figures {
  /** SharedFigures.writes of the last answer. 0: there was none. */
  readonly writes: number;
}

/** The result of a task. Without offers, ignore the decision. */
export interface Answer extends Decision {
  /** The figures of its budgets, in their order. */
  readonly figures: readonly SharedFigures[];
}

/** An amount as whole units and pico-units. */
type Parts = readonly [units: number, picos: number];

/**
 * The script's answer to one task. `granted`: the number of the offer that is held; `exceeded`: the
 * number of a budget without room; both count from 1, and 0 means none. `rows`, `windows`: one for
 * each budget, and one for each token limit of the task.
 */
type RawResult = readonly [
  granted: number,
  exceeded: number,
  resetMs: number,
  rows: readonly (readonly [createdAt: number, writes: number, spent: Parts, held: Parts])[],
  windows: readonly (readonly [tokens: number, renewsMs: number])[],
];

/**
 * The arguments of a call of the script: the number of keys, the keys, and JSON. All tasks are of
 * one account. `gateway` names the rows, `ownFigures` returns their content.
 */
export function argumentsOf(
  gateway: string,
  tasks: readonly Task[],
  ownFigures: (budget: Budget) => OwnFigures,
  now: number,
): readonly string[] {
  const rowOf = ({ period, amount, spent, held, writes }: OwnFigures) => ({
    period: periodName(period, now),
    amount: partsOf(amount),
    spent: partsOf(spent),
    held: partsOf(held),
    writes,
  });
  const plainTasks = tasks.map(({ spender, holdId, tokens, offers }) => ({
    token: holdId,
    tokens,
    offers: offers.map(({ room, cost }) => [partsOf(room), partsOf(cost)]),
    budgets: spender.budgets.map((budget) => rowOf(ownFigures(budget))),
    limits: spender.windows.map(({ limit }) => limit),
  }));
  const input = { gateway, window: WINDOW_MS, lease: LEASE_MS, tasks: plainTasks };
  const keys = tasks.flatMap(keysOf);
  return [String(keys.length), ...keys, JSON.stringify(input)];
}

/** The keys of a task. The tag in braces keeps those of one account on one node of a cluster. */
function keysOf({ spender: { account, budgets, windows } }: Task): readonly string[] {
  const tag = `chat-gateway:{account ${account}}`;
  return [
    ...budgets.map(({ name, period }) => `${tag}:budget:${period}:${name}`),
    ...windows.flatMap(({ name }) => [`${tag}:tokens:${name}`, `${tag}:token-counts:${name}`]),
  ];
}

/** Parses the script's answer to a call. */
export const readAnswers = (raw: unknown, tasks: readonly Task[], counters: SpendCounters) =>
  (raw as readonly RawResult[]).map((result, index) => readAnswer(tasks[index]!, result, counters));

function readAnswer(
  { spender, offers }: Task,
  [granted, exceeded, resetMs, rows, windows]: RawResult,
  counters: SpendCounters,
): Answer {
  const all = spender.budgets.map((budget, index) => {
    const [createdAt, writes, spent, held] = rows[index]!;
    const amounts = { spent: amountOf(spent), held: amountOf(held) };
    return { ...counters.figures(budget), ...amounts, createdAt, writes };
  });
  const states = spender.windows.map(({ limit }, index) => {
    const [tokens, renewsMs] = windows[index]!;
    return { limit, remaining: Math.max(0, limit - tokens), resetMs: renewsMs };
  });
  const offer = offers[granted - 1];
  const figures = all[exceeded - 1];
  const cost = offers.at(-1)?.cost ?? 0n;
  const refusal: Refusal = figures ? { by: "budget", figures, cost } : { by: "tokens", resetMs };
  return {
    ...(offer ? { offer } : { refusal }),
    tokens: leastLeft(states),
    figures: all,
  };
}

const partsOf = (amount: bigint): Parts => [Number(amount / PICOS), Number(amount % PICOS)];

const amountOf = ([units, picos]: Parts): bigint => BigInt(units) * PICOS + BigInt(picos);
