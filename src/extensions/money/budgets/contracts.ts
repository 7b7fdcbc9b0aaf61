// The interfaces between the parts of this extension, and to extensions that share budgets.
// Requests and decisions are plain data that can be sent to another process.
import type { Config } from "../../../core/config.ts";
import { slot } from "../../../core/extension/installer.ts";
import type { Estimate, Offer } from "../estimates/index.ts";
import type { Budget, Figures, Owner, Purses } from "./purses.ts";
import type { ReadingContext, Outcome } from "./read-books.ts";
import type { TokenLimit, TokenState } from "../token-windows/index.ts";

/** The account and the key that pay for a request. */
export interface Spender extends Owner {
  /** The budgets of both. Empty: spending is counted but not limited. */
  readonly budgets: readonly Budget[];
  /** The limits of tokens per minute of both. Empty: there are none. */
  readonly windows: readonly TokenLimit[];
}

/** A request that asks for money and tokens. All limits of its spender must have room. */
export interface ReserveRequest extends Estimate {
  /** Has the budgets and token windows that must have room. */
  readonly spender: Spender;
  /** Identifies the request in all processes, and in the spend log as Opening.token. */
  readonly token: string;
}

/** Why a request is refused: a budget, its tokens per minute, or the figures are unknown. */
export type Refusal =
  | {
      readonly by: "budget";
      readonly figures: Figures;
      /** The smallest hold that the request needs, in pico-units. */
      readonly cost: bigint;
    }
  | { readonly by: "tokens"; readonly resetMs: number }
  | { readonly by: "store" };

/** The answer to a ReserveRequest. */
export interface Decision {
  /** The offer that is held. Absent or undefined: the request is refused. */
  readonly offer?: Offer | undefined;
  /** Absent or undefined: the request is granted. */
  readonly refusal?: Refusal | undefined;
  /** The limit of tokens with the least left. Absent or undefined: there is none. */
  readonly tokens?: TokenState | undefined;
}

/** The decision while the amounts spent are unknown. */
export const REFUSED_BY_STORE: Decision = { refusal: { by: "store" } };

/** Keeps the amounts that are spent and held. */
export interface Accountant {
  /**
   * Learns how much of the budgets of a configuration is spent. The configuration is in force from
   * now on. The first call comes before the first request. A failure is reported to the operator,
   * and the next request tries again.
   */
  open(config: Config): Promise<void>;
  /** Holds what a request can take under all of its limits, or holds nothing and refuses it. */
  reserve(request: ReserveRequest): Promise<Decision>;
  /**
   * Releases the hold of the request with this token, if it has one, and counts what the request
   * took. `token` undefined: it held nothing. `outcome` absent or undefined: it was not served.
   */
  settle(token: string | undefined, outcome?: Outcome): void;
  /**
   * How the budgets of the configuration stand, and those of created keys that have asked since it
   * is in force.
   * Undefined: another process knows.
   */
  standing(): readonly Figures[] | undefined;
  /**
   * Ends its timers and its connection, if it has any, once others know what was spent last. It
   * must not be used after that.
   */
  close(): void | Promise<void>;
}

/** Decides about requests for several gateways. */
export interface SharedStore {
  /** Writes to the store what this gateway has spent and holds in these budgets. */
  open(budgets: readonly Budget[]): Promise<void>;
  /**
   * As Accountant.reserve. When this resolves, `purses` has the hold. Undefined: the store cannot
   * be reached, and this gateway has to decide by itself.
   */
  reserve(request: ReserveRequest): Promise<Decision | undefined>;
  /** Counts the tokens of a request that has ended. `purses` already has its cost. */
  settle(request: ReserveRequest, tokens: number): void;
  /** The figures of the given budgets for all gateways together, as far as the store knows them. */
  standing(budgets: readonly Budget[]): readonly Figures[];
  /** As Accountant.close. */
  close(): Promise<void>;
}

export interface SharingOptions extends ReadingContext {
  /** The amounts that this gateway itself spends and holds. */
  readonly purses: Purses;
  /** Receives the figures of budgets for all gateways together. */
  readonly warn: (figures: Figures) => void;
}

/**
 * Shares the budgets of several gateways; undefined: the configuration names no server to share
 * them in. Throws a ValidationError if the package for that server is missing. Empty: each gateway
 * has its own.
 */
export const sharedBudgetsSlot =
  slot<(options: SharingOptions) => SharedStore | undefined>("sharedBudgets");
