// The script in Redis or Valkey, as it is asked and answers. Amounts travel as whole units and
// pico-units of the currency, because a script counts in doubles.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";
import type { Clock } from "../../../core/clock.ts";
import type { LocalAccountant, SpendLimit } from "../budgets/index.ts";
import type { Offer } from "../estimates/index.ts";
import { periodEnd, periodName, type Figures } from "../spent/index.ts";
import { leastLeft, type TokenState } from "../token-limits/index.ts";
import type { StoredScript } from "../../redis/index.ts";

/** What a gateway that dies has held is given back after so many milliseconds. */
const LEASE_MS = 15_000;
const UNIT = 1_000_000_000_000n;

/** What the script is to do. */
export interface Task {
  /**
   * publish: write the rows of this gateway anew. reserve: hold one of `offers`, or nothing.
   * settle: `held` was held, and `spent` is spent.
   */
  readonly name: "publish" | "reserve" | "settle";
  /** Names the admission. */
  readonly id: string;
  /** What to hold, or what was taken in the end. 0 to publish. */
  readonly tokens: number;
  /** In pico-units. 0 other than to settle. */
  readonly held: bigint;
  /** In pico-units. 0 other than to settle. */
  readonly spent: bigint;
  /** As ReserveRequest.offers. Empty other than to reserve. */
  readonly offers: readonly Offer[];
}

/** What the script says. */
export interface Answer {
  /** Of `reserve`: what is held of what was offered. Undefined: nothing is. */
  readonly granted: Offer | undefined;
  /** The budget that has no room. Undefined: all have. */
  readonly shortOf: string | undefined;
  /** Milliseconds until there is room for the tokens; 0: there is. */
  readonly resetMs: number;
  /** Of the budgets among the limits: what all gateways have spent and hold. */
  readonly figures: readonly Figures[];
  /** Of the limit of tokens that has least left. Undefined: none of the limits bounds tokens. */
  readonly tokens: TokenState | undefined;
  /** Whether this gateway had a row in each of the budgets. */
  readonly isKnown: boolean;
}

/** Asks the script. Undefined: the store cannot be asked. */
export type AskScript = (
  account: string,
  limits: readonly SpendLimit[],
  task: Task,
) => Promise<Answer | undefined>;

export interface ScriptOptions {
  /** The script on its server, with the connection to it. */
  readonly script: StoredScript;
  /** Knows what this gateway itself has spent and holds, which is written into its rows. */
  readonly local: LocalAccountant;
  /** Names the rows of this gateway: 32 hexadecimal digits. */
  readonly gatewayId: () => string;
  /** Its wall clock tells which period it is. */
  readonly clock: Clock;
}

/** One limit as the script has it: amounts are digits. */
type RawRow = readonly [
  spent: string,
  spentPico: string,
  held: string,
  heldPico: string,
  count: number,
  renewsMs: number,
];

type RawAnswer = readonly [
  known: number,
  refused: number,
  resetMs: number,
  rows: readonly RawRow[],
  granted: number,
];

export function createAskScript({ script, local, gatewayId, clock }: ScriptOptions): AskScript {
  let gateway: string | undefined;

  function wordsOf(account: string, limits: readonly SpendLimit[], task: Task): string[] {
    gateway ??= gatewayId();
    const { name, id, tokens, held, spent, offers } = task;
    const keys = keysOf(account, limits);
    const head = [name, gateway, WINDOW_MS, LEASE_MS, id, tokens, ...parts(held), ...parts(spent)];
    const rows = rowsOf(limits, local.own(limits), clock.now());
    const offered = offers.flatMap(({ room, cost }) => [...parts(room), ...parts(cost)]);
    return [keys.length, ...keys, ...head, ...rows, ...offered].map(String);
  }

  return async (account, limits, task) => {
    const answer = await script.run(wordsOf(account, limits, task));
    if (answer === undefined) return undefined;
    return answerOf(limits, task, answer as RawAnswer, clock.now());
  };
}

/** All keys of one account are on one node of a cluster: that of the tag in braces. */
function keysOf(account: string, limits: readonly SpendLimit[]): string[] {
  const tag = `chat-gateway:{account ${account}}`;
  return limits.flatMap(({ name, budget }) => [
    `${tag}:budget:${budget?.period ?? ""}:${name}`,
    `${tag}:tokens:${name}`,
    `${tag}:token-counts:${name}`,
  ]);
}

/** What the script is told of each limit. */
function rowsOf(limits: readonly SpendLimit[], own: readonly Figures[], now: number) {
  return limits.flatMap(({ name, budget, tokensPerMinute }) => {
    const { spent = 0n, held = 0n } = own.find((figures) => figures.name === name) ?? {};
    return [
      budget ? periodName(budget.period, now) : "",
      ...parts(budget?.amount ?? 0n),
      tokensPerMinute ?? "",
      ...parts(spent),
      ...parts(held),
    ];
  });
}

function answerOf(
  limits: readonly SpendLimit[],
  { offers }: Task,
  [known, refused, resetMs, rows, granted]: RawAnswer,
  at: number,
): Answer {
  const isKnown = known === 1;
  return {
    granted: offers[granted - 1],
    shortOf: limits[refused - 1]?.name,
    resetMs,
    figures: limits.flatMap((limit, index) => figuresIn(limit, rows[index]!, at)),
    tokens: leastLeft(tokenStatesIn(limits, rows)),
    isKnown,
  };
}

function figuresIn({ name, budget }: SpendLimit, row: RawRow, at: number): Figures[] {
  if (!budget) return [];
  const { period, amount } = budget;
  const [spent, spentPico, held, heldPico] = row;
  return [
    {
      name,
      period,
      amount,
      spent: whole(spent, spentPico),
      held: whole(held, heldPico),
      ends: periodEnd(period, at),
    },
  ];
}

/** How the limits of tokens stand. */
function tokenStatesIn(limits: readonly SpendLimit[], rows: readonly RawRow[]): TokenState[] {
  return limits.flatMap(({ tokensPerMinute: limit }, index) => {
    const [, , , , count, resetMs] = rows[index]!;
    return limit === null ? [] : [{ limit, remaining: Math.max(0, limit - count), resetMs }];
  });
}

const parts = (amount: bigint): readonly bigint[] => [amount / UNIT, amount % UNIT];

const whole = (units: string, picos: string): bigint => BigInt(units) * UNIT + BigInt(picos);
