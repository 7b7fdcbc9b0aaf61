// One segment against the lines of closed days, and against heads that were kept: the hashes of its
// first bytes. Its lines are read in the same pass.
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import type { SegmentCursor } from "../records/index.ts";
import { brokenFile } from "../days/index.ts";
import { createSegmentReader, type SegmentReader } from "../usage/index.ts";
import type { Listing } from "../days/index.ts";
import type { Findings } from "./findings.ts";
import type { Join } from "./join.ts";

/** A segment, and what is known of it. */
export interface SegmentToProve {
  readonly name: string;
  readonly path: string;
  /** In the order of their bytes. */
  readonly listings: readonly Listing[];
  /** How far it was copied. Undefined: it was not. */
  readonly cursor: SegmentCursor | undefined;
  /** The records have everything up to this byte. */
  readonly dueBytes: number;
  /** Whether to read on after that. */
  readonly readsOn: boolean;
}

/** What is proved of a segment. `seal verify --json` prints it. */
export interface SegmentProof {
  /** Its path in data_dir. */
  readonly file: string;
  /** Lines that were read. */
  readonly lines: number;
  /** Lines that days.jsonl, or a head that was kept, has as they are. */
  readonly proved: number;
  /** What has the last of these. Null: nothing has any. */
  readonly by: string | null;
  /** Bytes after the last whole line. */
  readonly torn_bytes: number;
}

/** When requests were opened in a segment, by the line: a hint if the order was changed. */
type Openings = Map<number, number>;

/** Reads a segment once, and hands its requests on. `reader`: where that is then. */
export async function proveSegment(
  { name, path, listings, cursor, dueBytes, readsOn }: SegmentToProve,
  join: Join | undefined,
  findings: Findings,
): Promise<{ readonly proof: SegmentProof; readonly reader: SegmentReader }> {
  const file = `spend/${name}`;
  const { size } = statSync(path);
  const reader = createSegmentReader(path, name);
  const openings: Openings = new Map();
  const prefixes = createPrefixCheck(file, listings, openings, findings);

  async function read(to: number, isDue: boolean): Promise<void> {
    for await (const batch of reader.read(to)) {
      for (const { line, what } of batch.problems) findings.add(`${file}, line ${line}`, what);
      for (const request of batch.settled) {
        const { settle, opened } = request;
        openings.set(opened, Date.parse(settle.time) - settle.duration_ms);
        await join?.settled(request, isDue);
      }
      prefixes.add(batch.bytes);
    }
  }

  if (cursor) {
    await read(Math.min(size, cursor.bytes), true);
    const { bytes, lines } = reader.cursor();
    if (size < cursor.bytes)
      findings.add(`${file}, line ${lines + 1}`, brokenFile(path, size, cursor.bytes));
    else if (bytes !== cursor.bytes || lines !== cursor.lines)
      findings.add(
        file,
        `line ${lines} ends at byte ${bytes}, and the cursor of the usage records says ` +
          `${cursor.lines} lines in ${cursor.bytes} bytes`,
      );
  }
  await read(Math.min(size, dueBytes), true);
  if (readsOn) await read(size, false);
  const { lines, bytes } = reader.cursor();
  const last = prefixes.finish(lines, size);
  const proof: SegmentProof = {
    file,
    lines,
    proved: last?.lines ?? 0,
    by: last?.by ?? null,
    torn_bytes: readsOn ? size - bytes : 0,
  };
  return { proof, reader };
}

/** Compares the first bytes of a segment with listings. */
interface PrefixCheck {
  add(bytes: Buffer): void;
  /** The segment has so many lines and bytes. Returns the last listing that it agrees with. */
  finish(lines: number, size: number): Listing | undefined;
}

function createPrefixCheck(
  file: string,
  listings: readonly Listing[],
  openings: Openings,
  findings: Findings,
): PrefixCheck {
  const waiting = [...listings];
  const hash = createHash("sha256");
  let at = 0;
  let good: Listing | undefined;
  let wrong: Listing | undefined;

  function check(listing: Listing): void {
    if (hash.copy().digest("hex") !== listing.sha256) wrong ??= listing;
    else if (!wrong) good = listing;
  }

  return {
    add(bytes) {
      let from = 0;
      for (let next = waiting[0]; next && next.bytes <= at + bytes.length; next = waiting[0]) {
        hash.update(bytes.subarray(from, next.bytes - at));
        from = next.bytes - at;
        check(next);
        waiting.shift();
      }
      hash.update(bytes.subarray(from));
      at += bytes.length;
    },
    finish(lines, size) {
      wrong ??= waiting[0];
      if (!wrong) return good;
      const moved = firstMoved(openings);
      const hints = [
        ...(size < wrong.bytes
          ? [`; it ends after line ${lines}, and was cut off or shortened`]
          : []),
        ...(moved === undefined ? [] : [`; line ${moved} began before the one above it`]),
      ];
      findings.add(
        `${file}, lines ${(good?.lines ?? 0) + 1} to ${wrong.lines}`,
        `are not the bytes that ${wrong.by} has: they were changed, removed, inserted or ` +
          `moved${hints.join("")}`,
      );
      return good;
    },
  };
}

/** The first open line whose request began before that of the open line above it. */
function firstMoved(openings: Openings): number | undefined {
  const lines = [...openings].filter(([line]) => line > 0).sort(([one], [other]) => one - other);
  return lines.find(([, began], index) => index > 0 && began < lines[index - 1]![1])?.[0];
}
