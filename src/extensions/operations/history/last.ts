// What was last: the refusals of each key, its use, and the fault of each model. The same is kept
// of two seconds of one process and of the installation since its start.

/** Milliseconds without a refusal after which the next one begins an episode of its own. */
const PAUSE_MS = 10 * 60_000;
/** The most that is kept of each kind but keys: that which was last. */
const MAX_KEPT = 200;
/** The most keys whose use is kept: those that were used last. */
const MAX_KEYS = 1_000;

/** Refusals of one key with one code, with no pause between them. */
export interface Episode {
  /** Null: the caller was not authenticated. */
  readonly account: string | null;
  /** As Caller.keyId. Null as above. */
  readonly key: string | null;
  /** The HTTP status of the first of them. Below 400: a stream that broke off. */
  readonly status: number;
  /** The error code that the client got; the status where there is none. */
  readonly code: string;
  /** Refusals so far. */
  readonly count: number;
  /** The first refusal, in milliseconds since 1970. */
  readonly since: number;
  /** The last refusal, in milliseconds since 1970. */
  readonly last: number;
}

export interface KeyUse {
  /** As Caller.keyId. */
  readonly key: string;
  /** Those that were answered, whatever the answer was. */
  readonly requests: number;
  /** Of the requests, those with a 4xx. */
  readonly refused: number;
  /** In the currency of the configuration. It is rounded, and for looking at only. */
  readonly cost: number;
  /** Milliseconds since 1970. */
  readonly last: number;
}

/** The last time that a provider failed at a model. */
export interface ModelFault {
  /** Its canonical name. */
  readonly model: string;
  /** The name of its provider. */
  readonly provider: string;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** The gateway's error code. */
  readonly code: string;
  /** The HTTP status of the provider's answer. Null: there was no answer. */
  readonly status: number | null;
  /** The provider's own message, redacted; else the gateway's. Null: there is none. */
  readonly detail: string | null;
  /** The request that met it. */
  readonly request_id: string;
}

export interface Last {
  /** By account, key and code. */
  readonly refusals: Map<string, Episode>;
  /** By the ids of the keys. */
  readonly keys: Map<string, KeyUse>;
  /** By model. */
  readonly faults: Map<string, ModelFault>;
}

export const nothingYet = (): Last => ({
  refusals: new Map(),
  keys: new Map(),
  faults: new Map(),
});

/** Puts an entry behind all others, and drops the first if there are more than `max`. */
export function putLast<V>(map: Map<string, V>, name: string, value: V, max: number): void {
  map.delete(name);
  map.set(name, value);
  if (map.size > max) map.delete(map.keys().next().value!);
}

/** Adds to the episode that goes on, or begins another. */
export function addRefusals({ refusals }: Last, { count, since, last, ...who }: Episode): void {
  const name = [who.account ?? "", who.key ?? "", who.code].join("\0");
  const known = refusals.get(name);
  const goesOn = known !== undefined && since - known.last <= PAUSE_MS;
  const episode = goesOn
    ? {
        ...known,
        count: known.count + count,
        since: Math.min(known.since, since),
        last: Math.max(known.last, last),
      }
    : { ...who, count, since, last };
  putLast(refusals, name, episode, MAX_KEPT);
}

export function addKeyUse({ keys }: Last, use: KeyUse): void {
  const { key } = use;
  const known = keys.get(key);
  const sum = known && {
    key,
    requests: known.requests + use.requests,
    refused: known.refused + use.refused,
    cost: known.cost + use.cost,
    last: Math.max(known.last, use.last),
  };
  putLast(keys, key, sum ?? use, MAX_KEYS);
}

export function addFault({ faults }: Last, fault: ModelFault): void {
  const known = faults.get(fault.model);
  if (!known || known.time <= fault.time) putLast(faults, fault.model, fault, MAX_KEPT);
}

export function addLast(into: Last, { refusals, keys, faults }: Last): void {
  for (const episode of refusals.values()) addRefusals(into, episode);
  for (const use of keys.values()) addKeyUse(into, use);
  for (const fault of faults.values()) addFault(into, fault);
}
