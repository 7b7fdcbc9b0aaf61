// How far each segment of the spend log has been copied into the usage records. A name does not
// identify a segment: it is given again once its file is gone (an emptied folder, an older backup,
// a copy of the data_dir). A segment's identity is the spend_id of its first line, which is random
// and there from the first byte on.
import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import type { Mark } from "../../usage-records/index.ts";
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { segmentsIn } from "../spend-log/segment-names.ts";

/** A longer first line is not this program's. Its beginning then identifies the segment. */
const FIRST_LINE_BYTES = 64 * 1024;
/** Enough for one whole line, whose spend_id no other line has. */
const TAIL_BYTES = 4 * 1024;
const NEWLINE = 10;

/** How far one segment has been copied. */
export interface Progress {
  /** Undefined while the first line has no end: there is nothing to copy yet. */
  readonly identity: string | undefined;
  /** The mark from which copying goes on. Undefined: from the beginning. */
  readonly mark: Mark | undefined;
  /**
   * Marks of this segment that its content contradicts: more was copied from it, or something else.
   */
  readonly stale: readonly Mark[];
}

/** Marks by the identities of their segments. */
export type MarksByIdentity = ReadonlyMap<string, readonly Mark[]>;

/** Looks into segments. What it saw of a file that has not changed since is remembered. */
export interface SegmentReader {
  /** The identity of the segment at a path. Undefined while its first line has no end. */
  identityOf(path: string): string | undefined;
  /** A hash of the bytes before a position. "" if no line ends there. */
  tailAt(path: string, position: number): string;
  /**
   * Finds the marks of the segment at a path among all, whatever it was called when it was copied.
   */
  progressOf(path: string, name: string, marks: MarksByIdentity): Progress;
  /** Forgets a segment that is about to be deleted. */
  forget(path: string): void;
}

/** What was seen of a segment. */
interface Seen {
  /** Changes when the file does. */
  readonly version: string;
  readonly identity: string | undefined;
  /** tailAt() by position. */
  readonly tails: Map<number, string>;
}

/** A reader that has seen nothing yet. */
export function createSegmentReader(): SegmentReader {
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
    identityOf: (path) => look(path, []).identity,
    tailAt: (path, position) => look(path, [position]).tails.get(position) ?? "",
    progressOf(path, name, marks) {
      const { identity } = look(path, []);
      if (identity === undefined) return { identity, mark: undefined, stale: [] };
      const candidates = marks.get(identity) ?? [];
      const positions = candidates.map(({ position }) => position);
      const { tails } = look(path, positions);
      const matching = candidates.filter(
        ({ position, tail }) => tail !== "" && tails.get(position) === tail,
      );
      const [furthest] = [...matching].sort((a, b) => b.position - a.position);
      const stale = candidates.filter((mark) => !matching.includes(mark));
      return { identity, mark: furthest && { ...furthest, segment: name }, stale };
    },
    forget(path) {
      seen.delete(path);
    },
  };
}

const hash = (bytes: Buffer): string =>
  createHash("sha256").update(bytes).digest("hex").slice(0, 32);

/** Reads `length` bytes from byte `from` on, or fewer where the file ends. */
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

function tailIn(fd: number, position: number): string {
  if (position > fstatSync(fd).size) return "";
  const bytes = readAt(fd, Math.max(0, position - TAIL_BYTES), Math.min(position, TAIL_BYTES));
  return bytes[bytes.length - 1] === NEWLINE ? hash(bytes) : "";
}

/** Groups marks by identity. Marks without one are left out. */
export function byIdentity(marks: readonly Mark[]): MarksByIdentity {
  const groups = new Map<string, Mark[]>();
  for (const mark of marks) {
    if (mark.identity === null) continue;
    const group = groups.get(mark.identity) ?? [];
    group.push(mark);
    groups.set(mark.identity, group);
  }
  return groups;
}

/** Describes a segment of `size` bytes whose marks do not match it. */
export function describeStale(name: string, size: number, stale: readonly Mark[]): string {
  const furthest = Math.max(...stale.map(({ position }) => position));
  const found =
    furthest > size
      ? `${furthest} bytes of it were copied into the usage records, and it has ${size}`
      : `what was copied from it up to byte ${furthest} is not what stands there`;
  return (
    `spend/${name} is not what it was: ${found}. Was it restored from a backup, or changed? ` +
    "'books rebuild' compares both and goes on from there"
  );
}

/** How many bytes of each segment in a folder have been copied, by the segment's name. */
export function copiedBytes(
  dir: string,
  reader: SegmentReader,
  marks: readonly Mark[],
): ReadonlyMap<string, number> {
  const marksOf = byIdentity(marks);
  const positions = segmentsIn(dir).map((name) => {
    const { mark } = reader.progressOf(join(dir, name), name, marksOf);
    const old = marks.find(({ identity, segment }) => identity === null && segment === name);
    return [name, mark?.position ?? old?.position ?? 0] as const;
  });
  return new Map(positions);
}
