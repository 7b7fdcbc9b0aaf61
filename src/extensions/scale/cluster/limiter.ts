// Limits requests per minute and concurrent requests across all workers: workers ask the
// primary, which keeps the windows and slots.
import {
  decide,
  type AdmissionDecision,
  type AdmissionRequest,
  type Limiter,
  type LocalLimiter,
} from "../../../core/accounts/limiter.ts";
import { answerWorkers, callPrimary } from "./calls.ts";

const SUBJECT = "limiter";

/** Releases the request's slot or, with `refunded`, takes back that admission. */
interface Note extends AdmissionRequest {
  readonly refunded?: AdmissionDecision;
}

/** Admits all workers' requests in the primary. Returns a function that stops that. */
export function admitForWorkers(limiter: LocalLimiter): () => void {
  /** The requests of each worker that hold a slot. */
  const slots = new Map<number, AdmissionRequest[]>();
  return answerWorkers<AdmissionRequest, Note, AdmissionDecision>(SUBJECT, {
    answer(request, worker) {
      const decision = limiter.admit(request);
      if (request.maxInFlight === null || !decision.admitted) return decision;
      const heldSlots = slots.get(worker) ?? [];
      slots.set(worker, heldSlots);
      heldSlots.push(request);
      return decision;
    },
    onNote({ refunded, ...released }, worker) {
      if (refunded) return limiter.refund(released, refunded);
      limiter.release(released);
      const heldSlots = slots.get(worker) ?? [];
      const at = heldSlots.findIndex(({ account }) => account === released.account);
      if (at !== -1) heldSlots.splice(at, 1);
    },
    onExit(worker) {
      for (const request of slots.get(worker) ?? []) limiter.release(request);
      slots.delete(worker);
    },
  });
}

/** The limiter of a worker, which asks the primary. */
export function createRemoteLimiter(): Limiter {
  const primary = callPrimary<AdmissionRequest, Note, AdmissionDecision>(SUBJECT);
  return {
    admit(request) {
      const isUnlimited = request.limits.every(({ rpm }) => rpm === null);
      if (request.maxInFlight === null && isUnlimited) return decide(true, []);
      return primary.ask(plain(request));
    },
    // Sent before the client gets the end of its response, so that its next request finds the slot
    // free.
    release(request) {
      if (request.maxInFlight !== null) primary.notify(plain(request));
    },
    refund: (request, refunded) => primary.notify({ ...plain(request), refunded }),
    used: () => 0, // the primary knows
  };
}

/**
 * Only the fields that the limiter needs: the object may be a whole Caller, and sending it would
 * copy all of it.
 */
const plain = ({ account, limits, maxInFlight }: AdmissionRequest): AdmissionRequest => ({
  account,
  limits,
  maxInFlight,
});
