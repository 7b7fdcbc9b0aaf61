// What the parts of this extension, and those that share budgets, say to each other. Requests,
// decisions and tickets are data that can be sent to another process.
import type { Config } from "../../../core/config.ts";
import type { Extension } from "../../../core/extension/extension.ts";
import type { Estimate, Offer } from "../estimates/index.ts";
import type {
  BooksContext,
  Outcome,
  Budget,
  Figures,
  Owner,
  Purses,
  Spent,
} from "../spent/index.ts";
import type { TokenLimit, TokenState } from "./token-windows.ts";

/** Whose money is spent. */
export interface Spender extends Owner {
  /** Of both. Empty: they may spend any amount, which is counted all the same. */
  readonly budgets: readonly Budget[];
  /** The limits of tokens per minute of both. Empty: any number. */
  readonly windows: readonly TokenLimit[];
}

/** A request that asks for money and tokens. All limits of its spender must have room. */
export interface ReserveRequest extends Estimate {
  /** Whose budgets and windows the amounts are held in. */
  readonly spender: Spender;
  /** Names the request everywhere, and in the spend log as Opening.token. */
  readonly token: string;
}

/** Why a request is refused: a budget, its tokens per minute, or nobody can be asked. */
export type Refusal =
  | {
      readonly by: "budget";
      readonly figures: Figures;
      /** What the request would have held at least, in pico-units. */
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
  /** Of the limit of tokens that has least left. Absent or undefined: there is none. */
  readonly tokens?: TokenState | undefined;
}

/** The decision while it is not known what was spent. */
export const REFUSED_BY_STORE: Decision = { refusal: { by: "store" } };

/** Keeps what is spent and held. */
export interface Accountant {
  /**
   * Makes it known how the budgets of a configuration stand, which is in force from now on. The
   * first call is made before the first request of the installation. A failure is reported; the
   * next request tries again.
   */
  open(config: Config): Promise<void>;
  /** Holds what a request can take under all of its limits, or nothing. */
  reserve(request: ReserveRequest): Promise<Decision>;
  /**
   * Gives back what is held for the request of this token, if any, and counts what it took. Absent
   * or undefined: it was not served.
   */
  settle(token: string, outcome?: Outcome): void;
  /** Counts what was spent by somebody for whom nothing was held. */
  spend(spent: Spent): void;
  /**
   * How the budgets of the configuration stand, and those of created keys that have asked.
   * Undefined: another process knows.
   */
  standing(): readonly Figures[] | undefined;
  /**
   * Ends its timers and its connection, if it has any, once others know what was spent last.
   * Nothing may be asked of it after that.
   */
  close(): void | Promise<void>;
}

/** Decides about the requests of several gateways. */
export interface SharedStore {
  /** Tells the store how this gateway stands in these budgets. */
  open(budgets: readonly Budget[]): Promise<void>;
  /**
   * As Accountant.reserve. What is granted is held in `purses` when this resolves. Undefined: the
   * store cannot be asked, and this gateway is to decide by itself.
   */
  reserve(request: ReserveRequest): Promise<Decision | undefined>;
  /** A request has ended that took so many tokens. `purses` have its cost already. */
  settle(request: ReserveRequest, tokens: number): void;
  /** How those of the budgets stand, by what all gateways have spent and hold, that it knows. */
  standing(budgets: readonly Budget[]): readonly Figures[];
  /** As Accountant.close. */
  close(): Promise<void>;
}

export interface SharingOptions extends BooksContext {
  /** What this gateway itself spends and holds. */
  readonly purses: Purses;
  /** Hears how budgets stand by what all gateways have spent. */
  readonly warn: (figures: Figures) => void;
}

/** An extension by which several gateways can share their budgets. */
export interface SharingExtension extends Extension {
  /**
   * Undefined: the configuration names nothing to share them in. Throws a ValidationError if the
   * package that it takes is missing.
   */
  shareBudgets(options: SharingOptions): SharedStore | undefined;
}
