// What the first process of several and its workers say to each other about budgets. It travels on
// the channel that Node has between them, by structured clone, beside the messages of others.
import type {
  Decision,
  Figures,
  Outcome,
  ReserveRequest,
  Spender,
  SpendLimit,
  Ticket,
} from "./contracts.ts";

/** A question or its answer. */
export interface Numbered<T> {
  /** The number that the worker has given to the question. */
  readonly id: number;
  /** The question itself, or the answer to the question of this number. */
  readonly value: T;
}

/** From a worker. Every member may be absent. */
export interface FromWorker {
  /** Requests that ask for a hold, in the order in which they came. */
  readonly reserve?: readonly Numbered<ReserveRequest>[];
  /** A request has ended for which something was held. */
  readonly settled?: { readonly ticket: Ticket; readonly outcome: Outcome };
  /** A request has ended for which nothing was held. */
  readonly spent?: { readonly spender: Spender; readonly outcome: Outcome };
  /** How do these budgets stand? */
  readonly look?: Numbered<readonly SpendLimit[]>;
  /** With `look`: the worker does not serve yet. */
  readonly isStart?: boolean;
}

/** From the first process. Every member may be absent. */
export interface FromPrimary {
  /** Answers to requests of FromWorker.reserve. */
  readonly decisions?: readonly Numbered<Decision>[];
  /** The answer to FromWorker.look. */
  readonly seen?: Numbered<readonly Figures[]>;
  /** How some budgets stand. */
  readonly standing?: readonly Figures[];
}

/** A message as the channel has it. */
export interface Envelope<M> {
  /** Absent: the message is another extension's. */
  readonly budgets?: M;
}
