// Budgets in Redis or Valkey: a script decides by what all gateways have spent and hold. Each
// gateway has a row in each budget there, which it writes from what its books and memory tell: so a
// store that has forgotten everything learns it again.
import type { Timer } from "../../../core/clock.ts";
import {
  REFUSED_BY_STORE,
  type Budget,
  type Figures,
  type Purses,
  type SharedStore,
} from "../budgets/index.ts";
import type { OnError } from "../../scale/redis/index.ts";
import { createAsk, type AskOptions } from "./asks.ts";
import { LEASE_MS, type Answer, type SharedFigures, type Task } from "./protocol.ts";

/**
 * How often rows are written without a request, in milliseconds: those that hold something, which
 * the store would take for those of a dead gateway else, and so many others.
 */
const BEAT_MS = 2_000;
const ROWS_A_BEAT = 100;
/** Rows that are written at once where all are: the store has to answer others in time. */
const ROWS_AT_ONCE = 100;

export interface SharedStoreOptions extends AskOptions {
  /** What happens while the store cannot be asked, or has forgotten. */
  readonly onError: OnError;
}

export function createSharedStore(options: SharedStoreOptions): SharedStore {
  const { script, purses, warn, onError, clock, diagnose } = options;
  /** The budgets that were asked about, by their names. */
  const budgets = new Map<string, Budget>();
  /** How they stood when the store was last asked. */
  const latest = new Map<string, SharedFigures>();
  /** A reload may have moved a key to another account, where it has another row. */
  const latestOf = ({ name, account, period }: Budget): SharedFigures | undefined => {
    const figures = latest.get(name);
    return figures?.period === period && figures.account === account ? figures : undefined;
  };
  const askScript = createAsk(options, (budget) => ({
    ...purses.figures(budget),
    writes: latestOf(budget)?.writes ?? 0,
  }));
  let timer: Timer | undefined;
  /** Where the next beat goes on among the budgets. */
  let next = 0;
  /** When it was seen that the store has lost rows, by the monotonic clock. */
  let lostAt = -Infinity;

  /** Undefined: the store cannot be reached. */
  async function ask(task: Task): Promise<Answer | undefined> {
    timer ??= clock.after(BEAT_MS, beat);
    const answer = await askScript(task);
    if (answer?.figures.some(wasLost)) lost();
    for (const figures of answer?.figures ?? []) {
      latest.set(figures.name, figures);
      warn(figures);
    }
    return answer;
  }

  /** Whether the store had no row, or an old one: the row is another one since then. */
  const wasLost = (row: SharedFigures): boolean => row.born !== (latestOf(row)?.born ?? row.born);

  const rows = createRowWriter(ask, () => script.fault() === null);

  function beat(): void {
    timer = clock.after(BEAT_MS, beat);
    rows.write([]);
    const all = [...budgets.values()];
    const inTurn = all.slice(next, next + ROWS_A_BEAT);
    next = next + ROWS_A_BEAT < all.length ? next + ROWS_A_BEAT : 0;
    for (const budget of new Set([...all.filter(isHeldIn(purses)), ...inTurn]))
      rows.writeOne(budget);
  }

  /** Whether rows may be missing of gateways that are not dead. */
  const isForgetful = (): boolean =>
    clock.monotonic() - lostAt < LEASE_MS || (lostAt > -Infinity && rows.areMissing());

  /** The store has lost a row, and so all: they are written at once, before others miss them. */
  function lost(): void {
    const isNew = !isForgetful();
    lostAt = clock.monotonic();
    if (!isNew) return;
    const detail = "the store of the limits has lost what was spent; the gateways write it again";
    diagnose({ event: "budgets_store_forgot", level: "error", detail });
    rows.write(budgets.values());
  }

  return {
    async open(configured) {
      for (const budget of configured) budgets.set(budget.name, budget);
      await rows.write(configured);
    },
    async reserve(request) {
      // A reload may have changed them.
      for (const budget of request.spender.budgets) budgets.set(budget.name, budget);
      const answer = await ask(request);
      if (onError === "local") return answer;
      if (!answer?.offer || !isForgetful()) return answer ?? REFUSED_BY_STORE;
      purses.hold(request.spender, -answer.offer.cost);
      ask({ ...request, tokens: 0, offers: [] });
      return REFUSED_BY_STORE;
    },
    settle(request, tokens) {
      ask({ ...request, tokens, offers: [] });
    },
    standing: (shown) =>
      shown.flatMap((budget) => standingOf(purses.figures(budget), latestOf(budget))),
    async close() {
      if (!timer) return; // nothing was asked
      timer.cancel();
      // What was spent last must be there: this gateway may be gone for good.
      await rows.write(budgets.values());
      script.close();
    },
  };
}

/**
 * Writes rows. Those that the store may lack it writes some at a time. `canAsk`: whether the store
 * answers.
 */
function createRowWriter(ask: (task: Task) => Promise<unknown>, canAsk: () => boolean) {
  const missing = new Set<Budget>();
  let inFlight = 0;
  /** Resolves when nobody writes. One writing follows the other. */
  let writing = Promise.resolve();

  /** It also learns what the other gateways have. */
  function writeOne(budget: Budget): Promise<unknown> {
    const spender = { account: budget.account, key_id: "", budgets: [budget], windows: [] };
    return ask({ spender, token: "", tokens: 0, offers: [] });
  }

  /** A row whose own key is spoilt is no reason to leave the others. */
  async function writeMissing(): Promise<void> {
    const rows = [...missing];
    for (let at = 0; at < rows.length && (at === 0 || canAsk()); at += ROWS_AT_ONCE) {
      const batch = rows.slice(at, at + ROWS_AT_ONCE);
      // What is added from now on is written once more: it may have changed.
      for (const row of batch) missing.delete(row);
      inFlight = batch.length;
      const answers = await Promise.all(batch.map(writeOne));
      inFlight = 0;
      for (const [index, row] of batch.entries())
        if (!answers[index] && !canAsk()) missing.add(row);
    }
  }

  return {
    writeOne,
    areMissing: (): boolean => missing.size + inFlight > 0,
    /** Writes these too. If the store cannot be asked, the next call goes on. */
    async write(more: Iterable<Budget>): Promise<void> {
      for (const budget of more) missing.add(budget);
      writing = writing.then(writeMissing);
      await writing;
    },
  };
}

const isHeldIn =
  (purses: Purses) =>
  (budget: Budget): boolean =>
    purses.figures(budget).held > 0n;

/** Those of all gateways; its own if nobody has asked since the period ended. Empty: none ever. */
const standingOf = (own: Figures, all: SharedFigures | undefined): readonly Figures[] =>
  all ? [all.ends === own.ends ? all : own] : [];
