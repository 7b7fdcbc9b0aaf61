// A limiter whose windows any number of gateways share: each request runs one script in Redis or
// Valkey, by the server's clock, in one round trip. Slots for requests in flight are local. While
// Redis is down or slow, either the local windows decide, which record every admission of this
// gateway, or requests are refused, as `on_error` says.
import {
  decide,
  WINDOW_MS,
  type AdmissionDecision,
  type AdmissionRequest,
  type Limit,
  type Limiter,
} from "../../../core/accounts/limiter.ts";
import type { OnError, StoredScript } from "./store.ts";

/** A limit whose `rpm` is a number. */
interface FiniteLimit extends Limit {
  readonly rpm: number;
}

/** The script's answer to a request for admission. */
type Answer = [admitted: number, time: string, figures: [count: number, resetMs: number][]];

const finiteLimits = ({ limits }: AdmissionRequest): readonly FiniteLimit[] =>
  limits.filter((limit): limit is FiniteLimit => limit.rpm !== null);

/** `local` has the slots for requests in flight, and the windows to use while Redis fails. */
export function createSharedLimiter(
  { run }: Pick<StoredScript, "run">,
  local: Limiter,
  onError: OnError,
): Limiter {
  /** The local windows' decision about a request, by the decision of Redis about it. */
  const localDecisions = new WeakMap<
    AdmissionDecision,
    AdmissionDecision | Promise<AdmissionDecision>
  >();

  /**
   * Admits a request under these limits or, if `refundedAt` is not "0", removes the admission of
   * that time. `read`: as in StoredScript.run().
   */
  function runScript<T>(
    { account }: AdmissionRequest,
    limits: readonly FiniteLimit[],
    refundedAt: string,
    read: (answer: unknown) => T,
  ): Promise<T | undefined> {
    // The hash tag in braces keeps all windows of an account on one node of a Redis cluster.
    const keys = limits.map(({ name }) => `chat-gateway:{account ${account}}:${name}`);
    const values = [WINDOW_MS, refundedAt, ...limits.map(({ rpm }) => rpm)];
    return run([keys.length, ...keys, ...values].map(String), read);
  }

  /** Admits a request under all limits or none. Undefined: the store cannot be reached. */
  const admitShared = (request: AdmissionRequest, limits: readonly FiniteLimit[]) =>
    runScript(request, limits, "0", (answer): AdmissionDecision => {
      const [admitted, time, figures] = answer as Answer;
      const windows = limits.map(({ rpm }, at) => {
        const [count, resetMs] = figures[at]!;
        return { rpm, count, resetMs };
      });
      return { ...decide(admitted === 1, windows), countedAt: Number(time) };
    });

  /** Decides without Redis. The request already holds its slot. */
  async function decideLocally(request: AdmissionRequest): Promise<AdmissionDecision> {
    if (onError === "local") return await local.admit({ ...request, maxInFlight: null });
    return { ...decide(false, []), rejectedBy: "store" };
  }

  /**
   * Records an admission in the local windows, even beyond their limits, so that they are complete
   * when they have to decide.
   */
  function recordLocally(request: AdmissionRequest, limits: readonly FiniteLimit[]) {
    const unlimited = limits.map(({ name }) => ({ name, rpm: Infinity }));
    return local.admit({ ...request, maxInFlight: null, limits: unlimited });
  }

  return {
    async admit(request) {
      const slot = await local.admit({ ...request, limits: [] });
      const limits = finiteLimits(request);
      if (!slot.admitted || limits.length === 0) return slot;
      const shared = await admitShared(request, limits);
      if (shared?.admitted) localDecisions.set(shared, recordLocally(request, limits));
      const decision = shared ?? (await decideLocally(request));
      if (!decision.admitted) local.release(request);
      return decision;
    },
    release: local.release,
    async refund(request, decision) {
      const localDecision = localDecisions.get(decision);
      const countedAt = (decision.countedAt ?? 0).toFixed(3);
      if (localDecision)
        await runScript(request, finiteLimits(request), countedAt, () => undefined);
      local.refund(request, (await localDecision) ?? decision);
    },
    used: local.used,
  };
}
