// A model of the scripts that the gateway runs in Redis. Each call is one event, so it is atomic. A
// test compares the model with the scripts on a real server.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

/** The texts of the scripts. */
const textOf = (path: string): string => readFileSync(resolve("src", path), "utf8");
export const WINDOWS = textOf("extensions/scale/redis/script.lua");
export const BUDGETS = textOf("extensions/money/shared-budgets/script.lua");

/** One gateway's row in a budget. Amounts are in pico-units, times in milliseconds since 1970. */
interface Row {
  readonly period: string;
  readonly spent: bigint;
  readonly held: bigint;
  readonly expires: number;
  readonly created: number;
  readonly writes: number;
}

/** A request in a window of tokens. */
interface Admission {
  readonly at: number;
  readonly token: string;
  tokens: number;
}

/** What the scripts have stored. */
export type StoredData = ReturnType<typeof emptyData>;

/** The data of the scripts, by the keys of Redis. */
export const emptyData = () => ({
  /** Times of admissions, oldest first. */
  windows: new Map<string, number[]>(),
  /** Rows by the names of gateways. */
  budgets: new Map<string, Map<string, Row>>(),
  tokens: new Map<string, Admission[]>(),
});

/** The value of a key, which is created if it is missing. */
function valueIn<T>(map: Map<string, T>, key: string, make: () => T): T {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}

/** Runs a script at the time `now`. Its words: the number of keys, the keys, the arguments. */
export function runScript(
  data: StoredData,
  script: string,
  [count, ...words]: readonly string[],
  now: number,
): unknown {
  const keys = words.slice(0, Number(count));
  const further = words.slice(Number(count));
  return script === WINDOWS
    ? runWindows(data, keys, further.map(Number), now)
    : runBudgets(data, keys, JSON.parse(further[0]!) as Call, Math.floor(now));
}

/** The script of limits: admits a request to windows, or takes an admission back. */
function runWindows(
  { windows }: StoredData,
  keys: readonly string[],
  [windowMs = 0, refundedAt = 0, ...limits]: readonly number[],
  time: number,
): unknown {
  const lists = keys.map((key) => valueIn(windows, key, (): number[] => []));
  if (refundedAt !== 0) {
    for (const times of lists) {
      const at = times.lastIndexOf(refundedAt);
      if (at >= 0) times.splice(at, 1);
    }
    return null;
  }
  let now = Number(time.toFixed(3));
  for (const times of lists) {
    now = Math.max(now, times.at(-1) ?? 0);
    while (times[0]! + windowMs <= now) times.shift();
  }
  const isAdmitted = lists.every((times, index) => times.length < limits[index]!);
  const figures = lists.map((times, index) => {
    if (isAdmitted) times.push(now);
    const expiring = times[Math.max(0, times.length - limits[index]!)] ?? now;
    return [times.length, Math.ceil(expiring + windowMs - now)];
  });
  return [isAdmitted ? 1 : 0, now.toFixed(3), figures];
}

/** An amount as whole units and pico-units. */
type Parts = readonly [units: number, picos: number];

interface BudgetOfTask extends Record<"amount" | "spent" | "held", Parts> {
  readonly period: string;
  readonly writes: number;
}

interface Task {
  readonly token: string;
  readonly tokens: number;
  readonly offers: readonly (readonly [room: Parts, cost: Parts])[];
  readonly budgets: readonly BudgetOfTask[];
  readonly limits: readonly number[];
}

/** The argument of the script of budgets. */
interface Call {
  readonly gateway: string;
  readonly window: number;
  readonly lease: number;
  readonly tasks: readonly Task[];
}

const UNIT = 1_000_000_000_000n;
const amountOf = ([units, picos]: Parts): bigint => BigInt(units) * UNIT + BigInt(picos);
const partsOf = (amount: bigint): Parts => [Number(amount / UNIT), Number(amount % UNIT)];
const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((one, more) => one + more, 0n);

