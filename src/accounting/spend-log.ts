// The spend log: append-only segments `spend/YYYY-MM-DD.NNNN.jsonl`, each written by one process. All lines of one turn of the event
// loop leave in one write and are with the operating system then, so kill -9 loses nothing, and a power failure at most the second
// since the last fsync. DESIGN.md "Files under data_dir". Both lines of a request stand in one segment, which so tells what a dead
// process left unsettled (sync.ts). Beside a segment that is written stand its socket (files.ts) and an empty file, taken away
// when all in it is settled. While nothing can be written (a full disk), requests are refused before a provider is called, and replies
// on their way wait with their last byte until their line is written; a write that was cut short goes on where it stopped.
import {
  closeSync,
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
import type { Diagnose } from "../http/log.ts";
import { CheckError } from "../protocol/checker.ts";
import { ApiError } from "../protocol/errors.ts";
import { randomHex } from "../protocol/ids.ts";
import { abandon, touch, writeMark } from "./claims.ts";
import { announce, markOf, syncToDisk } from "./files.ts";
import type { OpenRecord, SettleRecord } from "./records.ts";

const TICK_MS = 1_000; // how often the log is brought to the disk, begins another segment if it is time, or finds out that it can write again
const ROOM = Buffer.alloc(64 * 1024, " "); // what must fit on the disk before requests are taken again
const LAST_SETTLES_MS = 2_000; // how long `close` waits for requests that have just ended to be settled

/** Nobody may get an answer that cannot be billed. */
export const unwritable = (cause?: unknown) =>
  new ApiError("server_overloaded", "The gateway cannot take requests at the moment.", {
    headers: { "Retry-After": "1" },
    cause,
  });

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
  let mark = "";
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
    return unwritable(error);
  }

  async function begin(): Promise<Segment> {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    mark = markOf(dirname(dir)).slice(0, 8);
    const day = today();
    const names = [...readdirSync(dir), ...segments.map(({ name }) => name)]; // these stay ours, even if somebody has emptied the folder
    const taken = names.flatMap((name) =>
      name.startsWith(day) ? [Number(name.split(".")[1])] : [],
    );
    for (let number = Math.max(0, ...taken) + 1; ; number += 1) {
      const name = `${day}.${String(number).padStart(4, "0")}.jsonl`;
      const release = await announce(join(dir, holderOf(name)));
      if (!release) continue; // another process was quicker
      try {
        writeMark(unclosedOf(join(dir, name)));
        await syncToDisk(dir); // or a power failure might leave the segment without its mark
        return openSegment(join(dir, name), release, failed);
      } catch (error) {
        release();
        throw error;
      }
    }
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
      const current = segments.at(-1);
      if (
        !current ||
        current.lost() ||
        current.size >= segmentBytes ||
        !current.name.startsWith(today())
      )
        segments.push(await begin());
      if (fault !== null) {
        segments.forEach((segment) => segment.retry());
        if (timer) diagnose({ event: "spend_log_recovered", level: "info" });
        fault = null;
      }
      for (const segment of segments.filter((segment) => !segment.lost())) {
        if (await segment.renewClaim()) claimLost(segment.name);
      }
      await Promise.all(segments.map((segment) => segment.sync()));
      const spent = segments.slice(0, -1).filter((segment) => segment.unsettled === 0);
      segments = segments.filter((segment) => !spent.includes(segment));
      for (const segment of spent) segment.close();
    } catch (error) {
      if (error instanceof CheckError) throw error; // no data_dir that could ever be used
      failed(error);
    }
  }

  return {
    /** Opens the first segment. Where that is impossible for the time being the log is in fault, and tries again. */
    async start(): Promise<void> {
      await tick();
      timer = setInterval(
        () => (ticking ??= tick().finally(() => (ticking = undefined))),
        TICK_MS,
      ).unref();
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
      if (fault !== null || !current) throw unwritable();
      return current.open({
        type: "open",
        spend_id: `sp_${mark}${randomHex(12)}`,
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
      clearInterval(timer);
      await ticking;
      const late = performance.now() + LAST_SETTLES_MS;
      while (segments.some((segment) => segment.unsettled > 0) && performance.now() < late)
        await turnEnd();
      for (const segment of segments.splice(0)) segment.close();
    },
  };
}

type Segment = ReturnType<typeof openSegment>;
/** `release` gives up the socket; `failed` is told of a write that did not succeed. */
function openSegment(
  path: string,
  initialRelease: () => void,
  failed: (error: unknown) => ApiError,
) {
  let fd = openSync(path, "ax", 0o600);
  let release = initialRelease;
  const inodeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.ino;
  let socket = inodeOf(holderOf(path));
  let synced = 0;
  let waiting = ""; // the lines of this turn
  let unwritten: Buffer = Buffer.alloc(0); // what the disk did not take
  let turn: Promise<void> | undefined;
  let held: (() => void)[] = []; // replies that wait for the disk

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
      unwritten = unwritten.subarray(written);
    }
    for (const reply of held.splice(0)) reply();
  }

  /** Resolves when the line is written, with all others of this turn; rejects if they could not be. */
  function append(record: object): Promise<void> {
    waiting += `${JSON.stringify(record)}\n`;
    return (turn ??= turnEnd()
      .then(write)
      .catch((error) => Promise.reject(failed(error))));
  }

  const segment = {
    name: basename(path),
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
    /** It was deleted, or moved with its folder, under our hands. */
    lost: () => statSync(path, { throwIfNoEntry: false })?.ino !== fstatSync(fd).ino,
    /** Touches the mark; makes mark and socket anew if somebody has deleted them, and resolves with whether that was so. Where the
     * mark alone is left, it keeps other processes from taking this one for dead. */
    async renewClaim(): Promise<boolean> {
      const mark = unclosedOf(path);
      const hasMark = touch(mark);
      if (!hasMark) writeMark(mark);
      const holder = inodeOf(holderOf(path));
      if (holder !== undefined && holder === socket) return !hasMark;
      release();
      release = (await announce(holderOf(path))) ?? (() => undefined);
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
      closeSync(fd);
      fd = -1; // whoever comes now finds nothing to write to, least of all another file
      if (segment.unsettled === 0) rmSync(unclosedOf(path), { force: true });
      else abandon(unclosedOf(path));
      release();
    },
  };
  return segment;
}
