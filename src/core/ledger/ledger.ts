// The ledger's contract. Each request is opened in the ledger before a provider is called, and
// settled after with its cost. The core has a ledger that keeps nothing. An extension can keep a
// spend log instead: books.md "The spend log" has the meaning of the fields.
import { ApiError, SOON } from "../openai/errors.ts";
import type { Usage } from "../openai/usage.ts";
import type { UsageSource } from "./meter.ts";
import type { Price } from "./price.ts";

/** A request when it begins. */
export interface Opening {
  /** The gateway_request_id: the client's X-Request-Id, or one that the gateway made. */
  readonly requestId: string;
  /** The account of the key. It pays. */
  readonly account: string;
  /** As Caller.keyId. */
  readonly keyId: string;
  /** The model or alias that the client named. */
  readonly modelRequested: string;
  /** Whether the client asked for a stream. */
  readonly stream: boolean;
  /**
   * The most that the request can cost, held until it is settled: an exact decimal number. Absent
   * or undefined: nothing is held.
   */
  readonly hold?: string | undefined;
  /** 24 hexadecimal digits, a part of the entry's id. Undefined: the ledger draws random ones. */
  readonly holdId?: string | undefined;
}

/** One attempt at a provider. */
export interface AttemptRecord {
  /** The canonical name of the model. */
  readonly model: string;
  /** The name of the model's provider, for the operator only. */
  readonly provider: string;
  /** "completed", "cancelled" (the client left), or the code of the error. */
  readonly outcome: string;
  /** Whole milliseconds of this attempt, without the wait before it. */
  readonly duration_ms: number;
  /** The end of the provider's key, where there are several. Absent: there is one. */
  readonly key?: string | undefined;
  /** HTTP status of the provider's answer. Absent: there was no answer, or no failure. */
  readonly status?: number | undefined;
  /** Path of the URL that was called. Absent: no call, no redaction, or no failure. */
  readonly path?: string | undefined;
  /** For the operator: the provider's message, redacted, else the gateway's. Absent: no failure. */
  readonly detail?: string | undefined;
  /**
   * This attempt's share of the usage and cost of a recovered reply, in the form of the extension
   * that recovers. Absent: the reply comes from one attempt, or this one is not billed.
   */
  readonly share?: object;
}

/** How a request ended, and what it cost. */
export interface Settlement {
  /** `interrupted`: its process died. Only a recovery of the books writes that. */
  readonly status: "completed" | "failed" | "cancelled" | "interrupted";
  /** The wall clock at the end of the request, in milliseconds since 1970. */
  readonly endedAt: number;
  /** Status of the answer to the client. 499: the client left. Null: unknown. */
  readonly httpStatus: number | null;
  /** Null: the request completed, or its client left. */
  readonly errorCode: string | null;
  /** Null: the provider did not finish its reply. */
  readonly finishReason: string | null;
  /** In the order in which they were made. Empty: no provider was asked. */
  readonly attempts: readonly AttemptRecord[];
  /**
   * The result of an extension's attempt to continue a stream that broke after a part of it was
   * shown; the extension defines the values. Absent: the stream did not break, or it was not
   * continued.
   */
  readonly recovery?: string | undefined;
  /**
   * Actions of extensions that the client should know about, a few words each. Absent: there were
   * none.
   */
  readonly notes?: readonly string[] | undefined;
  /**
   * Milliseconds from the check of the request to the first text, reasoning or tool call. Null:
   * none came.
   */
  readonly firstTokenMs: number | null;
  /** The canonical name of the model that served. Null: no provider began to answer. */
  readonly modelServed: string | null;
  /** The provider of that model. Null: as above. */
  readonly provider: string | null;
  /** The tokens that are billed. All 0 where `usageSource` is "none". */
  readonly usage: Usage;
  /** Whether the figures are the provider's own, or estimated. */
  readonly usageSource: UsageSource;
  /** The price of that model, in force when the request began. Absent: it has none. */
  readonly price?: Price | undefined;
  /** An exact decimal number, by this price. */
  readonly cost: string;
  /** Three capital letters, such as USD. */
  readonly currency: string;
}

/**
 * The part of a budget that is reserved for one request, from before its opening to its settlement.
 */
export interface Hold {
  /** As Opening.hold. */
  readonly amount: string | undefined;
  /** As Opening.holdId. */
  readonly id?: string | undefined;
  /** The most tokens of the reply that it pays for. Absent or undefined: the client set a limit. */
  readonly maxTokens?: number | undefined;
  /** Releases what was not spent. `settlement` undefined: the ledger could not open the request. */
  settle(settlement: Settlement | undefined): void;
}

/** An observer of the attempts at one request. Absent members: it does not need these events. */
export interface AttemptObserver {
  /** An attempt is about to be sent. Returns trace headers for the provider. */
  headers?(): Readonly<Record<string, string>>;
  /** An attempt has ended at this moment. */
  attempted?(record: AttemptRecord): void;
}

/** The entry of one request. */
export interface LedgerEntry {
  /** Resolves when a provider may be called. Rejects with an ApiError if the ledger is faulty. */
  readonly opened: Promise<void>;
  /**
   * Resolves when the last byte of the reply may leave: at once if the request could not be opened.
   * Only the first call counts.
   */
  settle(settlement: Settlement): Promise<void>;
}

/** The 503 while the ledger cannot be written: no client gets an answer that cannot be billed. */
export const ledgerUnavailable = (cause?: unknown): ApiError =>
  new ApiError("server_overloaded", "The gateway cannot take requests at the moment.", {
    ...SOON,
    cause,
  });

export interface Ledger {
  /** Opens an entry. Throws `ledgerUnavailable()` if it is known that nothing can be written. */
  open(opening: Opening): LedgerEntry;
  /** Why the ledger cannot be written, for the operator. Null: it can. */
  fault(): string | null;
}

/** The ledger that keeps nothing. No request waits for it. */
export const noLedger: Ledger = {
  open: () => ({ opened: Promise.resolve(), settle: () => Promise.resolve() }),
  fault: () => null,
};
