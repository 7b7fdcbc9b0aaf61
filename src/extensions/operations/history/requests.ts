// The requests that ended last, and the search of GET /requests among these and the running ones.
import { strict } from "../../../config/fields.ts";
import { nonEmpty, optional, refine, string, withDefault } from "../../../core/schema/checker.ts";
import { byKind, kindOf, pushBounded, type RequestEntry } from "./recorder.ts";

/** The most ended requests kept of each kind: 2,000 in all. */
const KEPT = { fine: 800, refused: 600, failed: 600 } as const;

const digits = (pattern: RegExp, expected: string) =>
  refine(string({ pattern, expected }), (text) => Number(text));

const count = digits(/^\d{1,6}$/, "a number");

export const requestsQuery = strict({
  /** Empty: requests without an authenticated caller. */
  account: optional(string()),
  key: optional(nonEmpty),
  /** The model that served, or the name that the client sent. */
  model: optional(nonEmpty),
  status: optional(
    string({ pattern: /^([1-5]\d\d|[2-5]xx|running)$/, expected: "429, 4xx or running" }),
  ),
  code: optional(nonEmpty),
  /** A part of the request id. */
  id: optional(nonEmpty),
  /** The least duration in milliseconds, from the start to the end, or to now. */
  slower: optional(digits(/^\d{1,9}$/, "milliseconds")),
  skip: withDefault(count, 0),
  limit: withDefault(digits(/^([1-9]\d?|100)$/, "a number from 1 to 100"), 50),
});

/** A request must match all members that are present. */
export type RequestFilter = Partial<Omit<ReturnType<typeof requestsQuery>, "skip" | "limit">>;

export function createRequests() {
  const kept = byKind<RequestEntry>();
  return {
    /** Adds a request that has ended. */
    add(entry: RequestEntry): void {
      const kind = kindOf(entry);
      pushBounded(kept[kind], entry, KEPT[kind]);
    },
    /** Requests that match, the newest first: running ones, then ended ones. */
    find(filter: RequestFilter, running: readonly RequestEntry[], now: number): RequestEntry[] {
      const matching = (entries: readonly RequestEntry[]) =>
        entries.filter((entry) => matches(entry, filter, now));
      // Reversed, because the sort is stable: if two ended in the same millisecond, the one added
      // last comes first.
      const ended = Object.values(kept).flatMap((entries) => matching(entries).reverse());
      ended.sort((a, b) => b.ended! - a.ended!);
      const live = matching(running).sort((a, b) => b.started - a.started);
      // The request with exactly this id comes before those whose id contains it.
      const isExact = ({ id }: RequestEntry): number => (id === filter.id ? 0 : 1);
      return [...live, ...ended].sort((a, b) => isExact(a) - isExact(b));
    },
  };
}

function matches(entry: RequestEntry, filter: RequestFilter, now: number): boolean {
  const { account, key, model, status, code, id, slower } = filter;
  const isNamed = (name: string): boolean => entry.model === name || entry.asked_model === name;
  const duration = entry.duration_ms ?? now - entry.started;
  return (
    (account === undefined || (entry.account ?? "") === account) &&
    (key === undefined || entry.key === key) &&
    (model === undefined || isNamed(model)) &&
    (status === undefined || hasStatus(entry, status)) &&
    (code === undefined || entry.code === code) &&
    (id === undefined || entry.id.includes(id)) &&
    (slower === undefined || duration >= slower)
  );
}

function hasStatus(entry: RequestEntry, status: string): boolean {
  if (status === "running") return entry.ended === null;
  if (!status.endsWith("xx")) return String(entry.status) === status;
  // A broken stream has the status 200, but is a failure.
  if (entry.outcome === "5xx") return status === "5xx";
  return String(entry.status).startsWith(status.slice(0, 1));
}
