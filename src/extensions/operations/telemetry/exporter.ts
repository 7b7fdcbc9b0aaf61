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

export function createExporter(options: ExporterOptions) {
  const { clock, diagnose } = options;
  const queue: string[] = [];
  const drops = createDropLog(clock, diagnose);
  const delivery = createDelivery(options);
  let sent = 0;
  let timer: Timer | undefined;
  let running: Promise<void> | undefined;
  let isClosing = false;

  /** Sends until no whole batch waits, or at the end no span. */
  async function run(): Promise<void> {
    timer?.cancel();
    timer = undefined;
    do {
      const batch = queue.splice(0, BATCH);
      const { dropped, detail } = await delivery.deliver(batch);
      sent += batch.length - dropped;
      if (dropped > 0) drops.add(dropped, detail);
    } while (queue.length >= (isClosing ? 1 : BATCH) && !delivery.ended.aborted);
    running = undefined;
    if (queue.length > 0 && !isClosing) timer = clock.after(DELAY_MS, start);
  }

  function start(): void {
    running ??= run();
  }

  return {
    /** Takes a span, as JSON. Returns at once. */
    add(span: string): void {
      if (isClosing) drops.add(1, "the gateway was closing");
      else if (queue.length >= MAX_QUEUED) drops.add(1, "the collector is too slow");
      else {
        queue.push(span);
        if (running) return;
        if (queue.length >= BATCH) start();
        else timer ??= clock.after(DELAY_MS, start);
      }
    },
    /** The counts so far, for the metrics. */
    report: (): Exported => ({ sent, dropped: drops.total() }),
    /** Sends what is held. Resolves after CLOSE_MS at the latest; what is left then is dropped. */
    async close(): Promise<void> {
      isClosing = true;
      const deadline = delivery.endSoon();
      await running;
      if (queue.length > 0 && !delivery.ended.aborted) await run();
      deadline.cancel();
      timer?.cancel();
      if (queue.length > 0) drops.add(queue.length, "the gateway has closed");
      drops.close();
    },
  };
}

/** Sends batches, each again and again while the collector may take it later. */
function createDelivery({ send, clock }: ExporterOptions) {
  const ended = new AbortController();
  let isEnding = false;
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

  return {
    /** Aborted when nothing can be sent any more. */
    ended: ended.signal,
    /** Resolves with how many of the spans the collector has not taken, and why. */
    async deliver(spans: readonly string[]): Promise<{ dropped: number; detail: string }> {
      for (let retries = 0; ; retries += 1) {
        const result = await sendOnce(spans);
        if (result.kind === "sent") {
          const dropped = Math.min(result.rejected, spans.length);
          return { dropped, detail: "the collector rejected them" };
        }
        if (result.kind === "refused" || isEnding || retries >= MAX_RETRIES)
          return { dropped: spans.length, detail: result.detail };
        await wait(waitBefore(retries, result.afterMs));
      }
    },
    /** From now on nothing is retried. After CLOSE_MS, unless it is cancelled, sending ends. */
    endSoon(): Timer {
      isEnding = true;
      wake?.();
      return clock.after(CLOSE_MS, () => ended.abort());
    },
  };
}

/** Milliseconds before a batch is sent again. */
function waitBefore(retries: number, afterMs: number | undefined): number {
  if (afterMs !== undefined) return Math.min(afterMs, MAX_WAIT_MS);
  return BACKOFF_MS * 2 ** retries * (0.5 + Math.random() / 2);
}

/** Counts dropped spans and logs them: at once, then every REPORT_MS. */
function createDropLog(clock: Clock, diagnose: Diagnose) {
  let total = 0;
  let reported = 0;
  let reason = "";
  let timer: Timer | undefined;

  function report(): void {
    timer?.cancel();
    timer = undefined;
    if (reported === total) return;
    const spans = total - reported;
    diagnose({ event: "telemetry_dropped", level: "warn", spans, detail: reason });
    reported = total;
    timer = clock.after(REPORT_MS, report);
  }

  return {
    add(spans: number, detail: string): void {
      total += spans;
      reason = detail;
      if (!timer) report();
    },
    total: () => total,
    /** Logs the dropped spans that have not been logged. */
    close(): void {
      report();
      timer?.cancel();
    },
  };
}
