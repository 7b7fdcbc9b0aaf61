// The ledger: where each request that goes to a provider is opened before, and settled after, with what it cost. The core has one that
// keeps nothing; the books (extensions/books) keep a spend log. DESIGN.md "Files under data_dir" has the meaning of the fields.
import { ApiError } from "../openai/errors.ts";
import type { Usage } from "../openai/reply.ts";
import type { UsageSource } from "./meter.ts";

/** What is known of a request when it begins. */
export interface Opening {
  /** The gateway_request_id: the client's own, or one made here. */
  readonly requestId: string;
  readonly account: string;
  readonly keyId: string;
  /** The model or alias that the client named. */
  readonly modelRequested: string;
  readonly stream: boolean;
}

/** One attempt at a provider. `outcome`: "completed", "cancelled" (the client left), or the error code of what went wrong. */
export interface AttemptRecord {
  readonly model: string;
  readonly provider: string;
  readonly outcome: string;
  readonly duration_ms: number;
  /** HTTP status of the provider's answer. Absent: it gave none, or the attempt did not fail. */
  readonly status?: number | undefined;
  /** Path of the URL that was asked. Absent: nothing was asked, or the attempt did not fail. */
  readonly path?: string | undefined;
  /** The provider's own words, redacted and cut, else this gateway's. Absent: it did not fail. For the operator alone. */
  readonly detail?: string | undefined;
}

/** How a request ended, and what it came to. */
export interface Settlement {
  readonly status: "completed" | "failed" | "cancelled" | "interrupted";
  /** Of the answer to the client; 499 if the client left; null if nobody knows. */
  readonly httpStatus: number | null;
  /** Null if it completed, or if its client left. */
  readonly errorCode: string | null;
  /** Null until the provider has finished its reply. */
  readonly finishReason: string | null;
  readonly attempts: readonly AttemptRecord[];
  /** Milliseconds from the opening to the first text, thinking or tool call; null if none came. */
  readonly firstTokenMs: number | null;
  /** The canonical name of the model that served, and its provider; null if no provider began to answer. */
  readonly modelServed: string | null;
  readonly provider: string | null;
  readonly usage: Usage;
  readonly usageSource: UsageSource;
  /** A decimal number, exact, by the price that was in force when the request began. */
  readonly cost: string;
  /** Three capital letters, such as USD. */
  readonly currency: string;
}

/** The entry of one request. */
export interface LedgerEntry {
  /** Resolves when the provider may be called; rejects with the ApiError of a gateway that cannot write its ledger. */
  readonly opened: Promise<void>;
  /** Resolves when the last byte of the reply may leave. Only the first call counts. */
  settle(settlement: Settlement): Promise<void>;
}

/** The 503 while the ledger cannot be written: no client gets an answer that cannot be billed. */
export const ledgerUnavailable = (cause?: unknown): ApiError =>
  new ApiError("server_overloaded", "The gateway cannot take requests at the moment.", {
    headers: { "Retry-After": "1" },
    cause,
  });

export interface Ledger {
  open(opening: Opening): LedgerEntry;
  /** Why requests are refused, for the operator; null while the ledger can be written. */
  fault(): string | null;
}

/** The ledger of a gateway without books: nothing is kept, and no request waits. */
export const noLedger: Ledger = {
  open: () => ({ opened: Promise.resolve(), settle: () => Promise.resolve() }),
  fault: () => null,
};
