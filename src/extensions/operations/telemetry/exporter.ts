// Spans on their way to the collector, in batches. No request ever waits for it: what a slow or
// absent collector does not take is dropped, counted, and logged once a minute.
import type { Clock, Timer } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";

/** Spans in one request to the collector. */
export const BATCH = 512;
/** Spans that wait beside the batch that is being sent; some 1.5 KB each. */
export const MAX_QUEUED = 2_048;
/** A span waits so long for others, in milliseconds. */
export const DELAY_MS = 2_000;
/** How often a batch is sent again. */
export const MAX_RETRIES = 4;
/** Milliseconds before the first retry; twice as many before each further one. */
const BACKOFF_MS = 1_000;
/** The longest wait that a collector can ask for, in milliseconds. */
export const MAX_WAIT_MS = 600_000;
/** The time that the collector has for one batch, in milliseconds. */
export const SEND_MS = 10_000;
/** When the process ends, spans that are held have this time to be sent, in milliseconds. */
export const CLOSE_MS = 2_000;
/** The shortest time between two log lines about dropped spans, in milliseconds. */
export const REPORT_MS = 60_000;

/** The result of sending a batch. */
export type SendResult =
  /** The collector has taken it, all but `rejected` spans. */
  | { readonly kind: "sent"; readonly rejected: number }
  /** The collector will never take it. */
  | { readonly kind: "refused"; readonly detail: string }
  /** It may take it later. `afterMs` undefined: it does not say when. */
  | { readonly kind: "later"; readonly detail: string; readonly afterMs?: number | undefined };

/** Sends a batch. Never rejects. `signal` ends it. */
export type SpanSender = (spans: readonly string[], signal: AbortSignal) => Promise<SendResult>;

export interface ExporterOptions {
  /** Called for one batch at a time. */
  readonly send: SpanSender;
  /** Times batches, retries and deadlines. */
  readonly clock: Clock;
  /** Called for spans that were dropped, at most once a minute. */
  readonly diagnose: Diagnose;
}

/** Spans since the start. */
export interface Exported {
  /** Spans that the collector has taken. */
  readonly sent: number;
  /** Spans that were dropped, for whatever reason. */
  readonly dropped: number;
}

export interface Exporter {
  /** Takes a span, as JSON. Returns at once. */
  add(span: string): void;
  /** The counts so far, for the metrics. */
  report(): Exported;
  /** Sends what is held. Resolves after CLOSE_MS at the latest; what is left then is dropped. */
  close(): Promise<void>;
}

export function createExporter({ send, clock, diagnose }: ExporterOptions): Exporter {
  const queue: string[] = [];
  const drops = createDropLog(clock, diagnose);
  const ended = new AbortController();
  let sent = 0;
  let timer: Timer | undefined;
  let running: Promise<void> | undefined;
  let isClosing = false;
  /** Ends the wait before a retry. */
  let wake: (() => void) | undefined;

  function wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const pause = clock.after(ms, resolve);
      wake = () => {
        pause.cancel();
        resolve();
      };
    });
  }

  async function sendOnce(spans: readonly string[]): Promise<SendResult> {
    const limit = new AbortController();
    const deadline = clock.after(SEND_MS, () => limit.abort());
    try {
      return await send(spans, AbortSignal.any([limit.signal, ended.signal]));
    } finally {
      deadline.cancel();
    }
  }

  async function deliver(spans: readonly string[]): Promise<void> {
    for (let retries = 0; ; retries += 1) {
      const result = await sendOnce(spans);
      if (result.kind === "sent") {
        const rejected = Math.min(result.rejected, spans.length);
        sent += spans.length - rejected;
        if (rejected > 0) drops.add(rejected, "the collector rejected them");
        return;
      }
      if (result.kind === "refused" || isClosing || retries >= MAX_RETRIES) {
        drops.add(spans.length, result.detail);
        return;
      }
      await wait(waitBefore(retries, result.afterMs));
    }
  }

  /** Sends until fewer than `least` spans wait. */
  async function run(least: number): Promise<void> {
    timer?.cancel();
    timer = undefined;
    do await deliver(queue.splice(0, BATCH));
    while (queue.length >= (isClosing ? 1 : least) && !ended.signal.aborted);
    running = undefined;
    if (queue.length > 0 && !isClosing) timer = clock.after(DELAY_MS, start);
  }

  function start(): void {
    running ??= run(BATCH);
  }

  return {
    add(span) {
      if (isClosing) drops.add(1, "the gateway was closing");
      else if (queue.length >= MAX_QUEUED) drops.add(1, "the collector is too slow");
      else {
        queue.push(span);
        if (running) return;
        if (queue.length >= BATCH) start();
        else timer ??= clock.after(DELAY_MS, start);
      }
    },
    report: () => ({ sent, dropped: drops.total() }),
    async close() {
      isClosing = true;
      const deadline = clock.after(CLOSE_MS, () => ended.abort());
      wake?.();
      await running;
      if (queue.length > 0 && !ended.signal.aborted) await run(1);
      deadline.cancel();
      timer?.cancel();
      if (queue.length > 0) drops.add(queue.length, "the gateway has closed");
      drops.close();
    },
  };
}

/** Milliseconds before a batch is sent again. */
function waitBefore(retries: number, afterMs: number | undefined): number {
  if (afterMs !== undefined) return Math.min(afterMs, MAX_WAIT_MS);
  return BACKOFF_MS * 2 ** retries * (0.5 + Math.random() / 2);
}

interface DropLog {
  add(spans: number, detail: string): void;
  total(): number;
  /** Logs the dropped spans that have not been logged. */
  close(): void;
}

/** Counts dropped spans and logs them: at once, then every REPORT_MS. */
function createDropLog(clock: Clock, diagnose: Diagnose): DropLog {
  let total = 0;
  let unreported = 0;
  let reason = "";
  let timer: Timer | undefined;

  function reportDropped(): void {
    timer = undefined;
    if (unreported === 0) return;
    diagnose({ event: "telemetry_dropped", level: "warn", spans: unreported, detail: reason });
    unreported = 0;
    timer = clock.after(REPORT_MS, reportDropped);
  }

  return {
    add(spans, detail) {
      total += spans;
      unreported += spans;
      reason = detail;
      if (!timer) reportDropped();
    },
    total: () => total,
    close() {
      timer?.cancel();
      reportDropped();
      timer?.cancel();
    },
  };
}
