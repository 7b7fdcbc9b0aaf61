// One worker as the first process sees it: its messages, its output, its end.
import cluster from "node:cluster";
import type { Report } from "../../../core/extension/report.ts";
import type { PrimaryMessage, WorkerMessage } from "./messages.ts";
import { readLines } from "./output.ts";
import { closeUntaken } from "./untaken.ts";

/** A worker that has not reported by then stands still, and is left out. In milliseconds. */
const LATE_MS = 2_000;

/** The signals that a terminal sends to all processes that were started from it. */
const GROUP_SIGNALS = ["SIGHUP", "SIGTERM", "SIGINT"];

/** How a worker ended. */
export interface ChildEnd {
  /** For the operator: "it ended with SIGKILL". */
  readonly detail: string;
  /** It had begun to listen. */
  readonly hadListened: boolean;
  /**
   * A signal to the whole process group ended it before Node ran the program: no fault of its own.
   */
  readonly wasUnborn: boolean;
}

/** The first process's reactions to the messages of a worker. */
export interface ChildEvents {
  /** It runs, and asks for the configuration in force. */
  born(child: Child): void;
  /** It listens, on an address that clients can use. */
  listening(address: string): void;
  /** It cannot listen. */
  failed(message: string): void;
  /** Its process has ended, and its output is closed. */
  ended(end: ChildEnd): void;
  /** It cannot be talked to. */
  unreachable(id: number, message: string): void;
  /** A line of its access log, and of its diagnostics. */
  accessLine(line: string): void;
  /** A line of its diagnostics, without its line end. */
  diagnosticsLine(line: string): void;
}

export interface Child {
  /** Counts the workers from 1. A worker that replaces another has a new one. */
  readonly id: number;
  /** Does nothing if the worker cannot be reached any more. */
  send(message: PrimaryMessage): void;
  /** Resolves with undefined if it ends, or does not answer in time. */
  report(): Promise<Report | undefined>;
  /** Resolves when the process has ended and its output has been read. */
  readonly closed: Promise<void>;
}

/** Starts a worker. */
export function startChild(events: ChildEvents): Child {
  const worker = cluster.fork();
  const { process: childProcess } = worker;
  closeUntaken(childProcess);
  /** Those who wait for a report. */
  const asking = new Set<(report: Report | undefined) => void>();
  let hasSpoken = false; // by then it listens for signals itself
  let hasListened = false;
  let hasEnded = false;

  const child: Child = {
    id: worker.id,
    send(message) {
      if (worker.isConnected()) worker.send(message);
    },
    report: () =>
      new Promise((resolve) => {
        const late = setTimeout(() => answer(undefined), LATE_MS);
        function answer(report: Report | undefined): void {
          clearTimeout(late);
          asking.delete(answer);
          resolve(report);
        }
        asking.add(answer);
        child.send({ report: true });
      }),
    closed: new Promise((resolve) => {
      childProcess.once("close", () => resolve());
    }),
  };

  function answerAll(report: Report | undefined): void {
    for (const answer of asking) answer(report);
  }

  /** Handles the messages in which a worker reports its own state. */
  function hearOfLife({ born, failed, listening }: WorkerMessage): void {
    hasSpoken = true;
    if (born) events.born(child);
    if (failed !== undefined) events.failed(failed);
    if (listening === undefined) return;
    hasListened = true;
    events.listening(listening);
  }

  worker.on("message", (message: WorkerMessage) => {
    if (hasEnded) return;
    hearOfLife(message);
    // A report that was asked for before its birth was not heard.
    if (message.born || message.report) answerAll(message.report);
  });
  worker.on("error", ({ message }) => events.unreachable(worker.id, message));
  readLines(childProcess.stdout!, events.accessLine);
  readLines(childProcess.stderr!, events.diagnosticsLine);
  childProcess.on("close", (code, signal) => {
    hasEnded = true;
    answerAll(undefined);
    events.ended({
      detail: `it ended with ${signal ?? code}`,
      hadListened: hasListened,
      wasUnborn: !hasSpoken && GROUP_SIGNALS.some((name) => name === signal),
    });
  });
  return child;
}
