// The two logs of a process: one JSON line a response, and one an event for the operator.
import type { Writable } from "node:stream";
import type { Clock } from "./clock.ts";
import type { Diagnose } from "./diagnose.ts";
import type { Extension } from "./extension/extension.ts";
import { soleOf } from "./extension/gateway-parts.ts";
import { createLineLog, type LineLog, type WriteLines } from "./http/line-log.ts";
import type { Observer } from "./observer.ts";

/** Where the logs go. */
export interface LogTargets {
  /** Absent: nowhere. */
  readonly accessLog?: WriteLines | Writable;
  /** Absent: nowhere. */
  readonly diagnostics?: WriteLines | Writable;
  /** One of them may bound what is kept for a slow reader. Absent: none does. */
  readonly extensions?: readonly Extension[];
}

export interface Logs {
  /** One line a response, as AccessRecord has it. */
  readonly access: LineLog;
  /** The lines of `diagnose`. */
  readonly diagnostics: LineLog;
  /** Adds the time, in ISO 8601, and writes to `diagnostics`. */
  readonly diagnose: Diagnose;
  /** Writes what is waiting, at once. */
  flush(): void;
}

/**
 * Lines that a slow reader makes them drop are counted by the observer, and reported when the
 * reader goes on.
 */
export function createLogs(targets: LogTargets, clock: Clock, observer: Observer): Logs {
  const boundLog = soleOf(targets.extensions ?? [], "boundLog");

  function open(log: "access" | "diagnostics", target: WriteLines | Writable | undefined): LineLog {
    if (target === undefined) return createLineLog(() => undefined);
    if (typeof target === "function") return createLineLog(target);
    if (!boundLog) return createLineLog((lines) => target.write(lines));
    const writeLines = boundLog(target, {
      dropped: () => observer.lineDropped?.(log),
      recovered: (lines) => diagnose({ event: "log_lines_dropped", level: "warn", log, lines }),
    });
    return createLineLog(writeLines);
  }

  const diagnose: Diagnose = (event) =>
    diagnostics.write({ time: new Date(clock.now()).toISOString(), ...event });
  const diagnostics = open("diagnostics", targets.diagnostics);
  const access = open("access", targets.accessLog);
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
