// The installation as other extensions see it: the reports of all processes that serve, and what
// exists once.
import { moment } from "../../../core/extension/installer.ts";
import type { HostSources } from "../../../core/extension/places.ts";
import type { Report } from "../../../core/extension/places.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import type { BreakerStatus } from "../../../core/routing/breaker.ts";

/** What GET /status says, beside the members that extensions add. */
export interface Status {
  /** The version of the program: "0.1.0". */
  readonly version: string;
  /** Draining: at least one process stops. */
  readonly status: "serving" | "draining";
  /** When the configuration in force was loaded, in ISO 8601. */
  readonly config_loaded_at: string;
  /** Whether the demo key, which everybody knows, is valid. */
  readonly demo_key: boolean;
  /** Processes that serve. */
  readonly workers: number;
  /** Requests that have not had their whole answer, of all processes. */
  readonly in_flight: number;
  /** In seconds, by quantile; of the process that is latest. */
  readonly event_loop_delay: Readonly<Record<string, number>>;
  /** In the order of the configuration. */
  readonly models: readonly ModelStatus[];
  /** Enabled or not, each with its candidates by rank, and why each has its rank. */
  readonly aliases: readonly object[];
  /** Where requests per minute are counted, and why it cannot be asked; null: it can. */
  readonly limits: { readonly store: string; readonly fault: string | null };
  readonly [extension: string]: unknown;
}

export interface ModelStatus {
  /** Its canonical name. */
  readonly model: string;
  /** The name of the provider in the configuration. */
  readonly provider: string;
  /** The provider's name for the model. */
  readonly upstream_model: string;
  /** As it is in the process in which it is most open. */
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

/** A snapshot of all processes. */
export interface InstallationStatus {
  /** What GET /status says. It is made when it is first asked for. */
  readonly status: Status;
  /** As Status.event_loop_delay, since the snapshot before. */
  readonly delays: Status["event_loop_delay"];
  /** Of all processes that serve at the moment. */
  readonly reports: readonly Report[];
}

/** Processes whose last report is kept: all of server.workers (256), and as many dead ones. */
const MAX_PROCESSES = 512;

/**
 * Keeps the last report of each process, by a name that tells it from those of an earlier start.
 * The returned function takes the next report and returns the one before.
 */
export function createLastReports<T>(): (process: string, report: T) => T | undefined {
  const last = new Map<string, T>();
  return (process, report) => {
    const before = last.get(process);
    // The processes that reported last stand at the end.
    last.delete(process);
    last.set(process, report);
    if (last.size > MAX_PROCESSES) last.delete(last.keys().next().value!);
    return before;
  };
}

/** What an extension reported, of each process in which it did. */
export const reportsOf = <T>({ reports }: InstallationStatus, name: string): readonly T[] =>
  reports.flatMap(({ extensions }) => (extensions[name] as T | undefined) ?? []);

/** The installation, as extensions that exist once in it see it. */
export interface Host extends Omit<HostSources, "reports"> {
  /**
   * Takes a snapshot of all processes. Rejects with an ApiError while none serves. Snapshots are
   * complete in the order in which they were begun.
   */
  look(): Promise<InstallationStatus>;
  /** Calls `listener` with each snapshot, also with those that other extensions took. */
  onLook(listener: (look: InstallationStatus) => void): void;
  /** The address of the public listener; empty before it listens. */
  publicAddress(): string;
  /** The paths of the admin listener that extensions have added. */
  adminRoutes(): Routes;
}

/** What an extension adds to the installation. Everything may be absent. */
export interface HostPart {
  /** Paths of the admin listener. */
  readonly adminRoutes?: Routes;
  /**
   * Called when the public listener has its address, after all parts were created. Rejects if it
   * cannot start.
   */
  listen?(publicAddress: string): Promise<void>;
  /**
   * What the start line of the gateway says about it: "console and admin on http://..."; undefined:
   * nothing.
   */
  announcement?(): string | undefined;
  /**
   * Given to moments.status after the reports of the processes that serve. Undefined: nothing is
   * given.
   */
  report?(): unknown;
  /** Called when the gateway ends. The part that was created last is closed first. */
  close?(): void | Promise<void>;
}

/**
 * What exists once in the installation, however many processes serve, is created: before the public
 * listener listens.
 */
export const once = moment<(host: Host) => HostPart>("once");
