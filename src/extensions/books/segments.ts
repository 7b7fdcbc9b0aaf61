// Segments of the spend log as the usage sync sees them: what tells one from another, how far each has been copied, and what
// its lines come to. A name does not identify a segment: it is given again once its file is gone (an emptied folder, an older
// backup, a copy of the data_dir). The identity is the spend_id of the first line, which is random and there from the first byte
// on, so that the lines that other programs read stay as they are.
import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { asObject, parseJson } from "../../core/schema/untrusted-json.ts";
import { readLines } from "./files.ts";
import { parseSpendLine, type OpenRecord, type SettleRecord } from "./records.ts";

/** How far a segment has been copied into the usage records. */
export interface Mark {
  /** The segment's file name when it was copied. */
  readonly segment: string;
  /** Null: the mark is of a version that knew segments by their names only. */
  readonly identity: string | null;
  /** Bytes from the beginning, up to the end of a line. */
  readonly position: number;
  /** Hash of the last bytes before `position`; "" fits nothing. */
  readonly tail: string;
  /** Whether a line that says "interrupted" has been copied: only then can a later line of the same request correct it. */
  readonly recovered: boolean;
}

/** How a segment and its marks go together. */
export interface Progress {
  /** Undefined as long as its first line has no end: there is nothing to copy yet. */
  readonly identity: string | undefined;
  /** The mark from which the copying goes on; undefined: from the beginning. */
  readonly mark: Mark | undefined;
  /** Marks of the same segment that its content contradicts: more was copied from it, or something else. */
  readonly stale: readonly Mark[];
}

const FIRST_LINE_BYTES = 64 * 1024; // a longer first line is not ours, and is identified by its beginning
const TAIL_BYTES = 4 * 1024; // holds at least one whole line, whose spend_id no other line has
const NEWLINE = 10;

const hash = (bytes: Buffer): string =>
  createHash("sha256").update(bytes).digest("hex").slice(0, 32);

/** `length` bytes from byte `from` on, or fewer where the file ends. */
function readAt(fd: number, from: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const read = readSync(fd, bytes, filled, length - filled, from + filled);
    if (read === 0) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}

function identityIn(fd: number): string | undefined {
  const start = readAt(fd, 0, FIRST_LINE_BYTES);
  const end = start.indexOf(NEWLINE);
  if (end < 0 && start.length < FIRST_LINE_BYTES) return undefined;
  const line = end < 0 ? start : start.subarray(0, end);
  const id = asObject(parseJson(line.toString("utf8")))["spend_id"];
  return typeof id === "string" && /^sp_[0-9a-f]{32}$/.test(id) ? id : `x_${hash(line)}`;
}

/** What stands in front of `position`, as a hash; "" if that is beyond the end or no line ends there. */
function tailIn(fd: number, position: number): string {
  if (position > fstatSync(fd).size) return "";
  const bytes = readAt(fd, Math.max(0, position - TAIL_BYTES), Math.min(position, TAIL_BYTES));
  return bytes[bytes.length - 1] === NEWLINE ? hash(bytes) : "";
}

export type MarksByIdentity = ReadonlyMap<string, readonly Mark[]>;

/** Looks into segments; what was seen of a file that has not changed since is remembered. */
export function createSegmentReader() {
  interface Seen {
    readonly version: string;
    readonly identity: string | undefined;
    readonly tails: Map<number, string>;
  }
  const seen = new Map<string, Seen>();

  function look(path: string, positions: readonly number[]): Seen {
    const fd = openSync(path, "r");
    try {
      const { ino, size, mtimeMs } = fstatSync(fd);
      const version = `${ino}:${size}:${mtimeMs}`;
      const before = seen.get(path);
      const known =
        before?.version === version
          ? before
          : { version, identity: identityIn(fd), tails: new Map<number, string>() };
      for (const position of positions) {
        if (!known.tails.has(position)) known.tails.set(position, tailIn(fd, position));
      }
      seen.set(path, known);
      return known;
    } finally {
      closeSync(fd);
    }
  }

  return {
    identityOf: (path: string): string | undefined => look(path, []).identity,
    tailAt: (path: string, position: number): string =>
      look(path, [position]).tails.get(position) ?? "",
    /** Finds the segment's own marks among all, whatever it was called then. */
    progressOf(path: string, name: string, marks: MarksByIdentity): Progress {
      const { identity } = look(path, []);
      if (identity === undefined) return { identity, mark: undefined, stale: [] };
      const own = marks.get(identity) ?? [];
      const positions = own.map(({ position }) => position);
      const { tails } = look(path, positions);
      const fitting = own.filter(
        ({ position, tail }) => tail !== "" && tails.get(position) === tail,
      );
      const [furthest] = [...fitting].sort((a, b) => b.position - a.position);
      const stale = own.filter((each) => !fitting.includes(each));
      return { identity, mark: furthest && { ...furthest, segment: name }, stale };
    },
    forget: (path: string): boolean => seen.delete(path),
  };
}

