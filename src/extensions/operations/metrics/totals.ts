// What all processes have counted since the installation began. A process that has died, or that
// is late with its report, keeps its share: counters must not fall.
import type { DroppedLines, Report } from "../../../core/extension/places.ts";
import { FAMILIES } from "./families.ts";
import { merge, type ProcessTally, type Tally } from "./tally.ts";

/** The name of this extension, and of the reports that its part in each process makes. */
export const NAME = "metrics";

/** Processes whose counts are kept apart: all of server.workers (256), and as many dead ones. */
const MAX_PROCESSES = 512;

/** The share of one process. */
interface Share {
  /** As in ProcessTally. */
  readonly number: number;
  /** The families that GET /metrics shows. */
  readonly tally: Tally;
  /** As in Report. */
  readonly dropped: DroppedLines;
}

export type Totals = ReturnType<typeof createTotals>;

export function createTotals(maxProcesses = MAX_PROCESSES) {
  /** By process, that which has not reported for the longest time first. */
  const shares = new Map<string, Share>();

  function takeReport({ extensions, droppedLines: dropped }: Report): void {
    const { process, number, tally } = extensions[NAME] as ProcessTally;
    const known = shares.get(process);
    if (known && known.number > number) return;
    shares.delete(process);
    const shown = new Map([...tally].filter(([name]) => name in FAMILIES));
    shares.set(process, { number, tally: shown, dropped });
  }

  /** Keeps the shares of the first two as one: they have died long ago. */
  function joinFirst(): void {
    const [first, second] = [...shares] as [[string, Share], [string, Share]];
    shares.delete(first[0]);
    const both = sharesTogether([first[1], second[1]]);
    shares.set(second[0], { ...second[1], ...both });
  }

  return {
    /** Takes what the processes report that serve at the moment. */
    take(reports: readonly Report[]): void {
      for (const report of reports) takeReport(report);
      while (shares.size > maxProcesses) joinFirst();
    },
    /** A copy: the sums of all processes. */
    sums: () => sharesTogether([...shares.values()]),
  };
}

const sharesTogether = (all: readonly Share[]): Omit<Share, "number"> => ({
  tally: merge(all.map(({ tally }) => tally)),
  dropped: addDropped(all.map(({ dropped }) => dropped)),
});

/** The lines of each log that several processes have dropped. */
export const addDropped = (all: readonly DroppedLines[]): DroppedLines => ({
  access: all.reduce((sum, { access }) => sum + access, 0),
  diagnostics: all.reduce((sum, { diagnostics }) => sum + diagnostics, 0),
});
