// One case of scripts/fuzz.ts: a connection, the bytes in their packets, and what the judge says of
// what came back.
import net from "node:net";
import type { Case } from "./cases.ts";
import { judge } from "./judge.ts";

/**
 * Connections that the gateway keeps open, because all that was asked is answered, are ended by us
 * after so long. A request that is not whole has had its 408 by then.
 */
const IDLE_MS = 4_000;
/** So long a client that leaves waits for the bytes after which it wants to. */
const PATIENCE_MS = 100;
/** No connection may last longer. */
const DEADLINE_MS = 20_000;
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
  { pieces, ending, patience, expected }: Case,
  idleMs = IDLE_MS,
  deadlineMs = DEADLINE_MS,
): Promise<Played> {
  return new Promise((resolve) => {
    const received: Buffer[] = [];
    let [size, idle, reset, fault] = [0, false, false, ""];
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    const leave = () => ending === "leave" && size >= patience && socket.resetAndDestroy();
    const idleTimer =
      ending === "leave"
        ? setTimeout(() => socket.resetAndDestroy(), PATIENCE_MS)
        : setTimeout(() => {
            idle = true;
            socket.end();
          }, idleMs);
    const deadline = setTimeout(() => {
      fault = `the connection is open after ${deadlineMs} ms`;
      socket.destroy();
    }, deadlineMs);
    socket.on("data", (data: Buffer) => {
      received.push(data);
      size += data.length;
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
      resolve(verdict());
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

    function verdict(): Played {
      // A reset can take with it what was under way: what the server closes on while more is
      // coming.
      const mayBeCut = ending !== "server" || reset;
      let end: Played["end"] = "answered";
      if (ending === "leave") end = "left by the client";
      else if (reset) end = "reset";
      else if (idle) end = "kept open";
      else if (size === 0) end = "closed without an answer";
      try {
        if (fault !== "") throw new Error(fault);
        const statuses = judge({
          sent: Buffer.concat(pieces),
          received: Buffer.concat(received),
          mayBeCut,
        });
        if (expected && !(reset && statuses.length === 0) && !expected.includes(statuses[0] ?? 0))
          throw new Error(`the first answer is ${statuses[0]}, not ${expected.join(" or ")}`);
        if (idle && statuses.length === 0) throw new Error(`no answer within ${idleMs} ms`);
        if (end === "closed without an answer" && ending === "server") throw new Error(end);
        return { statuses, end };
      } catch (error) {
        return { statuses: [], end, fault: (error as Error).message };
      }
    }
  });
}