export function byIdentity(marks: readonly Mark[]): MarksByIdentity {
  const found = new Map<string, Mark[]>();
  for (const mark of marks) {
    if (mark.identity === null) continue;
    const list = found.get(mark.identity) ?? [];
    list.push(mark);
    found.set(mark.identity, list);
  }
  return found;
}

/** What is told of a segment whose marks do not fit it. `size`: of its file, in bytes. */
export function describeStale(name: string, size: number, stale: readonly Mark[]): string {
  const furthest = Math.max(...stale.map(({ position }) => position));
  const found =
    furthest > size
      ? `${furthest} bytes of it were copied into the usage records, and it has ${size}`
      : `what was copied from it up to byte ${furthest} is not what stands there`;
  return `spend/${name} is not what it was: ${found}. Was it restored from a backup, or changed? 'books rebuild' compares both and goes on from there`;
}

export const isInterrupted = ({ status }: SettleRecord): boolean => status === "interrupted";

/** Of two settle lines of one request the one that counts: "interrupted" is what another process said of a request whose own
 * process it took for dead; what the request's own process says wins, whichever comes first. */
export const counting = (first: SettleRecord, second: SettleRecord): SettleRecord =>
  isInterrupted(first) && !isInterrupted(second) ? second : first;

/** What stands in a segment up to `end`, the end of its last whole line. */
export interface SegmentContent {
  readonly unsettled: ReadonlyMap<string, OpenRecord>;
  /** Requests with a settle line that cannot be read: unsettled, and not on their way either. */
  readonly garbled: ReadonlySet<string>;
  readonly end: number;
  readonly recovered: boolean;
}

/** `settled` gets each settled request once, by the line that counts; `problem` hears of lines that should not be there. */
export interface SegmentVisitor {
  readonly settled?: (record: SettleRecord) => void;
  readonly problem?: (text: string) => void;
}

/** What stands in both lines of a request, and must be the same. */
const IN_BOTH_LINES = ["account", "key_id", "gateway_request_id", "model_requested"] as const;

/** Tells in what a settle line differs from an earlier line of the same request. */
function compareLines(
  earlier: OpenRecord | SettleRecord,
  settle: SettleRecord,
  problem: (text: string) => void,
): void {
  for (const name of IN_BOTH_LINES) {
    if (earlier[name] === settle[name]) continue;
    const [before, after] = [earlier[name], settle[name]].map((value) => JSON.stringify(value));
    problem(
      `${settle.spend_id}: ${name} is ${before} when ${opened(earlier)}, settled as ${after}`,
    );
  }
}

const opened = ({ type }: OpenRecord | SettleRecord): string =>
  type === "open" ? "opened" : "first settled";

/** Reads a segment up to byte `to`, in flat memory but for the ids in it. */
export async function readSegment(
  path: string,
  to = Infinity,
  { settled = () => undefined, problem = () => undefined }: SegmentVisitor = {},
): Promise<SegmentContent> {
  const unsettled = new Map<string, OpenRecord>();
  const final = new Set<string>();
  const interrupted = new Map<string, SettleRecord>();
  const garbled = new Set<string>();
  let end = 0;
  let lineNumber = 0;

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
    const wasOpen = unsettled.delete(id);
    if (final.has(id)) {
      if (!isInterrupted(record)) problem(`${id}: settled twice`);
      return;
    }
    if (!wasOpen && !earlier) problem(`${id}: settled, never opened`);
    if (isInterrupted(record)) {
      if (earlier) problem(`${id}: settled twice`);
      interrupted.set(id, earlier ?? record);
      return;
    }
    interrupted.delete(id);
    final.add(id);
    settled(record);
  }

  for await (const batch of readLines(path, 0, to)) {
    for (const line of batch.lines) {
      lineNumber += 1;
      const record = parseSpendLine(line);
      if (record?.type === "open") {
        takeOpen(record);
      } else if (record) {
        takeSettle(record);
      } else {
        const id = asObject(parseJson(line))["spend_id"];
        const whose = typeof id === "string" ? `${id}: ` : "";
        problem(`${whose}line ${lineNumber} cannot be read`);
        if (typeof id === "string" && line.includes('"settle"')) garbled.add(id);
      }
    }
    end = batch.end;
  }
  for (const record of interrupted.values()) settled(record);
  return { unsettled, garbled, end, recovered: interrupted.size > 0 };
}

/** The requests that were settled in front of byte `to`, by whether all that was said of them is "interrupted". */
export async function settledBefore(path: string, to: number): Promise<Map<string, boolean>> {
  const found = new Map<string, boolean>();
  for await (const { lines } of readLines(path, 0, to)) {
    for (const record of lines.map(parseSpendLine)) {
      if (record?.type === "settle") noteSettled(found, record);
    }
  }
  return found;
}

export function noteSettled(found: Map<string, boolean>, record: SettleRecord): void {
  const { spend_id: id } = record;
  found.set(id, isInterrupted(record) && (found.get(id) ?? true));
}
