// Spans on their way to the collector: one bounded queue, sent in batches. A batch that the
// collector cannot take for the time being stays in the queue, and is sent again. No request ever
// waits for it: what a slow or absent collector does not take is dropped, counted, and logged.
import type { Clock, Timer } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";

/** Spans in one request to the collector. */
export const BATCH = 512;
/** Spans that are held, those of the batch that is being sent included; some 1.5 KB each. */
export const MAX_HELD = 2_560;
/** A span waits so long for others, in milliseconds. */
export const DELAY_MS = 2_000;
/** Milliseconds before a batch is sent again, if the collector does not say. */
export const RETRY_MS = 5_000;
/** The shortest and the longest wait that a collector can ask for, in milliseconds. */
export const MIN_WAIT_MS = 1_000;
export const MAX_WAIT_MS = 600_000;
/** The time that the collector has for one batch, in milliseconds. */
export const SEND_MS = 10_000;
/** When the process ends, spans that are held have this time to be sent, in milliseconds. */
export const CLOSE_MS = 2_000;
/** The shortest time between two log lines about dropped spans, in milliseconds. */
export const REPORT_MS = 60_000;

/** The result of sending a batch. */
export interface SendResult {
  /** Spans that the collector has not taken: 0, some, or Infinity. */
  readonly rejected: number;
  /** Why it has not, for the log. */
  readonly detail: string;
  /** It may take the same batch later. Absent: it will not. */
  readonly isTemporary?: boolean;
  /** Milliseconds after which it may. Undefined: it does not say. */
  readonly afterMs?: number | undefined;
}

/** Sends a batch. Never rejects. `signal` ends it. */
export type SpanSender = (spans: readonly string[], signal: AbortSignal) => Promise<SendResult>;

/**
 * `send` is called for one batch at a time; `clock` times batches, retries and deadlines;
 * `diagnose` is called for spans that were dropped, at most once a minute.
 */
export function createExporter(send: SpanSender, clock: Clock, diagnose: Diagnose) {
  const queue: string[] = [];
  const drops = createDropLog(clock, diagnose);
  /** Aborted when nothing can be sent any more. */
  const ended = new AbortController();
  /** Why spans are dropped for which there is no room. */
  let behind = "the collector is too slow";
  let sent = 0;
  let running: Promise<void> | undefined;
  let isClosing = false;
  let isFilling = false;
  /** Ends the pause, if there is one. */
  let hurry = (): void => undefined;

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = clock.after(ms, resolve);
      hurry = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** Sends until no span waits. */
  async function run(): Promise<void> {
    while (queue.length > 0 && !ended.signal.aborted) {
      isFilling = true;
      if (queue.length < BATCH && !isClosing) await pause(DELAY_MS);
      isFilling = false;
      const wait = await sendBatch();
      if (wait > 0) await pause(wait);
    }
    running = undefined;
  }

  /** Returns after how many milliseconds the same batch is to be sent again; 0: it is not. */
  async function sendBatch(): Promise<number> {
    const batch = queue.slice(0, BATCH);
    const limit = new AbortController();
    const deadline = clock.after(SEND_MS, () => limit.abort());
    const result = await send(batch, AbortSignal.any([limit.signal, ended.signal]));
    deadline.cancel();
    const { rejected, detail, isTemporary, afterMs = RETRY_MS } = result;
    if (isTemporary && !isClosing) {
      behind = detail;
      return Math.min(Math.max(afterMs, MIN_WAIT_MS), MAX_WAIT_MS);
    }
    queue.splice(0, batch.length);
    const dropped = Math.min(rejected, batch.length);
    sent += batch.length - dropped;
    drops.add(dropped, detail);
    return 0;
  }

  return {
    /** Takes a span, as JSON. Returns at once. */
    add(span: string): void {
      if (isClosing || queue.length >= MAX_HELD) {
        drops.add(1, isClosing ? "the gateway was closing" : behind);
        return;
      }
      queue.push(span);
      running ??= run();
      if (isFilling && queue.length === BATCH) hurry();
    },
    /** The spans since the start that the collector has taken, and those that were dropped. */
    report: () => ({ sent, dropped: drops.total() }),
    /** Sends each batch that is held once more. After CLOSE_MS what is left is dropped. */
    async close(): Promise<void> {
      isClosing = true;
      hurry();
      const deadline = clock.after(CLOSE_MS, () => ended.abort());
      await running;
      deadline.cancel();
      drops.add(queue.length, "the gateway has closed");
      drops.close();
    },
  };
}

/** Counts dropped spans and logs them: at once, then every REPORT_MS. */
function createDropLog(clock: Clock, diagnose: Diagnose) {
  let total = 0;
  let told = 0;
  let detail = "";
  /** Undefined: none was logged in the last REPORT_MS. */
  let timer: Timer | undefined;

  /** Logs the spans that have not been logged. */
  function tell(): void {
    timer?.cancel();
    timer = undefined;
    if (told === total) return;
    diagnose({ event: "telemetry_dropped", level: "warn", spans: total - told, detail });
    told = total;
    timer = clock.after(REPORT_MS, tell);
  }

  return {
    add(spans: number, reason: string): void {
      if (spans === 0) return;
      total += spans;
      detail = reason;
      if (!timer) tell();
    },
    total: () => total,
    /** Logs the spans that have not been logged, and ends the timer. */
    close(): void {
      tell();
      timer?.cancel();
    },
  };
}
