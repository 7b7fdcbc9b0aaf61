// The queue of spans for the collector: bounded, and sent in batches. A batch that fails
// temporarily stays in the queue and is sent again. No request waits for the collector: if it is
// too slow or absent, spans are dropped, counted and logged.
import type { Clock, Timer } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";

/** The most spans in one request to the collector. */
export const BATCH = 512;
/** The most spans in the queue, including the batch that is being sent; some 1.5 KB each. */
export const MAX_HELD = 2_560;
/** How long a span waits for others to fill its batch, in milliseconds. */
export const DELAY_MS = 2_000;
/** Milliseconds before a batch is sent again, unless the collector states a time. */
export const RETRY_MS = 5_000;
/** The shortest and the longest wait that a collector can ask for, in milliseconds. */
export const MIN_WAIT_MS = 1_000;
export const MAX_WAIT_MS = 600_000;
/** The timeout of one batch, in milliseconds. */
export const SEND_MS = 10_000;
/** How long the queue may still be sent when the gateway closes, in milliseconds. */
export const CLOSE_MS = 2_000;
/** The shortest time between two log lines about dropped spans, in milliseconds. */
export const REPORT_MS = 60_000;
/** The shortest time between two log lines about a batch that is sent again, in milliseconds. */
export const DELAYED_MS = 3_600_000;

/** The result of sending a batch. */
export interface SendResult {
  /** Spans that the collector did not accept: 0, some, or Infinity. */
  readonly rejected: number;
  /** The reason for the rejection, for the log. */
  readonly detail: string;
  /** Whether the same batch may be sent again. Absent: it may not. */
  readonly isTemporary?: boolean;
  /** The collector's Retry-After, in milliseconds. Undefined: it states none. */
  readonly afterMs?: number | undefined;
}

/** Sends a batch. Never rejects. `signal` aborts the request. */
export type SpanSender = (spans: readonly string[], signal: AbortSignal) => Promise<SendResult>;

/**
 * `send` is called for one batch at a time; `clock` times batches, retries and deadlines;
 * `diagnose` is called for spans that were dropped, at most once a minute.
 */
export function createExporter(send: SpanSender, clock: Clock, diagnose: Diagnose) {
  const queue: string[] = [];
  const drops = createDropLog(clock, diagnose);
  /**
   * Aborts the batch that is being sent. Each batch has its own controller: AbortSignal.any() with
   * a signal that lives as long as the process would leak some bytes for each batch (Node 22).
   */
  let sending = new AbortController();
  /** Whether CLOSE_MS have passed since close(). */
  let isOver = false;
  /** The reason to log for spans that are dropped because the queue is full. */
  let overflowReason = "the collector is too slow";
  /** When a delay was last told, by clock.monotonic(). */
  let toldAt = -Infinity;
  let sent = 0;
  let running: Promise<void> | undefined;
  let isClosing = false;
  let isFilling = false;
  /** Ends the current pause, if any. */
  let endPause = (): void => undefined;

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = clock.after(ms, resolve);
      endPause = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** Sends until the queue is empty. */
  async function run(): Promise<void> {
    while (queue.length > 0 && !isOver) {
      isFilling = true;
      if (queue.length < BATCH && !isClosing) await pause(DELAY_MS);
      isFilling = false;
      const wait = await sendBatch();
      if (wait > 0) await pause(wait);
    }
    running = undefined;
  }

  /** Returns the milliseconds until the same batch is sent again. 0: it was sent or dropped. */
  async function sendBatch(): Promise<number> {
    const batch = queue.slice(0, BATCH);
    sending = new AbortController();
    const deadline = clock.after(SEND_MS, () => sending.abort());
    const result = await send(batch, sending.signal);
    deadline.cancel();
    const { rejected, detail, isTemporary, afterMs = RETRY_MS } = result;
    if (isTemporary && !isClosing) {
      // Told long before the queue is full, which takes days if there are few requests.
      if (clock.monotonic() - toldAt >= DELAYED_MS) {
        toldAt = clock.monotonic();
        diagnose({ event: "telemetry_delayed", level: "warn", detail });
      }
      overflowReason = detail;
      return Math.min(Math.max(afterMs, MIN_WAIT_MS), MAX_WAIT_MS);
    }
    queue.splice(0, batch.length);
    const dropped = Math.min(rejected, batch.length);
    sent += batch.length - dropped;
    drops.add(dropped, detail);
    return 0;
  }

  return {
    /** Queues a span, as JSON. */
    add(span: string): void {
      if (isClosing || queue.length >= MAX_HELD) {
        drops.add(1, isClosing ? "the gateway was closing" : overflowReason);
        return;
      }
      queue.push(span);
      running ??= run();
      if (isFilling && queue.length === BATCH) endPause();
    },
    /** The numbers of spans sent and dropped since the start. */
    report: () => ({ sent, dropped: drops.total() }),
    /** Sends each queued batch once more. After CLOSE_MS the remaining spans are dropped. */
    async close(): Promise<void> {
      isClosing = true;
      endPause();
      const deadline = clock.after(CLOSE_MS, () => {
        isOver = true;
        sending.abort();
      });
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
  let logged = 0;
  let detail = "";
  /** Undefined: nothing was logged in the last REPORT_MS. */
  let timer: Timer | undefined;

  /** Logs the number of spans dropped since the last log line. */
  function logDrops(): void {
    timer?.cancel();
    timer = undefined;
    if (logged === total) return;
    diagnose({ event: "telemetry_dropped", level: "warn", spans: total - logged, detail });
    logged = total;
    timer = clock.after(REPORT_MS, logDrops);
  }

  return {
    add(spans: number, reason: string): void {
      if (spans === 0) return;
      total += spans;
      detail = reason;
      if (!timer) logDrops();
    },
    total: () => total,
    close(): void {
      logDrops();
      timer?.cancel();
    },
  };
}
