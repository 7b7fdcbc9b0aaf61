// Why the spend log takes no requests at the moment, and what the operator and clients hear of it.
import type { Diagnose } from "../../../core/diagnose.ts";
import { ledgerUnavailable } from "../../../core/ledger/ledger.ts";
import type { ApiError } from "../../../core/openai/errors.ts";

/** This process must not write to the spend log any more. The message is for the operator. */
export class SegmentLost extends Error {
  /** The name of the segment. */
  readonly segment: string;
  /** Another process took the segment over. False: somebody changed or deleted its file. */
  readonly isFenced: boolean;

  constructor(segment: string, isFenced: boolean, message: string) {
    super(message);
    this.segment = segment;
    this.isFenced = isFenced;
  }
}

/** Whether the log takes requests. Each change is reported once. */
export interface LogFault {
  /** Why the log takes no requests; null if it takes them. */
  current(): string | null;
  /** Whether writing failed in a way that may pass. */
  mayPass(): boolean;
  /** Why nothing may be written, for as long as the process lives. Undefined: writing is allowed. */
  lost(): SegmentLost | undefined;
  /** Notes that writing failed. Returns the 503 for the request that this concerns. */
  failed(error: unknown): ApiError;
  /** Refuses requests for as long as the process lives. Requests under way are still settled. */
  refuse(reason: string): void;
  /** Notes that everything that waited has been written. */
  recovered(): void;
  /** The first attempt is over. From here on only changes are reported. */
  started(): void;
}

/** A log begins in the fault "not started", which is not reported. */
export function createLogFault(
  diagnose: Diagnose,
  fenced: (message: string) => void = () => undefined,
): LogFault {
  let passing: string | null = "not started";
  let final: string | null = null;
  let lost: SegmentLost | undefined;
  let isStarted = false;

  function lose(error: SegmentLost): void {
    if (lost) return;
    lost = error;
    final ??= error.message;
    const event = error.isFenced ? "spend_log_fenced" : "spend_segment_broken";
    diagnose({ event, level: "error", segment: error.segment, detail: error.message });
    if (error.isFenced) fenced(error.message);
  }

  function failedForNow(message: string): void {
    const detail = `requests are refused until it can be written: ${message}`;
    if (passing === null || !isStarted)
      diagnose({ event: "spend_log_failed", level: "error", detail });
    passing = message;
  }

  return {
    current: () => final ?? passing,
    mayPass: () => passing !== null,
    lost: () => lost,
    failed(error) {
      if (error instanceof SegmentLost) lose(error);
      else failedForNow((error as Error).message);
      return ledgerUnavailable(error);
    },
    refuse(reason) {
      if (final !== null) return;
      final = reason;
      diagnose({ event: "spend_log_failed", level: "error", detail: reason });
    },
    recovered() {
      if (isStarted) diagnose({ event: "spend_log_recovered", level: "info" });
      passing = null;
    },
    started() {
      isStarted = true;
    },
  };
}
