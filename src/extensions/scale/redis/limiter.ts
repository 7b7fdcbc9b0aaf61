// A limiter whose windows are shared by any number of gateways: one script a request in Redis or
// Valkey, carried out by the server's clock, in one round trip. Slots of requests in flight are
// each gateway's own. While Redis is down, or slow, `on_error` decides: this gateway's own windows,
// which have seen all that it admitted, or a refusal.
import {
  decide,
  WINDOW_MS,
  type AdmissionDecision,
  type AdmissionRequest,
  type Limit,
  type Limiter,
} from "../../../core/accounts/limiter.ts";
import type { OnError, StoredScript } from "./store.ts";

/** A limit that is not unlimited. */
interface FiniteLimit extends Limit {
  readonly rpm: number;
}

/** What the script answers to who asks for an admission. */
type Answer = [admitted: number, now: number, figures: [count: number, resetMs: number][]];

const finite = ({ limits }: AdmissionRequest): readonly FiniteLimit[] =>
  limits.filter((limit): limit is FiniteLimit => limit.rpm !== null);

/**
 * `local` has the slots of requests in flight, and the windows that decide while Redis cannot be
 * asked.
 */
export function createSharedLimiter(
  { run }: Pick<StoredScript, "run">,
  local: Limiter,
  onError: OnError,
): Limiter {
  /** What the windows of this process have decided of a request that Redis has admitted. */
  const remembered = new WeakMap<
    AdmissionDecision,
    AdmissionDecision | Promise<AdmissionDecision>
  >();

  /**
   * Asks the store for an admission under these limits or, with `refundedAt` above 0, to count one
   * of that time no longer. `read`: as of StoredScript.run.
   */
  function ask<T>(
    { account }: AdmissionRequest,
    limits: readonly FiniteLimit[],
    refundedAt: number,
    read: (answer: unknown) => T,
  ): Promise<T | undefined> {
    // All windows of one account are on one node of a cluster: that of the tag in braces.
    const keys = limits.map(({ name }) => `chat-gateway:{account ${account}}:${name}`);
    const values = [WINDOW_MS, refundedAt, ...limits.map(({ rpm }) => rpm)];
    return run([keys.length, ...keys, ...values].map(String), read);
  }

  /** Admits a request under all limits or none. Undefined: the store cannot be asked. */
  const admitShared = (request: AdmissionRequest, limits: readonly FiniteLimit[]) =>
    ask(request, limits, 0, (answer): AdmissionDecision => {
      const [admitted, now, figures] = answer as Answer;
      const windows = limits.map(({ rpm }, at) => {
        const [count, resetMs] = figures[at]!;
        return { rpm, count, resetMs };
      });
      return { ...decide(admitted === 1, windows), countedAt: now };
    });

  /** The decision without Redis, about a request that has its slot already. */
  async function admitAlone(request: AdmissionRequest): Promise<AdmissionDecision> {
    if (onError === "local") return await local.admit({ ...request, maxInFlight: null });
    return { ...decide(false, []), rejectedBy: "store" };
  }

  /**
   * The windows of this process must have seen an admission if they are to decide later, also one
   * that they have no room for.
   */
  function remember(request: AdmissionRequest, limits: readonly FiniteLimit[]) {
    const unlimited = limits.map(({ name }) => ({ name, rpm: Infinity }));
    return local.admit({ ...request, maxInFlight: null, limits: unlimited });
  }

  return {
    async admit(request) {
      const slot = await local.admit({ ...request, limits: [] });
      const limits = finite(request);
      if (!slot.admitted || limits.length === 0) return slot;
      const shared = await admitShared(request, limits);
      if (shared?.admitted) remembered.set(shared, remember(request, limits));
      const decision = shared ?? (await admitAlone(request));
      if (!decision.admitted) local.release(request);
      return decision;
    },
    release: local.release,
    async refund(request, decision) {
      const own = remembered.get(decision);
      if (own) await ask(request, finite(request), decision.countedAt ?? 0, () => undefined);
      local.refund(request, (await own) ?? decision);
    },
    used: local.used,
  };
}
