// The records of one day, taken one by one in the order of the log, and compared with the line of
// the day when all were taken.
import { createRecordAdder, differencesFrom } from "../usage/index.ts";
import type { ClosedDay } from "../days/index.ts";
import type { Findings } from "./findings.ts";
import type { RecordLine, RecordSource } from "./record-source.ts";

/** How the records of a day compare with the spend log. */
export interface DayCounts {
  /** Settled requests that are not in the records. */
  added: number;
  /** Records that say something else than the log. */
  changed: number;
  /** Records that no settled request has. */
  removed: number;
  /** Records that are as the log has them. */
  unchanged: number;
  /** Records whose lines are gone with their segments. */
  left: number;
}

export interface DayStream {
  readonly day: string;
  /** What days.jsonl says of the day. Undefined: it is open. */
  readonly closed: ClosedDay | undefined;
  readonly counts: DayCounts;
  /** Where a line stands, for the operator. */
  whereIs(line: RecordLine): string;
  /** Where the line should be that comes after those that were taken. */
  whereNext(): string;
  /** The next line. Undefined: all were taken. */
  current(): Promise<RecordLine | undefined>;
  /** Takes that line. */
  take(): void;
  /** Compares the records with the line of the day, once all were taken. */
  finishIfDone(): Promise<void>;
  /** Whether all were taken, and compared. */
  isDone(): boolean;
  /** Whether the line of the day has exactly these. Of an open day: whether they were all taken. */
  isProved(): boolean;
}

export function openDay(
  source: RecordSource,
  day: string,
  closed: ClosedDay | undefined,
  findings: Findings,
): DayStream {
  const batches = source.linesOf(day)[Symbol.asyncIterator]();
  const adder = createRecordAdder();
  const name = source.nameOf(day);
  let lines: readonly RecordLine[] = [];
  let at = 0;
  let previous: RecordLine | undefined;
  let isDone = false;
  let isProved = false;
  const whereIs = ({ line }: RecordLine): string => `${name}, line ${line}`;

  async function current(): Promise<RecordLine | undefined> {
    while (at === lines.length) {
      const next = await batches.next();
      lines = next.done ? [] : next.value.lines;
      at = 0;
      if (next.done) return undefined;
      adder.add(lines, next.value.bytes);
    }
    return lines[at];
  }

  /** The lines of a closed day are in the order of the log. */
  function checkOrder(line: RecordLine): void {
    const [log, before] = [line.record?.log, previous?.record?.log];
    previous = line;
    if (!closed || !log || !before || before.segment < log.segment) return;
    if (before.segment === log.segment && before.line < log.line) return;
    findings.add(
      whereIs(line),
      `is not in the order of the log: it or line ${line.line - 1} was moved or inserted`,
    );
  }

  return {
    day,
    closed,
    counts: { added: 0, changed: 0, removed: 0, unchanged: 0, left: 0 },
    whereIs,
    whereNext: () => `${name}, line ${(previous?.line ?? 0) + 1}`,
    current,
    take() {
      checkOrder(lines[at]!);
      at += 1;
    },
    async finishIfDone() {
      if (isDone || (await current())) return;
      isDone = true;
      const found = adder.result();
      const unequal = closed ? differencesFrom(closed, found) : [];
      isProved = unequal.length === 0;
      if (!isProved)
        findings.add(
          `${name}, lines 1 to ${found.records}`,
          `are not those that line ${closed?.number} of days.jsonl has: ${unequal.join(", ")}`,
        );
    },
    isDone: () => isDone,
    isProved: () => isProved,
  };
}
