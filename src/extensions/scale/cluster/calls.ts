// Calls from workers to the primary, which holds the state that must be exact across
// workers. A worker sends all questions of one turn of the event loop in one message. Answers that
// are ready at once return in one message too; a late answer does not delay the others.
import cluster, { type Worker } from "node:cluster";
import { setImmediate as nextTurn } from "node:timers/promises";

/** The primary's handlers for the calls of one subject. */
export interface CallHandlers<Question, Note, Answer> {
  /** Answers a question. Must not reject. Called in the order of the worker's questions. */
  answer(question: Question, worker: number): Answer | Promise<Answer>;
  /** Called with a message that needs no answer. */
  onNote(note: Note, worker: number): void;
  /** Called when a worker has ended, after all its messages. */
  onExit(worker: number): void;
}

/** The primary, as a worker calls it about one subject. */
export interface Primary<Question, Note, Answer> {
  /** Resolves with the answer. It never settles if the primary has ended. */
  ask(question: Question): Promise<Answer>;
  /** Sends a note at once, so that it arrives before messages that result from it. */
  notify(note: Note): void;
  /** Ignores further answers. */
  close(): void;
}

/** Sent by a worker. Other messages on Node's channel have no `calls`. */
interface Calls {
  /** The subject. */
  readonly calls?: string;
  /** The number of the first question; the others follow. */
  readonly first: number;
  readonly questions: readonly unknown[];
  readonly notes: readonly unknown[];
}

/** Sent by the primary: answers to questions of one Calls message. */
interface Answers {
  /** The subject. */
  readonly answers?: string;
  /** The numbers of the questions. */
  readonly numbers: readonly number[];
  /** The answers, in the same order. */
  readonly values: readonly unknown[];
}

/** Answers all workers that start from now on. Returns a function that stops answering. */
export function answerWorkers<Question, Note, Answer>(
  subject: string,
  handlers: CallHandlers<Question, Note, Answer>,
): () => void {
  const alive = new Set<number>();

  async function answer(worker: Worker, { first, questions }: Calls): Promise<void> {
    if (!alive.has(worker.id)) return;
    /** Answers that are not yet sent, by the numbers of their questions. */
    const ready = new Map<number, Answer>();
    let isLate = false;

    function sendReady(): void {
      const [numbers, values] = [[...ready.keys()], [...ready.values()]];
      const message: Answers = { answers: subject, numbers, values };
      ready.clear();
      if (numbers.length > 0 && worker.isConnected()) worker.send(message);
    }

    const answering = questions.map(async (question, index) => {
      const value = await handlers.answer(question as Question, worker.id);
      ready.set(first + index, value);
      if (isLate) sendReady();
    });
    const answered = Promise.all(answering);
    await Promise.race([answered, nextTurn()]);
    isLate = true;
    sendReady();
    await answered; // if a late answer rejects, the rejection must be seen
  }

  function receiveCalls(worker: Worker, message: Calls): void {
    if (message.calls !== subject) return;
    for (const note of message.notes) handlers.onNote(note as Note, worker.id);
    // Answer in the next turn: a slot that another worker released earlier may be in a message that
    // is read later in this turn.
    if (message.questions.length > 0) setImmediate(answer, worker, message);
  }

  function watchExit({ id, process: childProcess }: Worker): void {
    alive.add(id);
    // At "close", the channel has been read to its end.
    childProcess.once("close", () => {
      alive.delete(id);
      handlers.onExit(id);
    });
  }

  cluster.setMaxListeners(0); // each subject adds listeners
  cluster.on("fork", watchExit);
  cluster.on("message", receiveCalls);
  return () => {
    cluster.off("fork", watchExit);
    cluster.off("message", receiveCalls);
  };
}

/** Opens calls to the primary. For workers only, and once for each subject. */
export function callPrimary<Question, Note, Answer>(
  subject: string,
): Primary<Question, Note, Answer> {
  const { worker } = cluster as { worker: Worker };
  const waiting = new Map<number, (answer: Answer) => void>();
  let questions: Question[] = [];
  let next = 0;

  function send(notes: readonly Note[]): void {
    if (questions.length === 0 && notes.length === 0) return;
    const message: Calls = { calls: subject, first: next - questions.length, questions, notes };
    questions = [];
    if (worker.isConnected()) worker.send(message);
  }

  function receiveAnswers({ answers, numbers, values }: Answers): void {
    if (answers !== subject) return;
    for (const [index, number] of numbers.entries()) {
      waiting.get(number)?.(values[index] as Answer);
      waiting.delete(number);
    }
  }

  worker.on("message", receiveAnswers);
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
    notify: (note) => send([note]),
    close: () => worker.off("message", receiveAnswers),
  };
}
