// One case of scripts/fuzz.ts: a connection, the bytes in their packets, and what the judge says of
// what came back.

import net from "node:net";
import type { Case } from "./cases.ts";
import { judge } from "./judge.ts";

/**
 * The gateway keeps a connection open when it has answered everything. We end it this long after
 * the last byte, but not before the first answer.
 */
const IDLE_MS = 4_000;
/** How long a client that is to leave waits for the bytes after which it leaves. */
const PATIENCE_MS = 100;
/** No connection may last longer. */
const DEADLINE_MS = 60_000;
/** A bound that is more than ten times the longest answer. */
const MAX_BYTES = 8 * 1024 * 1024;

export interface Played {
  readonly statuses: readonly number[];
  /** What came back; as much of it as came before a fault. */
  readonly text: string;
  readonly fault?: string;
  /** In words, how the connection has ended: "answered", "reset" and others. */
  readonly end: string;
}

type Sent = Pick<Case, "pieces" | "ending" | "patience" | "expected">;

/** What happened on a connection. */
interface Seen {
  readonly received: Buffer;
  /** We ended it, since it was kept open. */
  readonly idle: boolean;
  readonly reset: boolean;
  readonly fault: string | undefined;
}

export async function play(
  port: number,
  sent: Sent,
  idleMs = IDLE_MS,
  deadlineMs = DEADLINE_MS,
): Promise<Played> {
  const { pieces, ending, patience } = sent;
  const received: Buffer[] = [];
  let size = 0;
  let [idle, reset] = [false, false];
  let fault: string | undefined;
  const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
  const leave = () => ending === "leave" && size >= patience && socket.resetAndDestroy();
  /** An answer has begun that is not `100 Continue`. */
  const hasAnswer = () => /^HTTP\/1\.1 [2-5]/m.test(Buffer.concat(received).toString("latin1"));
  const finish = () => {
    if (!hasAnswer()) return idleTimer.refresh();
    idle = true;
    return socket.end();
  };
  const fail = (what: string) => {
    fault ??= what;
    socket.destroy();
  };
  const idleTimer: NodeJS.Timeout =
    ending === "leave"
      ? setTimeout(() => socket.resetAndDestroy(), PATIENCE_MS)
      : setTimeout(finish, idleMs);
  const deadline = setTimeout(() => {
    const what = size === 0 ? "no answer within" : "the connection is open after";
    fail(`${what} ${deadlineMs} ms`);
  }, deadlineMs);
  socket.on("data", (data: Buffer) => {
    received.push(data);
    size += data.length;
    if (ending !== "leave") idleTimer.refresh();
    if (size > MAX_BYTES) fail(`more than ${MAX_BYTES} bytes of answer`);
    leave();
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    reset = true;
    if (error.code !== "ECONNRESET" && error.code !== "EPIPE") fail(`${error.code}`);
  });
  /** A turn of the event loop between two packets. */
  const send = (index: number): void => {
    const piece = pieces[index];
    if (piece !== undefined && !idle) {
      socket.write(piece);
      setImmediate(send, index + 1);
    } else if (ending === "half") socket.end();
    else leave();
  };
  send(0);
  await new Promise((resolve) => socket.on("close", resolve));
  clearTimeout(idleTimer);
  clearTimeout(deadline);
  return verdictOf(sent, { received: Buffer.concat(received), idle, reset, fault });
}

function verdictOf({ pieces, ending, expected }: Sent, seen: Seen): Played {
  const { received, reset, idle, fault } = seen;
  const played = { statuses: [], text: received.toString("latin1"), end: endOf(ending, seen) };
  if (fault !== undefined) return { ...played, fault };
  try {
    const statuses = judge({
      sent: Buffer.concat(pieces),
      received,
      // A reset can take with it what was under way: what the server closes on while more is
      // coming.
      mayBeCut: ending !== "server" || reset,
      mayBeBusy: expected?.includes(503) ?? false,
    });
    const [first = 0] = statuses;
    const isExpected = expected?.includes(first) ?? true;
    if (!isExpected && !(reset && first === 0))
      throw new Error(`the first answer is ${first}, not ${expected?.join(" or ")}`);
    if (idle && first === 0) throw new Error("no whole answer, and then nothing for too long");
    if (played.end === "closed without an answer" && ending === "server")
      throw new Error(played.end);
    return { ...played, statuses };
  } catch (error) {
    return { ...played, fault: (error as Error).message };
  }
}

function endOf(ending: Sent["ending"], { reset, idle, received }: Seen): string {
  if (ending === "leave") return "left by the client";
  if (reset) return "reset";
  if (idle) return "kept open";
  return received.length === 0 ? "closed without an answer" : "answered";
}
