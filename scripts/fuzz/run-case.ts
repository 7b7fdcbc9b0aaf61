// Runs one case of scripts/fuzz.ts: sends its bytes over a connection, and judges what comes back.

import net from "node:net";
import type { Case } from "./cases.ts";
import { judge } from "./judge.ts";

/** How long a client that will leave waits for bytes of the answer. */
const PATIENCE_MS = 100;
/**
 * After `idleMs` without bytes the client ends a connection on which an answer has begun.
 * `deadlineMs`: the longest time of a connection.
 */
const LIMITS = { idleMs: 4_000, deadlineMs: 60_000 };
/** A bound of the answers, more than ten times the longest one. */
const MAX_BYTES = 8 * 1024 * 1024;

/** The result of a case. */
export interface CaseResult {
  /** The statuses of the answers. */
  readonly statuses: readonly number[];
  /** What was received, up to a fault. */
  readonly text: string;
  /** What is wrong. Absent: nothing. */
  readonly fault?: string;
  /** How the connection ended: "answered", "reset" and others. */
  readonly end: string;
}

type CaseInput = Pick<Case, "pieces" | "ending" | "patience" | "expected">;

/** What happened on a connection. */
interface ConnectionRecord {
  readonly received: Buffer;
  /** Whether the client ended it because the gateway kept it open. */
  readonly idle: boolean;
  readonly reset: boolean;
  readonly fault: string | undefined;
}

/** Runs a case. The self-test, which cannot wait long, has `limits` of its own. */
export async function runCase(port: number, sent: CaseInput, limits = LIMITS): Promise<CaseResult> {
  const { pieces, ending, patience } = sent;
  const { idleMs, deadlineMs } = limits;
  const received: Buffer[] = [];
  let size = 0;
  let [idle, reset] = [false, false];
  let fault: string | undefined;
  const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
  const leave = () => ending === "leave" && size >= patience && socket.resetAndDestroy();
  /** Whether an answer other than `100 Continue` has begun. */
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
  /** Sends the pieces, each in a turn of the event loop of its own. */
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
  return resultOf(sent, { received: Buffer.concat(received), idle, reset, fault });
}

function resultOf({ pieces, ending, expected }: CaseInput, seen: ConnectionRecord): CaseResult {
  const { received, reset, idle, fault } = seen;
  const result = { statuses: [], text: received.toString("latin1"), end: endOf(ending, seen) };
  if (fault !== undefined) return { ...result, fault };
  try {
    const statuses = judge({
      sent: Buffer.concat(pieces),
      received,
      // A reset discards bytes that are on their way. The server causes one if it closes the
      // connection while more bytes arrive.
      mayBeCut: ending !== "server" || reset,
      mayBeBusy: expected?.includes(503) ?? false,
    });
    const [first = 0] = statuses;
    const isExpected = expected?.includes(first) ?? true;
    if (!isExpected && !(reset && first === 0))
      throw new Error(`the first answer is ${first}, not ${expected?.join(" or ")}`);
    if (idle && first === 0) throw new Error("no whole answer, and then nothing for too long");
    if (result.end === "closed without an answer" && ending === "server")
      throw new Error(result.end);
    return { ...result, statuses };
  } catch (error) {
    return { ...result, fault: (error as Error).message };
  }
}

function endOf(ending: CaseInput["ending"], { reset, idle, received }: ConnectionRecord): string {
  if (ending === "leave") return "left by the client";
  if (reset) return "reset";
  if (idle) return "kept open";
  return received.length === 0 ? "closed without an answer" : "answered";
}
