// Why the spend log takes no requests at the moment, and what the operator and clients hear of it.
import type { Diagnose } from "../../../core/diagnose.ts";
import { ledgerUnavailable } from "../../../core/ledger/ledger.ts";
import type { ApiError } from "../../../core/openai/errors.ts";

/** Another process took a segment over; or somebody deleted, replaced or changed its file. */
type Loss = "spend_log_fenced" | "spend_segment_broken";

/** Whether the log takes requests. Each change is reported once. */
export interface LogFault {
  /** Why the log takes no requests; null if it takes them. */
  current(): string | null;
  /** Whether writing failed in a way that may pass. */
  mayPass(): boolean;
  /** Throws if nothing may be written for as long as the process lives. */
  assertNotLost(): void;
  /**
   * Notes that nothing may be written any more, because of a segment; `detail` is for the operator.
   * Returns the error that assertNotLost() throws.
   */
  lose(event: Loss, segment: string, detail: string): Error;
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
    lose(event, segment, detail) {
      lost = new Error(detail);
      final ??= detail;
      diagnose({ event, level: "error", segment, detail });
      if (event === "spend_log_fenced") fenced(detail);
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
