// Budgets with several processes: the first process has the accountant, and workers ask it. When a
// worker dies, its holds stay until the cost of its requests is read from the books. A request
// without a usage record costs nothing.
import { answerWorkers, callFirstProcess } from "../../scale/cluster/index.ts";
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
type Note = (readonly [token: string | undefined, outcome: Outcome | undefined])[];

/** The accountant of a worker. */
export function createRemoteAccountant(): Accountant {
  const first = callFirstProcess<Question, Note, Decision>(SUBJECT);
  /** Settlements to send to the first process at the end of this turn. */
  let note: Note = [];

  function send(): void {
    if (note.length > 0) first.notify(note);
    note = [];
  }

  return {
    async open() {
      await first.ask("open");
    },
    reserve: first.ask,
    settle(token, outcome) {
      if (note.length === 0) setImmediate(send);
      note.push([token, outcome]);
      // Release a hold before the client sees the end of the reply and sends its next request.
      if (token !== undefined) send();
    },
    figures: () => undefined,
    close() {
      send();
      first.close();
    },
  };
}

/** Answers the workers, if there are any. */
export function serveWorkers(host: Host): HostPart {
  /** The ids of workers, by the tokens of their requests that wait for a decision or hold. */
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
    const { token } = question;
    workers.set(token, worker);
    const decision = await accountant().reserve(question);
    if (!decision.offer) workers.delete(token);
    else if (!workers.has(token)) accountant().settle(token); // the worker has died in between
    return decision;
  }

  function onNote(note: Note): void {
    for (const [token = "", outcome] of note) {
      accountant().settle(token, outcome);
      workers.delete(token);
    }
  }

  function onExit(worker: number): void {
    const tokens = new Set([...workers.keys()].filter((token) => workers.get(token) === worker));
    for (const token of tokens) workers.delete(token);
    settleByBooks(tokens);
  }

  /** Releases the holds of a dead worker's requests, as soon as the books can be read. */
  async function settleByBooks(tokens: ReadonlySet<string>): Promise<void> {
    if (tokens.size === 0 || isClosed) return;
    const outcomes = await readBooks(host, (books) => readOutcomes(books, tokens)).catch(() => {
      host.clock.after(RETRY_MS, () => settleByBooks(tokens));
    });
    if (!outcomes) return;
    for (const token of tokens) accountant().settle(token, outcomes.get(token));
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
