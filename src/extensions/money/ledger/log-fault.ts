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
  /**
   * Why nothing may be written, for as long as the process lives. Undefined: writing is allowed.
   */
  lost(): Error | undefined;
  /** Notes that nothing may be written from here on. Returns the error for whoever wants to. */
  lose(loss: SegmentLoss): Error;
  /** Notes that writing failed. Returns the 503 for the request that this concerns. */
  failed(error: unknown): ApiError;
  /** Refuses requests for as long as the process lives. Requests under way are still settled. */
  refuse(reason: string): void;
  /** Notes that everything that waited has been written. */
  recovered(): void;
}

/** A log begins in the fault "not started", which is not reported. */
export function createLogFault(
  diagnose: Diagnose,
  fenced: (message: string) => void = () => undefined,
): LogFault {
  let passing: string | null = "not started";
  let final: string | null = null;
  let lost: Error | undefined;
  let isReported = false;

  function failedForNow(message: string): void {
    const detail = `requests are refused until it can be written: ${message}`;
    if (!isReported) diagnose({ event: "spend_log_failed", level: "error", detail });
    isReported = true;
    passing = message;
  }

  return {
    current: () => final ?? passing,
    mayPass: () => passing !== null,
    lost: () => lost,
    lose(loss) {
      lost = new Error(loss.detail);
      final ??= loss.detail;
      diagnose({ ...loss, level: "error" });
      if (loss.event === "spend_log_fenced") fenced(loss.detail);
      return lost;
    },
    failed(error) {
      if (error !== lost) failedForNow((error as Error).message);
      return ledgerUnavailable(error);
    },
    refuse(reason) {
      if (final !== null) return;
      final = reason;
      diagnose({ event: "spend_log_failed", level: "error", detail: reason });
    },
    recovered() {
      if (isReported) diagnose({ event: "spend_log_recovered", level: "info" });
      isReported = false;
      passing = null;
    },
  };
}
