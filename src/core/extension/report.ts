// What one process that serves says of itself: data that can be sent to another process.
import type { BreakerStatus } from "../routing/breaker.ts";
import type { RankedModel } from "../routing/policy.ts";

export interface Report {
  readonly draining: boolean;
  /** Requests that have been received and not answered. */
  readonly inFlight: number;
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
