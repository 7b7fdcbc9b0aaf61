// What happens when a log drops lines because its reader is too slow: they are counted, and when
// the reader has caught up, a diagnostic says how many are missing.
import type { Diagnose } from "../diagnose.ts";
import type { DropEvents } from "./line-log.ts";

/** The logs of a gateway. */
export type LogName = "access" | "diagnostics";

/** `count` is called for each dropped line. */
export const dropEvents = (
  log: LogName,
  count: (log: LogName) => void,
  diagnose: Diagnose,
): DropEvents => ({
  dropped: () => count(log),
  recovered: (lines) => diagnose({ event: "log_lines_dropped", level: "warn", log, lines }),
});
