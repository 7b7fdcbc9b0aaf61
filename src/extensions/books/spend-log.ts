// The spend log: append-only segments `spend/YYYY-MM-DD.NNNN.jsonl`, each written by one process. All lines of one turn of the event
// loop leave in one write and are with the operating system then, so kill -9 loses nothing, and a power failure at most the second
// since the last fsync. DESIGN.md "Files under data_dir". Both lines of a request stand in one segment, which so tells what a dead
// process left unsettled (sync.ts). Beside a segment that is written stand its socket (files.ts) and an empty file, taken away
// when all in it is settled. While nothing can be written (a full disk), requests are refused before a provider is called, and replies
// on their way wait with their last byte until their line is written; a write that was cut short goes on where it stopped.
import {
  closeSync,
  existsSync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
  type Dirent,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { setImmediate as turnEnd } from "node:timers/promises";
import { promisify } from "node:util";
import type { Diagnose } from "../../core/diagnose.ts";
import { ValidationError } from "../../core/schema/checker.ts";
import { ledgerUnavailable } from "../../core/ledger/ledger.ts";
import type { ApiError } from "../../core/openai/errors.ts";
import { randomHex } from "../../core/ids.ts";
import { abandon, touch, writeMark } from "./claims.ts";
import { acquireSocketLock, inodeOf, isLockHeld, gatewayInstanceId, syncToDisk } from "./files.ts";
import type { OpenRecord, SettleRecord } from "./records.ts";
import { carryOver, putBack, type PutBack } from "./segment-restore.ts";

const TICK_MS = 1_000; // how often the log is brought to the disk, begins another segment if it is time, or finds out that it can write again
const ROOM = Buffer.alloc(64 * 1024, " "); // what must fit on the disk before requests are taken again
const LAST_SETTLES_MS = 2_000; // how long `close` waits for requests that have just ended to be settled

/** What in the segments' folder is named like a segment, oldest first: the segments, and what has such a name and is no regular file. */
export function namedAsSegments(dir: string): {
  readonly segments: string[];
  readonly strangers: string[];
} {
  const names = readdirSync(dir, { withFileTypes: true })
    .filter(({ name }) => /^\d{4}-\d\d-\d\d\.\d{4,}\.jsonl$/.test(name))
    .map((entry) => ({ name: entry.name, isFile: entry.isFile() || isLinkToFile(dir, entry) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    segments: names.filter(({ isFile }) => isFile).map(({ name }) => name),
    strangers: names.filter(({ isFile }) => !isFile).map(({ name }) => name),
  };
}

function isLinkToFile(dir: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return false;
  try {
    return statSync(join(dir, entry.name)).isFile();
  } catch {
    return false; // it leads nowhere, or to itself
  }
}

/** Oldest first. */
export const segmentsIn = (dir: string): string[] => namedAsSegments(dir).segments;

/** What is told of everything that is named like a segment and cannot be one. */
export const strangersIn = (dir: string): string[] =>
  namedAsSegments(dir).strangers.map(
    (name) =>
      `${join(dir, name)} is named like a segment of the spend log, but is no regular file: it cannot be read, and should be moved away`,
  );

/** The socket of the process that writes a segment, and the mark of one that may have something unsettled. */
export const holderOf = (segment: string): string => segment.replace(/jsonl$/, "sock");
export const unclosedOf = (segment: string): string => segment.replace(/jsonl$/, "open");

/** `dir` is the segments' folder; a segment of `segmentBytes` is followed by another; `now` is the wall clock. */
export function createSpendLog(
  dir: string,
  segmentBytes: number,
  now: () => number,
  diagnose: Diagnose,
) {
  /** The last one is written; those before it still have something unsettled. */
  let segments: Segment[] = [];
  let fault: string | null = "not started";
  let timer: NodeJS.Timeout | undefined;
  let ticking: Promise<void> | undefined;
  let closing = false;
  let gatewayId: string | undefined;
  const today = () => new Date(now()).toISOString().slice(0, 10);

  /** The 503 of whoever is to be told. */
  function failed(error: unknown): ApiError {
    const { message } = error as Error;
    if (fault === null || !timer)
      diagnose({
        event: "spend_log_failed",
        level: "error",
        detail: `requests are refused until it can be written: ${message}`,
      });
    fault = message;
    return ledgerUnavailable(error);
  }

  /** Makes the folder, and gives a data_dir whose gateway-id was deleted the one that it had: the ids of its requests begin with it. */
  function prepareFolder(): void {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    gatewayId = gatewayInstanceId(dirname(dir), gatewayId);
  }

  /** Claims the next free name of a segment, with its socket and its mark. */
  async function reserve(): Promise<Reserved> {
    prepareFolder();
    const day = today();
    const names = [...readdirSync(dir), ...segments.map(({ name }) => name)]; // these stay ours, even if somebody has emptied the folder
    const taken = names.flatMap((name) =>
      name.startsWith(day) ? [Number(name.split(".")[1])] : [],
    );
    for (let number = Math.max(0, ...taken) + 1; ; number += 1) {
      const name = `${day}.${String(number).padStart(4, "0")}.jsonl`;
      const release = await acquireSocketLock(join(dir, holderOf(name)));
      if (!release) continue; // another process was quicker
      try {
        writeMark(unclosedOf(join(dir, name)));
        await syncToDisk(dir); // or a power failure might leave the segment without its mark
        return { path: join(dir, name), release };
      } catch (error) {
        release();
        throw error;
      }
    }
  }

  async function begin(): Promise<Segment> {
    const { path, release } = await reserve();
    try {
      return openSegment(path, release, failed);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Puts back a segment that was deleted, or replaced by a copy, and says so. */
  async function restore(segment: Segment): Promise<void> {
    if (!segment.lost()) return;
    prepareFolder();
    const { name } = segment;
    const overwritten = segment.overwritten();
    if (overwritten > 0) {
      diagnose({
        event: "spend_segment_overwritten",
        level: "error",
        segment: name,
        bytes: overwritten,
        detail:
          "it was overwritten in its place while the gateway wrote it: what was cut off cannot be put back. Stop the gateway before data_dir is restored",
      });
      return;
    }
    const done = await segment.restore(reserve);
    await syncToDisk(dir);
    diagnose({
      event: "spend_segment_restored",
      level: "error",
      segment: name,
      ...(segment.name !== name && { now: segment.name }),
      bytes: done.bytes,
      lines: done.lines,
      detail: `it was deleted or replaced while the gateway wrote it: ${done.outcome}. What other processes wrote, or earlier segments held, cannot be put back`,
    });
  }

  /** Says that the socket or the mark of a segment was deleted, which other processes go by, and is there again. */
  const claimLost = (name: string) =>
    diagnose({
      event: "spend_log_claim_lost",
      level: "warn",
      segment: name,
      detail: "its .sock or .open file was deleted while the gateway wrote it; it is there again",
    });

  async function tick(): Promise<void> {
    try {
      for (const segment of segments) await restore(segment);
      const current = segments.at(-1);
      if (!current || current.size >= segmentBytes || !current.name.startsWith(today()))
        segments.push(await begin());
      if (fault !== null) {
        segments.forEach((segment) => {
          segment.retry();
        });
        if (timer) diagnose({ event: "spend_log_recovered", level: "info" });
        fault = null;
      }
      for (const segment of segments) {
        if (!segment.lost() && (await segment.renewClaim())) claimLost(segment.name);
      }
      await Promise.all(segments.map((segment) => segment.sync()));
      const spent = segments.slice(0, -1).filter((segment) => segment.unsettled === 0);
      for (const segment of spent) {
        await restore(segment);
        segments = segments.filter((each) => each !== segment);
        segment.close();
      }
    } catch (error) {
      if (error instanceof ValidationError) throw error; // no data_dir that could ever be used
      failed(error);
    }
  }

  const tickOnce = (): Promise<void> => (ticking ??= tick().finally(() => (ticking = undefined)));

  return {
    /** Opens the first segment. Where that is impossible for the time being the log is in fault, and tries again. */
    async start(): Promise<void> {
      await tick();
      timer = setInterval(tickOnce, TICK_MS).unref();
    },
    /** Puts back segments that were deleted or replaced, before somebody reads what stands there now. */
    async restore(): Promise<void> {
      if (closing) return;
      if (segments.some((segment) => segment.lost())) await tickOnce();
      if (gatewayId !== undefined && existsSync(dir)) prepareFolder();
    },
    /** The open line of a request, to be settled whatever comes of it. Throws the 503 while the log is in fault. */
    open({
      time,
      gateway_request_id,
      account,
      key_id,
      model_requested,
      stream,
    }: Omit<OpenRecord, "type" | "spend_id">) {
      const current = segments.at(-1);
      if (fault !== null || !current) throw ledgerUnavailable();
      return current.open({
        type: "open",
        spend_id: `sp_${gatewayId?.slice(0, 8)}${randomHex(12)}`,
        time,
        gateway_request_id,
        account,
        key_id,
        model_requested,
        stream,
      });
    },
    /** What keeps the log from being written; null: nothing. */
    fault: () => fault,
    async close(): Promise<void> {
      closing = true; // no other tick from here on
      clearInterval(timer);
      await ticking;
      const late = performance.now() + LAST_SETTLES_MS;
      while (segments.some((segment) => segment.unsettled > 0) && performance.now() < late)
        await turnEnd();
      for (const segment of segments.splice(0)) {
        if (segment.size > 0 || segment.unsettled > 0) await restore(segment).catch(failed);
        segment.close();
      }
    },
  };
}

/** A name that no other process takes. */
interface Reserved {
  readonly path: string;
  readonly release: () => void;
}

type Segment = ReturnType<typeof openSegment>;
/** `release` gives up the socket; `failed` is told of a write that did not succeed. */
function openSegment(
  initialPath: string,
  initialRelease: () => void,
  failed: (error: unknown) => ApiError,
) {
  let path = initialPath;
  let fd = openSync(path, "ax+", 0o600);
  /** The segment's deleted file, once it was put back: it goes on to have all lines, for the case that a program which is still
   * restoring the folder overwrites what was put back. */
  let spare: number | undefined;
  /** What the file at the path has at least, in bytes. */
  let expected = 0;
  let release = initialRelease;
  let socket = inodeOf(holderOf(path));
  let synced = 0;
  let waiting = ""; // the lines of this turn
  let unwritten: Buffer = Buffer.alloc(0); // what the disk did not take
  let turn: Promise<void> | undefined;
  const held: (() => void)[] = []; // replies that wait for the disk

  function dropSpare(): void {
    if (spare !== undefined) closeSync(spare);
    spare = undefined;
  }
  function writeSpare(bytes: Buffer): void {
    if (spare === undefined) return;
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(spare, bytes, at);
    } catch {
      dropSpare(); // it would lack something; the segment itself has all
    }
  }

  /** Makes sure that this process's socket stands beside the segment; false if another process answers there. */
  async function claimAgain(): Promise<boolean> {
    const holder = holderOf(path);
    if (socket === undefined || inodeOf(holder) !== socket) {
      if (inodeOf(holder) !== undefined && !(await isLockHeld(holder)))
        rmSync(holder, { force: true }); // a copy of a socket answers nobody
      const again = await acquireSocketLock(holder);
      if (!again) return false;
      release();
      release = again;
      socket = inodeOf(holder);
    }
    writeMark(unclosedOf(path));
    return true;
  }

  /** Goes on in the file that has all lines again. */
  function goOnIn(done: PutBack): PutBack {
    if (spare === undefined && fstatSync(fd).nlink === 0) spare = fd;
    else closeSync(fd);
    fd = done.fd;
    expected = fstatSync(fd).size;
    synced = 0;
    return done;
  }

  /** Throws what the system said; `unwritten` then begins where the write stopped. */
  function write(): void {
    turn = undefined; // lines that come from here on wait for the next
    unwritten =
      unwritten.length === 0
        ? Buffer.from(waiting)
        : Buffer.concat([unwritten, Buffer.from(waiting)]);
    waiting = "";
    while (unwritten.length > 0) {
      const written = writeSync(fd, unwritten);
      segment.size += written;
      expected += written;
      writeSpare(unwritten.subarray(0, written));
      unwritten = unwritten.subarray(written);
    }
    for (const reply of held.splice(0)) reply();
  }

  /** Resolves when the line is written, with all others of this turn; rejects if they could not be. */
  function append(record: object): Promise<void> {
    waiting += `${JSON.stringify(record)}\n`;
    turn ??= turnEnd()
      .then(write)
      .catch((error) => Promise.reject(failed(error)));
    return turn;
  }

  const segment = {
    name: basename(path),
    /** Bytes that this process has written. */
    size: 0,
    /** Open lines without a settle line, also of those that are not written yet. */
    unsettled: 0,
    open(record: OpenRecord) {
      segment.unsettled += 1;
      /** Resolves when the line is with the operating system; rejects with the 503 if it could not be written. */
      const opened = append(record);
      /** Resolves when the line is with the operating system, however long that takes. */
      const settle = async (record: SettleRecord): Promise<void> => {
        await append(record).catch(() => new Promise<void>((resolve) => held.push(resolve)));
        segment.unsettled -= 1;
      };
      return { record, opened, settle };
    },
    /** It was deleted, replaced, overwritten, or moved with its folder, under our hands. */
    lost(): boolean {
      const there = statSync(path, { throwIfNoEntry: false });
      return there?.ino !== fstatSync(fd).ino || there.size < expected;
    },
    /** How much was cut off of a file of which there is no other, in bytes; from then on that is how it is. */
    overwritten(): number {
      const { size } = fstatSync(fd);
      if (spare !== undefined || size >= expected) return 0;
      const missing = expected - size;
      expected = size;
      return missing;
    },
    /** Puts all lines back, or writes them to the segment that `reserve` names, and goes on there. Between the reading of the lines
     * and the change of the file nothing else is done, so that no line is written to the old one meanwhile. */
    async restore(reserve: () => Promise<Reserved>): Promise<PutBack> {
      const source = () => spare ?? fd;
      if (await claimAgain()) {
        const done = putBack(path, source());
        if (done) return goOnIn(done);
        abandon(unclosedOf(path)); // whoever comes recovers what stands there
      }
      for (;;) {
        const next = await reserve();
        const done = carryOver(next.path, source());
        if (!done) {
          next.release();
          continue;
        }
        release();
        ({ path, release } = next);
        segment.name = basename(path);
        socket = inodeOf(holderOf(path));
        return goOnIn(done);
      }
    },
    /** Touches the mark; makes mark and socket anew if somebody has deleted them, and resolves with whether that was so. Where the
     * mark alone is left, it keeps other processes from taking this one for dead. */
    async renewClaim(): Promise<boolean> {
      const mark = unclosedOf(path);
      const hasMark = touch(mark);
      if (!hasMark) writeMark(mark);
      const holder = inodeOf(holderOf(path));
      if (holder !== undefined && holder === socket) return !hasMark;
      if (await claimAgain()) return true;
      release();
      release = () => undefined;
      socket = inodeOf(holderOf(path));
      return true;
    },
    /** Writes what could not be written, or finds out whether something could be; throws if not. */
    retry(): void {
      write();
      const { size } = fstatSync(fd); // not what this process has written: another may have taken it for dead, and added lines
      // Blanks without a line's end: whoever reads the file meanwhile sees an unfinished line.
      try {
        for (let at = 0; at < ROOM.length; ) at += writeSync(fd, ROOM, at);
      } finally {
        ftruncateSync(fd, size);
      }
    },
    async sync(): Promise<void> {
      const reached = segment.size;
      if (reached > synced) await promisify(fsync)(fd);
      synced = reached;
    },
    close(): void {
      try {
        write();
        fsyncSync(fd);
      } catch (error) {
        failed(error);
        for (const reply of held.splice(0)) reply(); // nobody is there any more to get them
      }
      dropSpare();
      closeSync(fd);
      fd = -1; // whoever comes now finds nothing to write to, least of all another file
      if (segment.unsettled === 0) rmSync(unclosedOf(path), { force: true });
      else abandon(unclosedOf(path));
      release();
    },
  };
  return segment;
}
