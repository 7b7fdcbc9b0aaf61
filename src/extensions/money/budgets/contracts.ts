// The interfaces between the parts of this extension, and to extensions that share budgets.
// Requests and decisions are plain data, because workers send them to the primary.
import type { Config } from "../../../core/config.ts";
import { slot } from "../../../core/extension/installer.ts";
import type { Estimate, Offer } from "../estimates/index.ts";
import type { Budget, Figures, Owner, SpendCounters } from "./spend-counters.ts";
import type { ReadingContext, Outcome } from "./read-books.ts";
import type { TokenLimit, TokenState } from "../token-windows/index.ts";

/** The account and the key that pay for a request. */
export interface Spender extends Owner {
  /** The budgets of both. Empty: their spending is counted but not limited. */
  readonly budgets: readonly Budget[];
  /** The token limits of both. Empty: there are none. */
  readonly windows: readonly TokenLimit[];
}

/** Asks whether a request may run. All budgets and token limits of its spender must have room. */
export interface ReserveRequest extends Estimate {
  /** The account and the key of the request. */
  readonly spender: Spender;
  /** Identifies the hold in all processes, and its request in the spend log (Opening.holdId). */
  readonly holdId: string;
}

/**
 * Why a request is refused. `budget`: a budget has no room. `tokens`: a token limit has no room
 * for `resetMs` milliseconds. `unavailable`: the amounts spent are not known at the moment.
 */
export type Refusal =
  | {
      readonly by: "budget";
      /** The budget that has no room. */
      readonly figures: Figures;
      /** The smallest hold that the request needs, in pico-units. */
      readonly cost: bigint;
    }
  | { readonly by: "tokens"; readonly resetMs: number }
  | { readonly by: "unavailable" };

/** The answer to a ReserveRequest. */
export interface Decision {
  /** The offer that is held. Absent or undefined: the request is refused. */
  readonly offer?: Offer | undefined;
  /** Absent or undefined: the request is granted. */
  readonly refusal?: Refusal | undefined;
  /** The token limit with the least left. Absent or undefined: there is none. */
  readonly tokens?: TokenState | undefined;
}

/** The decision while the amounts spent are not known. */
export const REFUSED_AS_UNAVAILABLE: Decision = { refusal: { by: "unavailable" } };

/** Grants and settles requests by the amounts that are spent and held. */
export interface Accountant {
  /**
   * Puts the budgets of a configuration in force, and reads from the books how much of them was
   * spent, if that is not known. The first call comes before the first request. If the books
   * cannot be read, it reports that to the operator, and a later request tries again.
   */
  open(config: Config): Promise<void>;
  /** Grants a request and holds its cost and tokens, or refuses it and holds nothing. */
  reserve(request: ReserveRequest): Promise<Decision>;
  /**
   * Releases a hold, and counts the cost and tokens of its request. `holdId` undefined: the request
   * has no hold. `outcome` absent or undefined: it cost nothing.
   */
  settle(holdId: string | undefined, outcome?: Outcome): void;
  /**
   * The figures of the configuration's budgets, and of those of created keys that have asked since
   * it came into force. Undefined: another process has them.
   */
  figures(): readonly Figures[] | undefined;
  /**
   * Passes on what was spent last, then ends timers and connections, if there are any. It must not
   * be used after that.
   */
  close(): void | Promise<void>;
}

/** Decides about requests for several gateways. */
export interface SharedStore {
  /** Writes to the store what this gateway has spent and holds in these budgets. */
  open(budgets: readonly Budget[]): Promise<void>;
  /**
   * As Accountant.reserve. It also adds the hold to SharingOptions.counters. Undefined: the store
   * cannot be reached, and this gateway decides by itself.
   */
  reserve(request: ReserveRequest): Promise<Decision | undefined>;
  /** Counts the tokens of a request that has ended. Its cost is already in `counters`. */
  settle(request: ReserveRequest, tokens: number): void;
  /** The figures of these budgets for all gateways together, where the store has stated them. */
  figures(budgets: readonly Budget[]): readonly Figures[];
  /** As Accountant.close. */
  close(): Promise<void>;
}

export interface SharingOptions extends ReadingContext {
  /** What this gateway itself has spent and holds. */
  readonly counters: SpendCounters;
  /** Warns the operator of budgets that are largely spent. To be called with new figures. */
  readonly warn: (figures: Figures) => void;
}

/**
 * Opens the store in which gateways share budgets. Undefined: the configuration names none. Throws
 * a ValidationError if the package for its server is missing. Empty: each gateway has its own
 * budgets.
 */
export const sharedBudgetsSlot =
  slot<(options: SharingOptions) => SharedStore | undefined>("sharedBudgets");
