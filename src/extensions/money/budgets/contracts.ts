// What the parts of this extension say to each other. All of it but the accountant is data that can
// be sent to another process.
import type { Config } from "../../../core/config.ts";
import type { Estimate } from "../estimates/index.ts";
import type { BudgetLimit, Figures, Outcome, Owner } from "../spent/index.ts";
import type { TokenLimit, TokenState } from "../token-limits/index.ts";

/** A limit of an account or of a key, and what it bounds. */
export interface SpendLimit extends BudgetLimit, TokenLimit {}

/** Whose money is spent. */
export interface Spender extends Owner {
  /** The limits of both. Empty: they may spend any amount, which is counted all the same. */
  readonly limits: readonly SpendLimit[];
}

/** A request that asks for money and tokens. */
export interface ReserveRequest extends Estimate {
  /** All of its limits must have room. */
  readonly spender: Spender;
}

/** What is held for a request. */
export interface Ticket {
  /** Names it among those of the process that granted it. */
  readonly id: number;
  /** Under its limits the amounts are held. */
  readonly spender: Spender;
  /** In pico-units of the currency. */
  readonly cost: bigint;
  /** As in Offer. */
  readonly maxTokens?: number | undefined;
  /** Counted in the limits of tokens per minute, until the settlement corrects them. */
  readonly tokens: number;
  /** Names its request in the spend log, as Opening.token. */
  readonly token: string;
  /** Names its admission in a store that several gateways share. Absent: it is not in one. */
  readonly shared?: string;
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
  /** Absent: the request is refused. */
  readonly ticket?: Ticket;
  /** Absent: the request is granted. */
  readonly refusal?: Refusal;
  /** Of the limit of tokens that has least left. Undefined: there is none. */
  readonly tokens: TokenState | undefined;
}

/** The decision while it is not known what was spent. */
export const REFUSED_BY_STORE: Decision = { refusal: { by: "store" }, tokens: undefined };

/** What a request came to that was not served. */
export const NO_OUTCOME: Outcome = { cost: 0n, tokens: 0 };

/** Keeps what is spent and held. */
export interface Accountant {
  /**
   * Makes it known how the budgets of a configuration stand. The first call is made before the
   * first request of the installation. A failure is reported; the next request tries again.
   */
  open(config: Config): Promise<void>;
  /** Holds what a request can take under all of its limits, or nothing. */
  reserve(request: ReserveRequest): Decision | Promise<Decision>;
  /** Gives back what was held, and counts what was taken. To be called once for each ticket. */
  settle(ticket: Ticket, outcome: Outcome): void;
  /** Counts what was spent by somebody for whom nothing was held. */
  spend(spender: Spender, outcome: Outcome): void;
  /**
   * How the budgets of a configuration stand, and those of other keys that have asked. Undefined:
   * another process knows.
   */
  standing(config: Config): readonly Figures[] | undefined;
  /** Ends its timers and its connection, if it has any. Nothing may be asked of it after that. */
  close(): void;
}
