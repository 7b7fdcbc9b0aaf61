// Connections that were handed to a worker which has not acknowledged them. When the worker dies,
// node:cluster forgets these and leaves them open, so their clients would wait for ever.
//
// The handover is not a public interface of Node (lib/internal/cluster/round_robin_handle.js): a
// message `newconn` with the number `seq` takes the connection to the worker, and the worker's
// answer has that number as `ack`. If Node changes this, nothing is closed here, and a test fails.
import type { ChildProcess } from "node:child_process";
import { asObject } from "../../../core/schema/untrusted-json.ts";

interface Connection {
  /** Closes this process's handle. The worker's own handle, if it has one, stays open. */
  close(): void;
}

/**
 * Closes a worker's unacknowledged connections when it exits. Their clients see a closed
 * connection, as the worker's other clients do, and can retry.
 */
export function closeUnacknowledged(worker: ChildProcess): void {
  /** Unacknowledged connections by the numbers of their messages. Node hands over one at a time. */
  const unacknowledged = new Map<unknown, Connection>();
  const send = worker.send as (...args: unknown[]) => boolean;
  worker.send = (...args: unknown[]): boolean => {
    const [message, connection] = args;
    const { act, seq } = asObject(message);
    if (act === "newconn") unacknowledged.set(seq, connection as Connection);
    return send.apply(worker, args);
  };
  worker.on("internalMessage", (message) => {
    const { ack, cmd } = asObject(message);
    unacknowledged.delete(ack);
    // The worker had no file descriptor for a connection. Node would wait for the answer for ever,
    // and never hand the worker another one. With this answer it closes the connection.
    if (cmd === "NODE_HANDLE_NACK")
      for (const seq of [...unacknowledged.keys()])
        worker.emit("internalMessage", { cmd: "NODE_CLUSTER", ack: seq, accepted: true });
  });
  // Not at "disconnect", which is not emitted while a connection is being handed over.
  worker.once("exit", () => {
    for (const connection of unacknowledged.values()) connection.close();
  });
}
