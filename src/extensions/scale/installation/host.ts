// The host of the installation: merges the reports of all processes that serve, and starts the
// parts of extensions that exist once.
import { hasDemoKey } from "../../../config/check.ts";
import { hooks, type HostRunner, type HostSources } from "../../../core/extension/places.ts";
import type { Report } from "../../../core/extension/places.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import { BREAKER_STATES } from "../../../core/routing/breaker.ts";
import { VERSION } from "../../../core/version.ts";
import {
  once,
  type Host,
  type HostPart,
  type InstallationStatus,
  type ModelStatus,
  type Status,
} from "./contracts.ts";
import type { Delays, ProcessReport } from "./process-report.ts";

/** The name of this extension, under which each process has its ProcessReport. */
const NAME = "installation";

export function createHost(sources: HostSources): HostRunner {
  const listeners: ((collected: InstallationStatus) => void)[] = [];
  /** The parts, by the names of their extensions. */
  const parts = new Map<string, HostPart>();
  let publicAddress = "";
  /** Settles when the previous collection does, without keeping its reports in memory. */
  let previous: Promise<void> = Promise.resolve();
  const host: Host = {
    ...sources,
    async collectStatus() {
      const inTurn = Promise.all([sources.reports(), previous]);
      previous = inTurn.then(ignore, ignore);
      const [reports] = await inTurn;
      if (reports.length === 0)
        throw new ApiError("server_overloaded", "No process serves at the moment.");
      // Computed on demand: most callers read the reports only, and a status may list thousands of
      // budgets.
      let status: Status | undefined;
      const collected: InstallationStatus = {
        get status() {
          status ??= statusOf(sources, collected, parts);
          return status;
        },
        delays: longestDelays(reports),
        reports,
      };
      for (const listener of listeners) listener(collected);
      return collected;
    },
    onStatus: (listener) => listeners.push(listener),
    publicAddress: () => publicAddress,
    adminRoutes: (): Routes =>
      Object.assign({}, ...[...parts.values()].map((part) => part.adminRoutes)),
  };
  async function close(): Promise<void> {
    for (const part of [...parts.values()].reverse()) await part.close?.();
  }

  try {
    for (const { extension, call } of sources.installed.listeners(once))
      parts.set(extension, call(host));
  } catch (error) {
    // Otherwise a part's timer keeps the process alive although it serves nothing.
    close().catch(() => undefined);
    throw error;
  }

  return {
    async listen(address) {
      publicAddress = address;
      for (const part of parts.values()) await part.listen?.(address);
    },
    announcements: () => [...parts.values()].flatMap((part) => part.announcement?.() ?? []),
    close,
  };
}

/**
 * Merges the reports: requests in flight are summed, and each model has the breaker of the process
 * in which it is most open. Extensions merge their own members.
 */
function statusOf(
  { current, installed }: HostSources,
  { reports, delays }: Omit<InstallationStatus, "status">,
  parts: ReadonlyMap<string, HostPart>,
): Status {
  const config = current();
  const processReports = reports.map(reportOf);
  const first = processReports[0]!;
  const worst = worstBreakers(processReports);
  const added = installed.listeners(hooks.status).map(({ extension, call }) => {
    const ofProcesses = reports.map((report) => report.extensions[extension]);
    const ofHost = parts.get(extension)?.report?.();
    return call(ofHost === undefined ? ofProcesses : [...ofProcesses, ofHost], config);
  });
  const core: Status = {
    version: VERSION,
    status: reports.some(({ draining }) => draining) ? "draining" : "serving",
    demo_key: hasDemoKey(config),
    workers: reports.length,
    in_flight: reports.reduce((sum, { inFlight }) => sum + inFlight, 0),
    event_loop_delay: delays,
    models: first.models.map(({ model }) => worst.get(model)!),
    aliases: [...config.aliases].map(([alias, { enabled, ranking }]) => ({
      alias,
      enabled,
      candidates: ranking.map(({ model, rank, why }) => ({
        rank,
        model,
        why,
        breaker: worst.get(model)?.breaker.state,
      })),
    })),
    limits: { store: "memory", fault: null },
  };
  return Object.assign(core, ...added);
}

/** Each model's status in the process where its breaker is most open or, if equal, waits most. */
function worstBreakers(reports: readonly ProcessReport[]): ReadonlyMap<string, ModelStatus> {
  const openness = ({ breaker }: ModelStatus): number => BREAKER_STATES.indexOf(breaker.state);
  const wait = ({ breaker }: ModelStatus): number => breaker.retry_ms;
  const models = reports.flatMap((report) => report.models);
  models.sort((one, other) => openness(one) - openness(other) || wait(one) - wait(other));
  return new Map(models.map((model) => [model.model, model])); // a model's last status wins
}

const ignore = (): void => undefined;

const reportOf = ({ extensions }: Report) => extensions[NAME] as ProcessReport;

/** The longest delay of any process, in seconds, by quantile. */
function longestDelays(reports: readonly Report[]): Delays {
  const longest: Record<string, number> = {};
  const all = reports.flatMap((report) => Object.entries(reportOf(report).delays));
  for (const [quantile, seconds] of all)
    longest[quantile] = Math.max(seconds, longest[quantile] ?? 0);
  return longest;
}
