// The two logs of a process: one JSON line a response, and one an event for the operator.
import type { Writable } from "node:stream";
import type { Clock } from "./clock.ts";
import type { Diagnose } from "./diagnose.ts";
import type { Installed } from "./extension/installer.ts";
import { slots, type DroppedLines } from "./extension/places.ts";
import { createLineLog, type LineLog, type WriteLines } from "./http/line-log.ts";

/** Where the logs go. */
export interface LogTargets {
  /** Absent: nowhere. */
  readonly accessLog?: WriteLines | Writable;
  /** Absent: nowhere. */
  readonly diagnostics?: WriteLines | Writable;
}

export interface Logs {
  /** One line a response, as AccessRecord has it. */
  readonly access: LineLog;
  /** The lines of `diagnose`. */
  readonly diagnostics: LineLog;
  /** Adds the time, in ISO 8601, and writes to `diagnostics`. */
  readonly diagnose: Diagnose;
  /** Lines that slow readers made the logs drop. */
  dropped(): DroppedLines;
  /** Writes what is waiting, at once. */
  flush(): void;
}

/**
 * An extension may bound what is kept for a slow reader. Lines that are dropped are counted, and
 * reported when the reader goes on.
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
