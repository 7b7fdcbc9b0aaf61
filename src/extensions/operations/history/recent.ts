// The requests of late: what runs, and the last that ended. Those that went well, those that were
// refused and those that failed have a ring each, so that a flood of one kind leaves the others.
import type { RequestEntry } from "./contracts.ts";
import { kindOf } from "./slice.ts";

/** Requests that are kept of each kind: 2,000 in all. */
const KEPT = { fine: 800, refused: 600, failed: 600 } as const;

/** The filter. A request must fit all members that are present. */
export interface RequestFilter {
  /** Empty: requests without an authenticated caller. */
  readonly account?: string | undefined;
  /** As RequestEntry.key. */
  readonly key?: string | undefined;
  /** The model that served, or the name that the client sent. */
  readonly model?: string | undefined;
  /** `429`, or `4xx` for all of that hundred, or `running`. */
  readonly status?: string | undefined;
  /** As RequestEntry.code. */
  readonly code?: string | undefined;
  /** A part of the request id. */
  readonly id?: string | undefined;
  /** At least so many milliseconds from the begin to the end, or to now. */
  readonly slower?: number | undefined;
}

export interface Recent {
  /** Adds requests that have ended. */
  add(entries: readonly RequestEntry[]): void;
  /** Requests that fit, the newest first: those that run, then those that ended. */
  find(filter: RequestFilter, running: readonly RequestEntry[], now: number): RequestEntry[];
  /** How many have been added so far: it changes if and only if there is something new. */
  added(): number;
}

export function createRecent(): Recent {
  const rings = { fine: [] as RequestEntry[], refused: [], failed: [] } as Record<
    keyof typeof KEPT,
    RequestEntry[]
  >;
  let added = 0;

  return {
    add(entries) {
      added += entries.length;
      for (const entry of entries) {
        const kind = kindOf(entry.outcome);
        const ring = rings[kind];
        ring.push(entry);
        if (ring.length > KEPT[kind]) ring.shift();
      }
    },
    find(filter, running, now) {
      const fits = matcher(filter, now);
      // The last added first, also of those that ended in the same millisecond.
      const ended = Object.values(rings).flatMap((ring) => ring.filter(fits).reverse());
      ended.sort((a, b) => (b.ended ?? 0) - (a.ended ?? 0));
      const live = running.filter(fits).sort((a, b) => b.started - a.started);
      // The request with exactly this id comes before those of which it is a part.
      const isExact = ({ id }: RequestEntry): number => (id === filter.id ? 0 : 1);
      return [...live, ...ended].sort((a, b) => isExact(a) - isExact(b));
    },
    added: () => added,
  };
}

function matcher(filter: RequestFilter, now: number): (entry: RequestEntry) => boolean {
  const { account, key, model, status, code, id, slower } = filter;
  const isModel = (entry: RequestEntry) => entry.model === model || entry.asked_model === model;
  const tests = [
    account !== undefined && ((entry: RequestEntry) => (entry.account ?? "") === account),
    key !== undefined && ((entry: RequestEntry) => entry.key === key),
    model !== undefined && isModel,
    status !== undefined && ((entry: RequestEntry) => hasStatus(entry, status)),
    code !== undefined && ((entry: RequestEntry) => entry.code === code),
    id !== undefined && ((entry: RequestEntry) => entry.id.includes(id)),
    slower !== undefined &&
      ((entry: RequestEntry) => (entry.duration_ms ?? now - entry.started) >= slower),
  ].filter((test) => test !== false);
  return (entry) => tests.every((test) => test(entry));
}

function hasStatus(entry: RequestEntry, status: string): boolean {
  if (status === "running") return entry.ended === null;
  if (entry.status === null) return false;
  if (!status.endsWith("xx")) return String(entry.status) === status;
  // A stream that broke off has the status 200, and is a failure all the same.
  if (entry.outcome === "5xx") return status === "5xx";
  return String(entry.status).startsWith(status.slice(0, 1));
}
