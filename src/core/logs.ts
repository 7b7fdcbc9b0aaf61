// The two logs of a process: the access log has one JSON line for each response, the diagnostics
// have one for each event that concerns the operator.
import type { Writable } from "node:stream";
import type { Clock } from "./clock.ts";
import type { Diagnose } from "./diagnose.ts";
import type { Installed } from "./extension/installer.ts";
import { slots, type DroppedLines } from "./extension/places.ts";
import { createLineLog, type LineLog, type WriteLines } from "./http/line-log.ts";

/** Where the logs go. */
export interface LogTargets {
  /** Absent: there is no access log. */
  readonly accessLog?: WriteLines | Writable;
  /** Absent: there are no diagnostics. */
  readonly diagnostics?: WriteLines | Writable;
}

export interface Logs {
  /** One AccessRecord for each response. */
  readonly access: LineLog;
  /** The lines of `diagnose`. */
  readonly diagnostics: LineLog;
  /** Adds the time, in ISO 8601, and writes to `diagnostics`. */
  readonly diagnose: Diagnose;
  /** How many lines were dropped because their reader was slow. */
  dropped(): DroppedLines;
  /** Writes all waiting lines now. */
  flush(): void;
}

/**
 * An extension may bound the lines that wait for a slow reader. Dropped lines are counted, and
 * reported when the reader continues.
 */
export function createLogs(targets: LogTargets, clock: Clock, installed: Installed): Logs {
  const boundLog = installed.filled(slots.boundLog);
  const dropped = { access: 0, diagnostics: 0 };

  function writerTo(log: keyof DroppedLines, target?: WriteLines | Writable): WriteLines {
    if (target === undefined) return () => undefined;
    if (typeof target === "function") return target;
    if (!boundLog) return (lines) => target.write(lines);
    return boundLog(target, {
      dropped() {
        dropped[log] += 1;
      },
      recovered: (lines) => diagnose({ event: "log_lines_dropped", level: "warn", log, lines }),
    });
  }

  const diagnose: Diagnose = (event) =>
    diagnostics.write({ time: new Date(clock.now()).toISOString(), ...event });
  const diagnostics = createLineLog(writerTo("diagnostics", targets.diagnostics));
  const access = createLineLog(writerTo("access", targets.accessLog));
  function flush(): void {
    access.flush();
    diagnostics.flush();
  }
  return { access, diagnostics, diagnose, dropped: () => ({ ...dropped }), flush };
}
