// One case of scripts/fuzz.ts: a connection, the bytes in their packets, and what the judge says of
// what came back.
import net from "node:net";
import type { Case } from "./cases.ts";
import { judge } from "./judge.ts";

/**
 * Connections that the gateway keeps open, because all that was asked is answered, are ended by us
 * after so long. Where nothing has come by then, the first answer is waited for.
 */
const IDLE_MS = 4_000;
/** So long a client that leaves waits for the bytes after which it wants to. */
const PATIENCE_MS = 100;
/** No connection may last longer. */
const DEADLINE_MS = 60_000;
/** A bound: the corpus has no answer of a tenth of it. */
const MAX_BYTES = 8 * 1024 * 1024;

export interface Played {
  readonly statuses: readonly number[];
  readonly fault?: string;
  readonly end:
    | "answered"
    | "closed without an answer"
    | "left by the client"
    | "reset"
    | "kept open";
}

export function play(
  port: number,
  sent: Case,
  idleMs = IDLE_MS,
  deadlineMs = DEADLINE_MS,
): Promise<Played> {
  const { pieces, ending, patience } = sent;
  return new Promise((resolve) => {
    const received: Buffer[] = [];
    let [size, idle, reset, fault] = [0, false, false, ""];
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    const leave = () => ending === "leave" && size >= patience && socket.resetAndDestroy();
    let late = false;
    const finish = () => {
      late = true;
      if (size === 0) return;
      idle = true;
      socket.end();
    };
    const idleTimer =
      ending === "leave"
        ? setTimeout(() => socket.resetAndDestroy(), PATIENCE_MS)
        : setTimeout(finish, idleMs);
    const deadline = setTimeout(() => {
      fault =
        size === 0
          ? `no answer within ${deadlineMs} ms`
          : `the connection is open after ${deadlineMs} ms`;
      socket.destroy();
    }, deadlineMs);
    socket.on("data", (data: Buffer) => {
      received.push(data);
      size += data.length;
      if (late && !idle) finish();
      if (size > MAX_BYTES) {
        fault = `more than ${MAX_BYTES} bytes of answer`;
        socket.destroy();
      }
      leave();
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      reset = true;
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") fault ||= `${error.code}`;
    });
    socket.on("close", () => {
      clearTimeout(idleTimer);
      clearTimeout(deadline);
      resolve(verdictOf(sent, { received, size, idle, reset, fault }, idleMs));
    });
    send(0);

    /** A turn of the event loop between two packets. */
    function send(index: number): void {
      const [piece] = pieces.slice(index);
      if (piece !== undefined) {
        socket.write(piece);
        setImmediate(send, index + 1);
      } else if (ending === "half") socket.end();
      else leave();
    }
  });
}

/** What happened on a connection. */
interface Seen {
  readonly received: readonly Buffer[];
  readonly size: number;
  readonly idle: boolean;
  readonly reset: boolean;
  /** Empty: none. */
  readonly fault: string;
}

function verdictOf(sent: Case, seen: Seen, idleMs: number): Played {
  const end = endOf(sent, seen);
  if (seen.fault !== "") return { statuses: [], end, fault: seen.fault };
  try {
    const statuses = judge({
      sent: Buffer.concat(sent.pieces),
      received: Buffer.concat(seen.received),
      // A reset can take with it what was under way: what the server closes on while more is
      // coming.
      mayBeCut: sent.ending !== "server" || seen.reset,
    });
    if (!(seen.reset && statuses.length === 0)) checkFirst(statuses, sent.expected);
    if (seen.idle && statuses.length === 0) throw new Error(`no answer within ${idleMs} ms`);
    if (end === "closed without an answer" && sent.ending === "server") throw new Error(end);
    return { statuses, end };
  } catch (error) {
    return { statuses: [], end, fault: (error as Error).message };
  }
}

/** How a connection has ended. */
function endOf({ ending }: Case, { reset, idle, size }: Seen): Played["end"] {
  if (ending === "leave") return "left by the client";
  if (reset) return "reset";
  if (idle) return "kept open";
  return size === 0 ? "closed without an answer" : "answered";
}

function checkFirst(statuses: readonly number[], expected: Case["expected"]): void {
  const first = statuses[0] ?? 0;
  if (expected && !expected.includes(first))
    throw new Error(`the first answer is ${statuses[0]}, not ${expected.join(" or ")}`);
}
