// Calls from workers to the first process, which holds the state that must be exact for all of
// them. What a worker asks in one turn of the event loop goes out in one message.
import cluster, { type Worker } from "node:cluster";

/** The first process's handlers for the calls of one subject. */
export interface Calls<Question, Note, Answer> {
  /** Answers a worker, by its id. Must not reject. Called in the order in which it has asked. */
  answer(question: Question, worker: number): Answer | Promise<Answer>;
  /** Hears what needs no answer. */
  hear(note: Note, worker: number): void;
  /** The process of a worker has ended, and everything that it has said was heard. */
  ended(worker: number): void;
}

/** How a worker calls the first process about one subject. */
export interface Caller<Question, Note, Answer> {
  /** Resolves with the answer. It never settles if the first process has ended. */
  ask(question: Question): Promise<Answer>;
  /** Sends a note at once, so that it arrives before messages that follow from it. */
  tell(note: Note): void;
  /** Ignores further answers. */
  close(): void;
}

/** From a worker. Other messages on the channel of Node have no `calls`. */
interface Called {
  /** The subject. */
  readonly calls?: string;
  /** Questions are numbered from this one on. */
  readonly first: number;
  readonly questions: readonly unknown[];
  readonly notes: readonly unknown[];
}

/** From the first process: the answers to all questions of one message. */
interface Answered {
  /** The subject. */
  readonly answers?: string;
  /** As in Called. */
  readonly first: number;
  readonly values: readonly unknown[];
}

/** Answers all workers that are started from now on. Returns what ends that. */
export function answerWorkers<Question, Note, Answer>(
  subject: string,
  calls: Calls<Question, Note, Answer>,
): () => void {
  const alive = new Set<number>();

  async function answer(worker: Worker, { first, questions }: Called): Promise<void> {
    if (!alive.has(worker.id)) return;
    const batch = questions as readonly Question[];
    const values = await Promise.all(batch.map((question) => calls.answer(question, worker.id)));
    const message: Answered = { answers: subject, first, values };
    if (worker.isConnected()) worker.send(message);
  }

  function hear(worker: Worker, message: Called): void {
    if (message.calls !== subject) return;
    for (const note of message.notes) calls.hear(note as Note, worker.id);
    // In a turn of its own: what another worker gave back before this was asked is read in the same
    // turn, in any order.
    if (message.questions.length > 0) setImmediate(answer, worker, message);
  }

  function follow({ id, process: childProcess }: Worker): void {
    alive.add(id);
    // By "close" the channel has been read to its end.
    childProcess.once("close", () => {
      alive.delete(id);
      calls.ended(id);
    });
  }

  cluster.setMaxListeners(0); // each subject has some
  cluster.on("fork", follow);
  cluster.on("message", hear);
  return () => {
    cluster.off("fork", follow);
    cluster.off("message", hear);
  };
}

/** To be used in a worker. There is one caller of a subject. */
export function callFirstProcess<Question, Note, Answer>(
  subject: string,
): Caller<Question, Note, Answer> {
  const { worker } = cluster as { worker: Worker };
  const waiting = new Map<number, (answer: Answer) => void>();
  let questions: Question[] = [];
  let next = 0;

  function send(notes: readonly Note[]): void {
    if (questions.length === 0 && notes.length === 0) return;
    const message: Called = { calls: subject, first: next - questions.length, questions, notes };
    questions = [];
    if (worker.isConnected()) worker.send(message);
  }

  function hear({ answers, first, values }: Answered): void {
    if (answers !== subject) return;
    for (const [index, value] of values.entries()) {
      waiting.get(first + index)?.(value as Answer);
      waiting.delete(first + index);
    }
  }

  worker.on("message", hear);
  return {
    ask(question) {
      if (questions.length === 0) setImmediate(send, []);
      questions.push(question);
      next += 1;
      const number = next - 1;
      return new Promise((resolve) => {
        waiting.set(number, resolve);
      });
    },
    tell: (note) => send([note]),
    close: () => worker.off("message", hear),
  };
}