/** The script of budgets: decides about tasks of one account, and writes the gateway's rows. */
function runBudgets(data: StoredData, keys: readonly string[], call: Call, time: number) {
  const opened = new Map<string, ReturnType<typeof openRow>>();
  const left = [...keys];
  const answers = call.tasks.map((task) => {
    const rows = task.budgets.map((budget) => {
      const key = left.shift()!;
      const rows = valueIn(data.budgets, key, () => new Map<string, Row>());
      return valueIn(opened, key, () => openRow(rows, budget, call, time));
    });
    const windows = task.limits.map((limit) => {
      const [list] = left.splice(0, 2); // The other key has the tokens; here the list has them.
      const admissions = valueIn(data.tokens, list!, (): Admission[] => []);
      return openWindow(admissions, limit, call.window, time);
    });
    const decision = task.offers.length > 0 ? reserve(task, rows, windows) : correct(task, windows);
    return [
      ...decision,
      rows.map(({ created, writes, spent, spentByOthers, held, heldByOthers }) => [
        created,
        writes,
        partsOf(spent + spentByOthers),
        partsOf(held + heldByOthers),
      ]),
      windows.map(({ used, renewsMs }) => [used(), renewsMs()]),
    ];
  });
  for (const [key, row] of opened) data.budgets.get(key)!.set(call.gateway, row);
  return answers;
}

/** The row of the calling gateway, with the sums of what the other gateways have spent and hold. */
function openRow(
  rows: ReadonlyMap<string, Row>,
  { period, writes, ...own }: BudgetOfTask,
  { gateway, lease }: Call,
  time: number,
) {
  const others = [...rows].filter(([name]) => name !== gateway).map(([, row]) => row);
  const before = rows.get(gateway);
  const isKnown = before !== undefined && before.writes >= writes;
  return {
    period,
    spent: amountOf(own.spent),
    held: amountOf(own.held),
    expires: time + lease,
    created: isKnown ? before.created : time,
    writes: (before?.writes ?? 0) + 1,
    spentByOthers: sum(others.filter((row) => row.period >= period).map(({ spent }) => spent)),
    heldByOthers: sum(others.filter(({ expires }) => expires > time).map(({ held }) => held)),
  };
}

function openWindow(admissions: Admission[], limit: number, windowMs: number, time: number) {
  const now = Math.max(time, admissions.at(-1)?.at ?? 0);
  const msUntilExpired = ({ at }: Admission) => Math.min(windowMs, at + windowMs - now + 1);
  while (admissions[0] && msUntilExpired(admissions[0]) <= 0) admissions.shift();
  const used = (): number => admissions.reduce((total, { tokens }) => total + tokens, 0);
  return {
    admissions,
    used,
    renewsMs: (): number => (admissions[0] ? msUntilExpired(admissions[0]) : 0),
    admit: (token: string, tokens: number) => admissions.push({ at: now, token, tokens }),
    /** Milliseconds until there is room. 0: there is. */
    msUntilRoom(tokens: number): number {
      let left = used();
      if (left + tokens <= limit) return 0;
      for (const admission of tokens > limit ? [] : admissions) {
        left -= admission.tokens;
        if (left + tokens <= limit) return msUntilExpired(admission);
      }
      return windowMs;
    },
  };
}

type Window = ReturnType<typeof openWindow>;
/** The numbers of an offer and a budget count from 1; 0 means none. */
type Decided = readonly [granted: number, exceeded: number, resetMs: number];

/** Holds the first offer that fits. */
function reserve(
  { token, tokens, offers, budgets }: Task,
  rows: readonly ReturnType<typeof openRow>[],
  windows: readonly Window[],
): Decided {
  const exceededBy = ([room, cost]: Task["offers"][number]): number => {
    if (amountOf(cost) === 0n) return 0;
    const isExceeded = rows.map(
      ({ spent, spentByOthers, held, heldByOthers }, index) =>
        spent + spentByOthers + held + heldByOthers + amountOf(room) >
        amountOf(budgets[index]!.amount),
    );
    return isExceeded.indexOf(true) + 1;
  };
  const offer = offers.find((each) => exceededBy(each) === 0);
  const exceeded = offer ? 0 : exceededBy(offers.at(-1)!);
  const resetMs = Math.max(0, ...windows.map(({ msUntilRoom }) => msUntilRoom(tokens)));
  if (!offer || resetMs > 0) return [0, exceeded, resetMs];
  for (const row of rows) row.held += amountOf(offer[1]);
  for (const { admit } of windows) admit(token, tokens);
  return [offers.indexOf(offer) + 1, 0, 0];
}

/** Corrects the tokens of an admission that is still in its windows. */
function correct({ token, tokens }: Task, windows: readonly Window[]): Decided {
  for (const { admissions } of windows)
    for (const admission of admissions) if (admission.token === token) admission.tokens = tokens;
  return [0, 0, 0];
}
