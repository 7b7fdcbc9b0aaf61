// Why the spend log cannot be written at the moment, and what the operator and clients hear of it.
import type { Diagnose } from "../../../core/diagnose.ts";
import { ledgerUnavailable } from "../../../core/ledger/ledger.ts";
import type { ApiError } from "../../../core/openai/errors.ts";

/** Whether the log can be written. Each change is reported once. */
export interface LogFault {
  /** Why the log cannot be written; null if it can. */
  current(): string | null;
  /** Notes that writing failed. Returns the 503 for the request that this concerns. */
  failed(error: unknown): ApiError;
  /** Notes that everything that waited has been written. */
  recovered(): void;
  /** The first attempt is over. From here on only changes are reported. */
  started(): void;
}

/** A log begins in the fault "not started", which is not reported. */
export function createLogFault(diagnose: Diagnose): LogFault {
  let fault: string | null = "not started";
  let isStarted = false;
  return {
    current: () => fault,
    failed(error) {
      const { message } = error as Error;
      const detail = `requests are refused until it can be written: ${message}`;
      if (fault === null || !isStarted)
        diagnose({ event: "spend_log_failed", level: "error", detail });
      fault = message;
      return ledgerUnavailable(error);
    },
    recovered() {
      if (isStarted) diagnose({ event: "spend_log_recovered", level: "info" });
      fault = null;
    },
    started() {
      isStarted = true;
    },
  };
}
