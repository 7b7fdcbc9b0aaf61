// The interfaces of the installation: its status, made of the reports of all processes that serve,
// and the parts that extensions add to it, each of which exists once.
import { hook } from "../../../core/extension/installer.ts";
import type { HostSources } from "../../../core/extension/places.ts";
import type { Report } from "../../../core/extension/places.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import type { BreakerStatus } from "../../../core/routing/breaker.ts";

/** The body of GET /status; extensions add members. */
export interface Status {
  /** The version of the program: "0.1.0". */
  readonly version: string;
  /** "draining": at least one process is stopping. */
  readonly status: "serving" | "draining";
  /** When the configuration in force was loaded, in ISO 8601. Absent: nothing reloads it. */
  readonly config_loaded_at?: string;
  /** Whether the demo key, which everybody knows, is valid. */
  readonly demo_key: boolean;
  /** The number of processes that serve. */
  readonly workers: number;
  /** Requests in all processes whose answer is not yet complete. */
  readonly in_flight: number;
  /** The longest delays of any process, in seconds, by quantile. */
  readonly event_loop_delay: Readonly<Record<string, number>>;
  /** The models, in the order of the configuration. */
  readonly models: readonly ModelStatus[];
  /** All aliases, also disabled ones. Each has its candidates and the reason for each rank. */
  readonly aliases: readonly object[];
  /** The store that counts requests per minute. `fault`: why it is unreachable, else null. */
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
  /** The breaker of the process in which it is most open. */
  readonly breaker: {
    readonly state: BreakerStatus["state"];
    /** Failures in a row. */
    readonly failures: number;
    /** Milliseconds until requests may use the model again; 0: now. */
    readonly retry_ms: number;
    readonly last_fault: string | null;
    readonly last_answer: BreakerStatus["lastAnswer"];
  };
}

/** The reports of all processes, collected at one time, and the status that follows from them. */
export interface InstallationStatus {
  /** The body of GET /status. Computed when it is first read. */
  readonly status: Status;
  /** The delays of Status.event_loop_delay, since the previous collection. */
  readonly delays: Status["event_loop_delay"];
  /** The reports of all processes that serve at the moment. */
  readonly reports: readonly Report[];
}

/** Processes whose last report is kept: all of server.workers (256), and as many dead ones. */
const MAX_PROCESSES = 512;

/**
 * Keeps the last report of each process, by an id that is new at each start of a process. The
 * returned function stores a report and returns the previous one.
 */
export function createLastReports<T>(): (process: string, report: T) => T | undefined {
  const last = new Map<string, T>();
  return (process, report) => {
    const before = last.get(process);
    // The processes that reported last are at the end of the map.
    last.delete(process);
    last.set(process, report);
    if (last.size > MAX_PROCESSES) last.delete(last.keys().next().value!);
    return before;
  };
}

/** The installation, as the parts that exist once see it. */
export interface Host extends Omit<HostSources, "reports"> {
  /**
   * Collects the reports of all processes. Rejects with an ApiError while no process serves.
   * Collections complete in the order in which they begin.
   */
  collectStatus(): Promise<InstallationStatus>;
  /** Calls `listener` after each collection, whichever extension asked for it. */
  onStatus(listener: (collected: InstallationStatus) => void): void;
  /** The address of the public listener; empty before it listens. */
  publicAddress(): string;
  /** The paths of the admin listener that extensions have added. */
  adminRoutes(): Routes;
}

/** The part that an extension adds to the installation. Each member may be absent. */
export interface HostPart {
  /** Paths of the admin listener. */
  readonly adminRoutes?: Routes;
  /**
   * Called when the public listener has its address, after all parts were created. Rejects if the
   * part cannot start.
   */
  listen?(publicAddress: string): Promise<void>;
  /**
   * The part's text in the start line of the gateway: "console and admin on http://...".
   * Undefined: nothing.
   */
  announcement?(): string | undefined;
  /** A report for hooks.status, after those of the processes. Undefined: nothing to report. */
  report?(): unknown;
  /** Called when the gateway ends. The part that was created last is closed first. */
  close?(): void | Promise<void>;
}

/** Listeners create the parts that exist once, before the public listener listens. */
export const once = hook<(host: Host) => HostPart>("once");
