// One installation, however many processes serve: it adds their reports up, and starts the
// extensions that exist once.
import type { Config } from "../../../core/config.ts";
import { hasDemoKey } from "../../../config/demo-key.ts";
import type { Installed } from "../../../core/extension/installer.ts";
import { moments, type HostRunner, type HostSources } from "../../../core/extension/places.ts";
import type { Report } from "../../../core/extension/report.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import { BREAKER_STATES } from "../../../core/routing/breaker.ts";
import {
  once,
  type Host,
  type HostPart,
  type InstallationStatus,
  type Status,
} from "./contracts.ts";
import type { Delays } from "./loop-delay.ts";
import type { ModelReport, ProcessReport } from "./process-report.ts";

/** Names this extension, and what each process reports for it: a ProcessReport. */
export const NAME = "installation";

export function createHost(sources: HostSources): HostRunner {
  const listeners: ((look: InstallationStatus) => void)[] = [];
  const parts: HostPart[] = [];
  const partOf = new Map<string, HostPart>();
  let publicAddress = "";
  const host: Host = {
    ...sources,
    async look() {
      const reports = await sources.reports();
      const reported = (name: string): unknown => partOf.get(name)?.report?.();
      const status = statusOf(sources.current(), reports, sources.installed, reported);
      const look = { status, extensions: reports.map((report) => report.extensions) };
      for (const listener of listeners) listener(look);
      return look;
    },
    onLook: (listener) => listeners.push(listener),
    publicAddress: () => publicAddress,
    adminRoutes: (): Routes => Object.assign({}, ...parts.map((part) => part.adminRoutes)),
  };
  async function close(): Promise<void> {
    for (const part of parts.toReversed()) await part.close?.();
  }

  try {
    for (const { extension, call } of sources.installed.listeners(once)) {
      const part = call(host);
      parts.push(part);
      partOf.set(extension, part);
    }
  } catch (error) {
    // A part with a timer would keep a process alive that serves nothing.
    close().catch(() => undefined);
    throw error;
  }

  return {
    async listen(address) {
      publicAddress = address;
      for (const part of parts) await part.listen?.(address);
    },
    announcements: () =>
      parts.map((part) => part.announcement?.()).filter((text) => text !== undefined),
    close,
  };
}

/**
 * The status of several processes together: requests in flight are those of all, a breaker is as
 * open as in the process where it is most open, and a fault is that of any. `reported`:
 * as HostPart.report, by the name of the extension.
 */
export function statusOf(
  config: Config,
  reports: readonly Report[],
  installed: Installed,
  reported: (name: string) => unknown = () => undefined,
): Status {
  const processReports = reports.map((report) => report.extensions[NAME] as ProcessReport);
  const [first] = processReports;
  if (!first) throw new ApiError("server_overloaded", "No process serves at the moment.");
  const worst = worstBreakers(processReports);
  const added = installed.listeners(moments.status).map(({ extension, call }) => {
    const ofProcesses = reports.map((report) => report.extensions[extension]);
    const ofHost = reported(extension);
    return call(ofHost === undefined ? ofProcesses : [...ofProcesses, ofHost], config);
  });
  const core: Status = {
    status: reports.some(({ draining }) => draining) ? "draining" : "serving",
    config_loaded_at: first.loadedAt,
    demo_key: hasDemoKey(config),
    workers: reports.length,
    in_flight: reports.reduce((sum, { inFlight }) => sum + inFlight, 0),
    event_loop_delay: longestDelays(processReports),
    models: first.models.map(({ model }) => modelStatus(worst.get(model)!)),
    aliases: [...first.ranking].map(([alias, candidates]) => ({
      alias,
      enabled: config.aliases.get(alias)?.enabled ?? false,
      candidates: candidates.map(({ model, rank, why }) => ({
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

/** Of each model the report of the process in which its breaker is most open. */
function worstBreakers(reports: readonly ProcessReport[]): ReadonlyMap<string, ModelReport> {
  const openness = ({ breaker }: ModelReport): number => BREAKER_STATES.indexOf(breaker.state);
  const worst = new Map<string, ModelReport>();
  for (const model of reports.flatMap(({ models }) => models)) {
    const known = worst.get(model.model);
    if (!known || openness(model) >= openness(known)) worst.set(model.model, model);
  }
  return worst;
}

function modelStatus({ breaker, ...model }: ModelReport): Status["models"][number] {
  const { state, failures, retryMs, lastFault, lastAnswer } = breaker;
  return {
    ...model,
    breaker: {
      state,
      failures,
      retry_ms: Math.ceil(retryMs),
      last_fault: lastFault,
      last_answer: lastAnswer,
    },
  };
}

/** By quantile, the delay of the process that is latest. */
function longestDelays(reports: readonly ProcessReport[]): Delays {
  const longest: Record<string, number> = {};
  const all = reports.flatMap(({ delays }) => Object.entries(delays));
  for (const [quantile, seconds] of all)
    longest[quantile] = Math.max(seconds, longest[quantile] ?? 0);
  return longest;
}
