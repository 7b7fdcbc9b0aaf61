// What the parts of this extension say to each other. All of it is data that can be sent to another
// process.
import type { Period } from "./periods.ts";

/** A limit of an account or of a key, and what it bounds. */
export interface SpendLimit {
  /** As accountLimitName() or keyLimitName() has it. */
  readonly name: string;
  /** Undefined: it bounds no costs. */
  readonly budget: { readonly amount: bigint; readonly period: Period } | undefined;
  /** Null: it bounds no tokens. */
  readonly tokensPerMinute: number | null;
}

/** Whose money is spent. */
export interface Spender {
  /** The account of the request's key. */
  readonly account: string;
  /** As Caller.keyId. */
  readonly keyId: string;
  /** The limits of both. Empty: they may spend any amount, which is counted all the same. */
  readonly limits: readonly SpendLimit[];
}

/** What may be held for a request, whichever candidate serves it. */
export interface Offer {
  /** What each budget must have free, in pico-units of the currency. No less than `cost`. */
  readonly room: bigint;
  /** The most that the request can cost, in pico-units. It is held. */
  readonly cost: bigint;
  /** The tokens of the reply that `cost` pays for. Absent: the client's own bound. */
  readonly maxTokens?: number;
}

/** A request that asks for money and tokens. */
export interface ReserveRequest {
  /** All of its limits must have room. */
  readonly spender: Spender;
  /** At least one, the one that needs least room last. The first is held that has room. */
  readonly offers: readonly Offer[];
  /** The tokens of the prompt by estimate, and of the reply. */
  readonly tokens: number;
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
  /** Names its request in the spend log, as Opening.token. Absent: the log is not asked for it. */
  readonly token?: string;
  /** Names its admission in a store that several gateways share. Absent: it is not in one. */
  readonly shared?: string;
}

/** How much of a limit of tokens per minute is left. */
export interface TokenState {
  /** Tokens per minute. */
  readonly limit: number;
  /** Tokens that are left of it at this moment. Never negative. */
  readonly remaining: number;
  /** Milliseconds until it next gets room. */
  readonly resetMs: number;
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
  /** Undefined: the request is refused. */
  readonly ticket: Ticket | undefined;
  /** Undefined: the request is granted. */
  readonly refusal: Refusal | undefined;
  /** Of the limit of tokens that has least left. Undefined: there is none. */
  readonly tokens: TokenState | undefined;
  /** Of the budgets among its limits. */
  readonly figures: readonly Figures[];
}

/** What a request came to. */
export interface Outcome {
  /** In pico-units of the currency. */
  readonly cost: bigint;
  /** Those of the prompt and of the reply. They correct what the ticket took. */
  readonly tokens: number;
}

/** What a request came to that was not served. */
export const NO_OUTCOME: Outcome = { cost: 0n, tokens: 0 };

/** How a budget stands. Amounts are in pico-units of the currency. */
export interface Figures {
  /** As SpendLimit.name. */
  readonly name: string;
  /** When the budget is renewed. `total`: never. */
  readonly period: Period;
  /** What may be spent in one period. */
  readonly amount: bigint;
  /** What was spent in the current period. It may be more than `amount`. */
  readonly spent: bigint;
  /** For requests that run. */
  readonly held: bigint;
  /** When the period ends, in ISO 8601. Null: never. */
  readonly ends: string | null;
  /** When this was so, in milliseconds since 1970. Later figures of one accountant have more. */
  readonly at: number;
}

/** Keeps what is spent and held. */
export interface Accountant {
  /** Holds what a request can take under all of its limits, or nothing. */
  reserve(request: ReserveRequest): Decision | Promise<Decision>;
  /** Gives back what was held, and counts what was taken. To be called once for each ticket. */
  settle(ticket: Ticket, outcome: Outcome): void;
  /** Counts what was spent by somebody for whom nothing was held. */
  spend(spender: Spender, outcome: Outcome): void;
  /** How these budgets stand. Of those that cannot be looked up at the moment there are none. */
  figures(limits: readonly SpendLimit[]): readonly Figures[] | Promise<readonly Figures[]>;
  /** How all budgets stand that it has been asked about, as far as this process knows. */
  known(): readonly Figures[];
  /**
   * Reads what was spent before, for these limits. To be called before the first request of the
   * process. A failure is reported, and is tried again when a request needs it.
   */
  start(limits: readonly SpendLimit[]): Promise<void>;
  /** Ends its timers and its connection, if it has any. Nothing may be asked of it after that. */
  close(): void;
}
