// The contracts of the installation: its status, made of the reports of all processes that serve,
// and the parts that extensions add to it, each of which exists once.
import { moment } from "../../../core/extension/installer.ts";
import type { HostSources } from "../../../core/extension/places.ts";
import type { Report } from "../../../core/extension/places.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import type { BreakerStatus } from "../../../core/routing/breaker.ts";

/** The body of GET /status; extensions add members. */
export interface Status {
  /** The version of the program: "0.1.0". */
  readonly version: string;
  /** Draining: at least one process stops. */
  readonly status: "serving" | "draining";
  /** When the configuration in force was loaded, in ISO 8601. Absent: nothing reloads it. */
  readonly config_loaded_at?: string;
  /** Whether the demo key, which everybody knows, is valid. */
  readonly demo_key: boolean;
  /** Processes that serve. */
  readonly workers: number;
  /** Requests that have not had their whole answer, of all processes. */
  readonly in_flight: number;
  /** In seconds, by quantile; the longest of all processes. */
  readonly event_loop_delay: Readonly<Record<string, number>>;
  /** In the order of the configuration. */
  readonly models: readonly ModelStatus[];
  /** Enabled or not, each with its candidates by rank, and why each has its rank. */
  readonly aliases: readonly object[];
  /** The store that counts requests per minute, and why it is unreachable; null: it answers. */
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
  /** As Status.event_loop_delay, since the previous collection. */
  readonly delays: Status["event_loop_delay"];
  /** Of all processes that serve at the moment. */
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
    // The processes that reported last stand at the end.
    last.delete(process);
    last.set(process, report);
    if (last.size > MAX_PROCESSES) last.delete(last.keys().next().value!);
    return before;
  };
}

/** The reports of one extension, from each process that has one. */
export const reportsOf = <T>({ reports }: InstallationStatus, name: string): readonly T[] =>
  reports.flatMap(({ extensions }) => (extensions[name] as T | undefined) ?? []);

/** The installation, as extensions that exist once in it see it. */
export interface Host extends Omit<HostSources, "reports"> {
  /**
   * Collects the reports of all processes. Rejects with an ApiError while none serves. Collections
   * complete in the order in which they begin.
   */
  collectStatus(): Promise<InstallationStatus>;
  /** Calls `listener` after each collection, whichever extension asked for it. */
  onStatus(listener: (collected: InstallationStatus) => void): void;
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
  /** Passed to moments.status after the reports of the processes. Undefined: nothing to pass. */
  report?(): unknown;
  /** Called when the gateway ends. The part that was created last is closed first. */
  close?(): void | Promise<void>;
}

/** Creates the parts that exist once in the installation, before the public listener listens. */
export const once = moment<(host: Host) => HostPart>("once");
