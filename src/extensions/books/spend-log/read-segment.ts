// Reads a segment of the spend log: which requests it has, how each was settled, and what is wrong
// with its lines.
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { readLines } from "../read-lines.ts";
import { parseSpendLine, type OpenRecord, type SettleRecord, type SpendRecord } from "./records.ts";

/** A segment up to the end of its last whole line. */
export interface SegmentContent {
  /** Requests without a settle line, by their spend_ids. */
  readonly unsettled: ReadonlyMap<string, OpenRecord>;
  /** Requests whose settle line cannot be read: neither settled nor in flight. */
  readonly garbled: ReadonlySet<string>;
  /** The end of the last whole line, in bytes. */
  readonly end: number;
  /** Whether a request is settled as "interrupted" and not otherwise. */
  readonly recovered: boolean;
}

/** What to do with a segment's requests, and how far to read. */
export interface SegmentVisitor {
  /** Gets each settled request once, by the line that counts. */
  readonly settled?: (record: SettleRecord) => void;
  /** Gets a description of each line that should not be there. */
  readonly problem?: (text: string) => void;
  /** The first byte that is not read any more. Absent: the end of the file. */
  readonly to?: number | undefined;
}

/** Whether a recovery wrote the line, for a process that it took for dead. */
export const isInterrupted = ({ status }: SettleRecord): boolean => status === "interrupted";

/**
 * Of two settle lines of one request, returns the one that counts. "interrupted" comes from another
 * process, which took the request's own process for dead. A line of the request's own process wins,
 * whichever comes first.
 */
export const decisive = (first: SettleRecord, second: SettleRecord): SettleRecord =>
  isInterrupted(first) && !isInterrupted(second) ? second : first;

/** Reads a segment. Of its content only the ids are held in memory. */
export async function readSegment(
  path: string,
  { settled = () => undefined, problem = () => undefined, to }: SegmentVisitor = {},
): Promise<SegmentContent> {
  const requests = createRequests(settled, problem);
  let end = 0;
  let lineNumber = 0;
  for await (const batch of readLines(path, { to })) {
    for (const line of batch.lines) {
      lineNumber += 1;
      requests.take(line, lineNumber);
    }
    end = batch.end;
  }
  return { ...requests.finish(), end };
}

/** The requests of a segment while it is read. */
function createRequests(settled: (record: SettleRecord) => void, problem: (text: string) => void) {
  const unsettled = new Map<string, OpenRecord>();
  /** Requests that their own process has settled. */
  const final = new Set<string>();
  /** Requests of which all settle lines say "interrupted". */
  const interrupted = new Map<string, SettleRecord>();
  const garbled = new Set<string>();

  function takeOpen(record: OpenRecord): void {
    const { spend_id: id } = record;
    if (unsettled.has(id) || final.has(id) || interrupted.has(id)) problem(`${id}: opened twice`);
    unsettled.set(id, record);
  }

  function takeSettle(record: SettleRecord): void {
    const { spend_id: id } = record;
    const earlier = interrupted.get(id);
    const before = unsettled.get(id) ?? earlier;
    if (before) compareLines(before, record, problem);
    unsettled.delete(id);
    if (final.has(id)) {
      if (!isInterrupted(record)) problem(`${id}: settled twice`);
      return;
    }
    if (!before) problem(`${id}: settled, never opened`);
    if (isInterrupted(record)) takeInterrupted(record, earlier);
    else takeFinal(record);
  }

  function takeInterrupted(record: SettleRecord, earlier: SettleRecord | undefined): void {
    const { spend_id: id } = record;
    if (earlier) problem(`${id}: settled twice`);
    interrupted.set(id, earlier ?? record);
  }

  function takeFinal(record: SettleRecord): void {
    interrupted.delete(record.spend_id);
    final.add(record.spend_id);
    settled(record);
  }

  return {
    take(line: string, lineNumber: number): void {
      const record = parseSpendLine(line);
      if (record?.type === "open") {
        takeOpen(record);
      } else if (record) {
        takeSettle(record);
      } else {
        const id = garbledId(line, lineNumber, problem);
        if (id !== undefined) garbled.add(id);
      }
    },
    finish() {
      for (const record of interrupted.values()) settled(record);
      return { unsettled, garbled, recovered: interrupted.size > 0 };
    },
  };
}

/**
 * Reports a line that cannot be read. Returns the request whose settle line it seems to be, if any.
 */
function garbledId(
  line: string,
  lineNumber: number,
  problem: (text: string) => void,
): string | undefined {
  const id = asObject(parseJson(line))["spend_id"];
  const owner = typeof id === "string" ? `${id}: ` : "";
  problem(`${owner}line ${lineNumber} cannot be read`);
  return typeof id === "string" && line.includes('"settle"') ? id : undefined;
}

/** Fields that both lines of a request have, with the same values. */
const IN_BOTH_LINES = ["account", "key_id", "gateway_request_id", "model_requested"] as const;

/** Reports the fields in which a settle line differs from an earlier line of the same request. */
function compareLines(
  earlier: SpendRecord,
  settle: SettleRecord,
  problem: (text: string) => void,
): void {
  const when = earlier.type === "open" ? "opened" : "first settled";
  for (const name of IN_BOTH_LINES) {
    if (earlier[name] === settle[name]) continue;
    const before = JSON.stringify(earlier[name]);
    const after = JSON.stringify(settle[name]);
    problem(`${settle.spend_id}: ${name} is ${before} when ${when}, settled as ${after}`);
  }
}
