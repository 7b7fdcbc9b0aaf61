// Messages from one worker to all others, relayed by the primary. A message may be lost, so
// use this only for messages that may be missed without harm.
import cluster, { type Worker } from "node:cluster";

/** A message of this file. Other messages on Node's channel have no `broadcast`. */
interface BroadcastMessage {
  /** The subject. */
  readonly broadcast?: string;
  readonly note: unknown;
}

/** Relays the broadcasts of workers. Returns a function that stops relaying. */
export function relayBroadcasts(): () => void {
  function pass(from: Worker, message: BroadcastMessage): void {
    if (message.broadcast === undefined) return;
    for (const worker of Object.values(cluster.workers!))
      if (worker !== from && worker?.isConnected()) worker.send(message);
  }
  cluster.on("message", pass);
  return () => cluster.off("message", pass);
}

/** The broadcasts about one subject. */
export interface Channel<Note> {
  /** Sends to all other workers. Does nothing if there is only one process. */
  send(note: Note): void;
  /** Stops listening. */
  close(): void;
}

/** `onNote` is called with each broadcast of another worker. */
export function openBroadcast<Note>(subject: string, onNote: (note: Note) => void): Channel<Note> {
  const { worker } = cluster;
  if (!worker) return { send: () => undefined, close: () => undefined };

  function receive({ broadcast, note }: BroadcastMessage): void {
    if (broadcast === subject) onNote(note as Note);
  }
  worker.on("message", receive);
  return {
    send(note) {
      const message: BroadcastMessage = { broadcast: subject, note };
      if (worker.isConnected()) worker.send(message);
    },
    close: () => worker.off("message", receive),
  };
}
