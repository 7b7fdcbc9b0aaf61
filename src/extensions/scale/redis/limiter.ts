// A limiter whose windows are shared by any number of gateways. Slots of requests in flight are
// each gateway's own. While Redis is down, or slow, `on_error` decides: this gateway's own windows,
// which have seen all that it admitted, or a refusal.
import {
  decide,
  type AdmissionDecision,
  type AdmissionRequest,
  type Limiter,
} from "../../../core/accounts/limiter.ts";
import type { FiniteLimit, SharedWindows } from "./shared-windows.ts";

/** The behaviour while Redis cannot be reached: each gateway limits by itself, or refuses. */
export type OnError = "local" | "refuse";

/**
 * `local` has the slots of requests in flight, and the windows that decide while Redis cannot be
 * asked.
 */
export function createSharedLimiter(
  windows: SharedWindows,
  local: Limiter,
  onError: OnError,
): Limiter {
  /** The decision without Redis, about a request that has its slot already. */
  async function admitAlone(request: AdmissionRequest): Promise<AdmissionDecision> {
    if (onError === "local") return await local.admit({ ...request, maxInFlight: null });
    return { ...decide(false, []), rejectedBy: "store" };
  }

  /**
   * The windows of this process must have seen an admission if they are to decide later, also one
   * that they have no room for.
   */
  function remember(request: AdmissionRequest, limits: readonly FiniteLimit[]): void {
    const unlimited = limits.map(({ name }) => ({ name, rpm: Infinity }));
    local.admit({ ...request, maxInFlight: null, limits: unlimited });
  }

  return {
    async admit(request) {
      const slot = await local.admit({ ...request, limits: [] });
      const limits = request.limits.filter((limit): limit is FiniteLimit => limit.rpm !== null);
      if (!slot.admitted || limits.length === 0) return slot;
      const shared = await windows.admit(request.account, limits);
      if (shared?.admitted) remember(request, limits);
      const decision = shared ?? (await admitAlone(request));
      if (!decision.admitted) local.release(request);
      return decision;
    },
    release: local.release,
    used: local.used,
  };
}
