// Why the spend log takes no requests at the moment, and what the operator and clients hear of it.
import type { Diagnose } from "../../../core/diagnose.ts";
import { ledgerUnavailable } from "../../../core/ledger/ledger.ts";
import type { ApiError } from "../../../core/openai/errors.ts";

/** Why this process must not write to a segment any more. */
export interface SegmentLoss {
  /** Another process took it over; or somebody deleted, replaced or changed its file. */
  readonly event: "spend_log_fenced" | "spend_segment_broken";
  /** The name of the segment. */
  readonly segment: string;
  /** For the operator. */
  readonly detail: string;
}

/** Whether the log takes requests. Each change is reported once. */
export interface LogFault {
  /** Why the log takes no requests; null if it takes them. */
  current(): string | null;
  /** Whether writing failed in a way that may pass. */
  mayPass(): boolean;
  /** Throws if nothing may be written for as long as the process lives. */
  assertNotLost(): void;
  /** Notes that nothing may be written any more. Returns the error that assertNotLost() throws. */
  lose(loss: SegmentLoss): Error;
  /** Notes that writing failed. Returns the 503 for the request that this concerns. */
  failed(error: unknown): ApiError;
  /** Refuses requests for as long as the process lives. Requests under way are still settled. */
  refuse(reason: string): void;
  /** Notes that everything that waited has been written. */
  recovered(): void;
}

/**
 * A log begins in the fault "not started", which is not reported. `fenced` is called with a message
 * when another process has taken over a segment.
 */
export function createLogFault(diagnose: Diagnose, fenced: (message: string) => void): LogFault {
  let passing: string | null = "not started";
  let final: string | null = null;
  let lost: Error | undefined;
  let isReported = false;

  function report(detail: string): void {
    diagnose({ event: "spend_log_failed", level: "error", detail });
  }

  return {
    current: () => final ?? passing,
    mayPass: () => passing !== null,
    assertNotLost() {
      if (lost) throw lost;
    },
    lose(loss) {
      lost = new Error(loss.detail);
      final ??= loss.detail;
      diagnose({ ...loss, level: "error" });
      if (loss.event === "spend_log_fenced") fenced(loss.detail);
      return lost;
    },
    failed(error) {
      if (error === lost) return ledgerUnavailable(error);
      passing = (error as Error).message;
      if (!isReported) report(`requests are refused until it can be written: ${passing}`);
      isReported = true;
      return ledgerUnavailable(error);
    },
    refuse(reason) {
      if (final !== null) return;
      final = reason;
      report(reason);
    },
    recovered() {
      if (isReported) diagnose({ event: "spend_log_recovered", level: "info" });
      isReported = false;
      passing = null;
    },
  };
}
