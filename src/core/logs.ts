// The two logs of a process: one JSON line a response, and one an event for the operator.
import type { Clock } from "./clock.ts";
import type { Diagnose } from "./diagnose.ts";
import { dropEvents } from "./http/dropped-lines.ts";
import { createLineLog, type LineLog, type LineSink, type WriteLines } from "./http/line-log.ts";
import type { Observer } from "./observer.ts";

/** Where the logs go. */
export interface LogTargets {
  /** Absent: nowhere. */
  readonly accessLog?: WriteLines | LineSink;
  /** Absent: nowhere. */
  readonly diagnostics?: WriteLines | LineSink;
}

export interface Logs {
  readonly access: LineLog;
  readonly diagnostics: LineLog;
  readonly diagnose: Diagnose;
  /** Writes what is waiting, at once. */
  flush(): void;
}

/** Lines that a slow reader makes them drop are counted by the observer, and reported when the reader goes on. */
export function createLogs(targets: LogTargets, clock: Clock, observer: Observer): Logs {
  const nowhere = (): void => undefined;
  const count = (log: "access" | "diagnostics"): void => observer.lineDropped?.(log);
  const diagnose: Diagnose = (event) =>
    diagnostics.write({ time: new Date(clock.now()).toISOString(), ...event });
  const diagnostics = createLineLog(
    targets.diagnostics ?? nowhere,
    dropEvents("diagnostics", count, diagnose),
  );
  const access = createLineLog(targets.accessLog ?? nowhere, dropEvents("access", count, diagnose));
  return {
    access,
    diagnostics,
    diagnose,
    flush() {
      access.flush();
      diagnostics.flush();
    },
  };
}
