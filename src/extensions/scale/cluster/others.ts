// What a worker tells all the others, by way of the first process: facts that are worth knowing
// and harmless to miss.
import cluster, { type Worker } from "node:cluster";

/** Other messages on the channel of Node have no `told`. */
interface Told {
  /** The subject. */
  readonly told?: string;
  readonly note: unknown;
}

/** Passes on what workers tell. Returns what ends that. */
export function relayToOthers(): () => void {
  function pass(from: Worker, message: Told): void {
    if (message.told === undefined) return;
    for (const worker of Object.values(cluster.workers!))
      if (worker !== from && worker?.isConnected()) worker.send(message);
  }
  cluster.on("message", pass);
  return () => cluster.off("message", pass);
}

/** How a process tells the others about one subject. */
export interface Others<Note> {
  /** Does nothing where there is one process. */
  tell(note: Note): void;
  /** Hears nothing any more. */
  close(): void;
}

/** `hear`: gets what the other workers tell about the subject. */
export function talkToOthers<Note>(subject: string, hear: (note: Note) => void): Others<Note> {
  const { worker } = cluster;
  if (!worker) return { tell: () => undefined, close: () => undefined };

  function listen({ told, note }: Told): void {
    if (told === subject) hear(note as Note);
  }
  worker.on("message", listen);
  return {
    tell(note) {
      const message: Told = { told: subject, note };
      if (worker.isConnected()) worker.send(message);
    },
    close: () => worker.off("message", listen),
  };
}
