// What the gateway says of itself to its operator. Each process that serves reports; the status is of all of them together.
import type { AccountLimits } from "../accounts/keyring.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config/schema.ts";
import type { Diagnose } from "../diagnose.ts";
import type { Routes } from "../http/exchange.ts";
import type { BreakerStatus } from "../routing/breaker.ts";
import type { RankedModel } from "../routing/policy.ts";
import type { Extension } from "./extension.ts";

/** What one process says of itself: data that can be sent to another process. */
export interface Report {
  readonly draining: boolean;
  /** Requests that have been received and not answered. */
  readonly inFlight: number;
  /** How late the event loop has been since the last report, in seconds, by quantile ("0.5", "0.99", "1"). */
  readonly loopDelay: Readonly<Record<string, number>>;
  readonly models: readonly ModelReport[];
  readonly ranking: ReadonlyMap<string, readonly RankedModel[]>;
  /** When the configuration in force was loaded, in ISO 8601. */
  readonly loadedAt: string;
  /** What extensions report, by their names. */
  readonly extensions: Readonly<Record<string, unknown>>;
}

export interface ModelReport {
  readonly model: string;
  readonly provider: string;
  readonly upstream_model: string;
  readonly breaker: BreakerStatus;
}

/** What GET /status says, beside the members that extensions add. */
export interface Status {
  readonly status: "serving" | "draining";
  readonly config_loaded_at: string;
  /** Whether the demo key, which everybody knows, is valid. */
  readonly demo_key: boolean;
  /** Processes that serve. */
  readonly workers: number;
  readonly in_flight: number;
  /** In seconds, by quantile; of the process that is latest. */
  readonly event_loop_delay: Readonly<Record<string, number>>;
  readonly models: readonly ModelStatus[];
  readonly aliases: readonly object[];
  readonly limits: { readonly store: string; readonly fault: string | null };
  readonly [extension: string]: unknown;
}

export interface ModelStatus {
  readonly model: string;
  readonly provider: string;
  readonly upstream_model: string;
  readonly breaker: {
    readonly state: BreakerStatus["state"];
    /** Failures in a row. */
    readonly failures: number;
    /** Milliseconds until it may be asked again; 0: now. */
    readonly retry_ms: number;
    readonly last_fault: string | null;
    readonly last_answer: BreakerStatus["lastAnswer"];
  };
}

/** One look at all processes. */
export interface Look {
  readonly status: Status;
  /** What extensions report, of each process. */
  readonly extensions: readonly Report["extensions"][];
}

/** The installation, as extensions that exist once in it see it. */
export interface Host {
  /** The configuration at the start. */
  readonly config: Config;
  /** The configuration in force. */
  current(): Config;
  readonly extensions: readonly Extension[];
  readonly clock: Clock;
  readonly diagnose: Diagnose;
  /** Looks at all processes. Rejects with an ApiError while none serves. */
  look(): Promise<Look>;
  /** Calls `listener` after each look, whoever took it. */
  onLook(listener: (look: Look) => void): void;
  /** Every account that has a key, with its limit. */
  accounts(): AccountLimits;
  /** Requests of the last 60 seconds that count against the limit of this name: `account acme`. */
  used(limit: string): number;
  /** The address of the public listener; empty before it listens. */
  publicAddress(): string;
  /** The paths of the admin listener that extensions have added. */
  adminRoutes(): Routes;
}
