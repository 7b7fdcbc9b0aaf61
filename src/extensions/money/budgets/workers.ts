// Budgets with several processes: the primary has the accountant, and workers ask it. When a
// worker dies, its holds stay until the cost of its requests is read from the books. A request
// without a usage record costs nothing.
import { answerWorkers, callPrimary } from "../../scale/cluster/index.ts";
import type { Host, HostPart } from "../../scale/installation/index.ts";
import { createAccountant } from "./accountant.ts";
import type { Accountant, Decision, ReserveRequest } from "./contracts.ts";
import { readOutcomes, readBooks, type Outcome } from "./read-books.ts";

/** Identifies the calls of this extension. */
const SUBJECT = "budgets";
/** Milliseconds between a failure to read the books and the next attempt. */
const RETRY_MS = 1_000;

/** A request to reserve. "open": open the accountant with the configuration in force. */
type Question = ReserveRequest | "open";

/** Settlements of requests: the arguments of Accountant.settle. */
type Note = (readonly [holdId: string | undefined, outcome: Outcome | undefined])[];

/** The accountant of a worker. */
export function createRemoteAccountant(): Accountant {
  const primary = callPrimary<Question, Note, Decision>(SUBJECT);
  /** Settlements to send to the primary at the end of this turn. */
  let note: Note = [];

  function send(): void {
    if (note.length > 0) primary.notify(note);
    note = [];
  }

  return {
    async open() {
      await primary.ask("open");
    },
    reserve: primary.ask,
    settle(holdId, outcome) {
      if (note.length === 0) setImmediate(send);
      note.push([holdId, outcome]);
      // Release a hold before the client sees the end of the reply and sends its next request.
      if (holdId !== undefined) send();
    },
    figures: () => undefined,
    close() {
      send();
      primary.close();
    },
  };
}

/** Answers the workers, if there are any. */
export function serveWorkers(host: Host): HostPart {
  /** The ids of workers, by the ids of the holds that they ask for or have. */
  const workers = new Map<string, number>();
  let created: Accountant | undefined;
  let isClosed = false;

  function accountant(): Accountant {
    created ??= createAccountant(host);
    return created;
  }

  async function answer(question: Question, worker: number): Promise<Decision> {
    if (question === "open") {
      await accountant().open(host.current());
      return {}; // an answer is required; the worker ignores it
    }
    const { holdId } = question;
    workers.set(holdId, worker);
    const decision = await accountant().reserve(question);
    if (!decision.offer) workers.delete(holdId);
    else if (!workers.has(holdId)) accountant().settle(holdId); // the worker has died in between
    return decision;
  }

  function onNote(note: Note): void {
    for (const [holdId = "", outcome] of note) {
      accountant().settle(holdId, outcome);
      workers.delete(holdId);
    }
  }

  function onExit(worker: number): void {
    const holdIds = new Set([...workers.keys()].filter((holdId) => workers.get(holdId) === worker));
    for (const holdId of holdIds) workers.delete(holdId);
    settleByBooks(holdIds);
  }

  /** Releases the holds of a dead worker's requests, as soon as the books can be read. */
  async function settleByBooks(holdIds: ReadonlySet<string>): Promise<void> {
    if (holdIds.size === 0 || isClosed) return;
    const outcomes = await readBooks(host, (books) => readOutcomes(books, holdIds)).catch(() => {
      host.clock.after(RETRY_MS, () => settleByBooks(holdIds));
    });
    if (!outcomes) return;
    for (const holdId of holdIds) accountant().settle(holdId, outcomes.get(holdId));
  }

  const stop = answerWorkers<Question, Note, Decision>(SUBJECT, { answer, onNote, onExit });
  return {
    report: () => created?.figures(),
    close() {
      isClosed = true;
      stop();
      return created?.close();
    },
  };
}
