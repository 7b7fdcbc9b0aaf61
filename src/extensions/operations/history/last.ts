// The latest refusals, the use of each key, and the last fault of each model. The times of refusals
// and uses are those of the collection that reported them, which is up to a few seconds late.
import type { AttemptRecord } from "../../../core/ledger/ledger.ts";
import { faultKind, rowsIn, type Tally } from "../metrics/index.ts";

/** Milliseconds without a refusal after which the next refusal begins a new episode. */
const PAUSE_MS = 10 * 60_000;
/** The most episodes, and the most models with a fault, that are kept; the oldest are dropped. */
const MAX_KEPT = 200;
/** The most keys whose use is kept; the keys unused for longest are dropped. */
const MAX_KEYS = 1_000;

/** Refusals of one key with one code, with no pause between them. */
interface Episode {
  /** Null: the caller was not authenticated. */
  readonly account: string | null;
  /** The key's id, as in Caller.keyId. Null: the caller was not authenticated. */
  readonly key: string | null;
  /** The HTTP status. Below 400: a stream that broke off. */
  readonly status: number;
  /** The error code that the client got, or the status if there is no code. */
  readonly code: string;
  /** The limit of requests per minute that was exceeded. Null: it was not the reason. */
  readonly rpm: number | null;
  /** Refusals so far. */
  readonly count: number;
  /** The first refusal, in milliseconds since 1970. */
  readonly since: number;
  /** The last refusal, in milliseconds since 1970. */
  readonly last: number;
}

/** Moves an entry to the end, and drops the first if there are more than `max`. */
function putLast<V>(map: Map<string, V>, name: string, value: V, max: number): void {
  map.delete(name);
  map.set(name, value);
  if (map.size > max) map.delete(map.keys().next().value!);
}

const unused = (key: string) => ({ key, requests: 0, refused: 0, last: 0 });

/** The last fault of a model's provider. */
export interface ModelFault {
  /** Its canonical name. */
  readonly model: string;
  /** The name of its provider. */
  readonly provider: string;
  /** When its request was settled, in milliseconds since 1970. */
  readonly time: number;
  /** The gateway's error code. */
  readonly code: string;
  /** The HTTP status of the provider's answer. Null: there was no answer. */
  readonly status: number | null;
  /** The provider's own message, redacted, or else the gateway's. Null: there is no message. */
  readonly detail: string | null;
  /** The id of the request that failed. */
  readonly request_id: string;
}

/** Keeps the last fault of each model, for the MAX_KEPT models that failed last. */
export function createLastFaults() {
  const faults = new Map<string, ModelFault>();
  function add(fault: ModelFault): void {
    const known = faults.get(fault.model);
    if (!known || known.time <= fault.time) putLast(faults, fault.model, fault, MAX_KEPT);
  }
  return {
    add,
    /** Adds the providers' faults among the attempts of a request that was settled at `time`. */
    addOf(requestId: string, attempts: readonly AttemptRecord[], time: number): void {
      for (const attempt of attempts) {
        const kind = faultKind(attempt);
        // An invalid request is not the provider's fault.
        if (kind === undefined || kind === "request") continue;
        const { model, provider, outcome: code, status = null, detail = null } = attempt;
        add({ model, provider, time, code, status, detail, request_id: requestId });
      }
    },
    all: (): readonly ModelFault[] => [...faults.values()],
  };
}

export function createLastRefusals() {
  const refusals = new Map<string, Episode>();
  const keys = new Map<string, ReturnType<typeof unused>>();

  function addRefusals(grown: Tally, now: number): void {
    for (const [labels, { count }] of rowsIn(grown, "refusal")) {
      const [status, code, key, account, rpm] = labels;
      if (code === undefined) continue; // the row that sums up further keys
      const name = labels.join("\0");
      const known = refusals.get(name);
      const isContinued = known !== undefined && now - known.last <= PAUSE_MS;
      const begun = isContinued ? known : { count: 0, since: now };
      const episode = {
        account: account || null,
        key: key || null,
        status: Number(status),
        code,
        rpm: rpm ? Number(rpm) : null,
        count: begun.count + count,
        since: begun.since,
        last: now,
      };
      putLast(refusals, name, episode, MAX_KEPT);
    }
  }

  return {
    /** Adds the growth of all tallies since the previous collection of reports. */
    addGrowth(grown: Tally, now: number): void {
      addRefusals(grown, now);
      for (const [[figure, key], { count }] of rowsIn(grown, "key")) {
        if (key === undefined) continue;
        const use = { ...(keys.get(key) ?? unused(key)), last: now };
        use[figure as "requests" | "refused"] += count;
        putLast(keys, key, use, MAX_KEYS);
      }
    },
    /** Episodes that lasted beyond `from`, in full, the most frequent first. */
    refusals: (from: number): readonly Episode[] =>
      [...refusals.values()]
        .filter((episode) => episode.last >= from)
        .sort((a, b) => b.count - a.count || b.last - a.last),
    /** The use of each key since the start of the gateway. */
    keys: () => [...keys.values()],
  };
}
