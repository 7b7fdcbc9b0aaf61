// Spans on their way to the collector: one bounded queue, sent in batches. No request ever waits
// for it: what a slow or absent collector does not take is dropped, counted, and logged.
import type { Clock, Timer } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";

/** Spans in one request to the collector. */
export const BATCH = 512;
/** Spans that are held, those of the batch that is being sent included; some 1.5 KB each. */
export const MAX_HELD = 2_560;
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

export interface ExporterOptions {
  /** Called for one batch at a time. */
  readonly send: SpanSender;
  /** Times batches, retries and deadlines. */
  readonly clock: Clock;
  /** Called for spans that were dropped, at most once a minute. */
  readonly diagnose: Diagnose;
}

export function createExporter(options: ExporterOptions) {
  const queue: string[] = [];
  const drops = createDropLog(options.clock, options.diagnose);
  const delivery = createDelivery(options);
  let sent = 0;
  /** Spans of the batch that is being sent. */
  let sending = 0;
  let running: Promise<void> | undefined;
  let isClosing = false;
  let isFilling = false;

  /** Sends until no span waits. */
  async function run(): Promise<void> {
    while (queue.length > 0 && !delivery.ended.aborted) {
      isFilling = true;
      if (queue.length < BATCH && !isClosing) await delivery.pause(DELAY_MS);
      isFilling = false;
      const batch = queue.splice(0, BATCH);
      sending = batch.length;
      const { rejected, detail } = await delivery.deliver(batch);
      sending = 0;
      const dropped = Math.min(rejected, batch.length);
      sent += batch.length - dropped;
      drops.add(dropped, detail);
    }
    running = undefined;
  }

  return {
    /** Takes a span, as JSON. Returns at once. */
    add(span: string): void {
      if (isClosing || queue.length + sending >= MAX_HELD) {
        drops.add(1, isClosing ? "the gateway was closing" : "the collector is too slow");
        return;
      }
      queue.push(span);
      running ??= run();
      if (isFilling && queue.length === BATCH) delivery.hurry();
    },
    /** The spans since the start that the collector has taken, and those that were dropped. */
    report: () => ({ sent, dropped: drops.total() }),
    /** Sends each batch that is held once more. After CLOSE_MS what is left is dropped. */
    async close(): Promise<void> {
      isClosing = true;
      const deadline = delivery.endSoon();
      await running;
      deadline.cancel();
      drops.add(queue.length, "the gateway has closed");
      drops.close();
    },
  };
}

/** Sends batches, each again and again while the collector may take it later. */
function createDelivery({ send, clock }: ExporterOptions) {
  /** Aborted when nothing can be sent any more. */
  const ended = new AbortController();
  let isEnding = false;
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

  async function sendOnce(batch: readonly string[]): Promise<SendResult> {
    const limit = new AbortController();
    const deadline = clock.after(SEND_MS, () => limit.abort());
    const result = await send(batch, AbortSignal.any([limit.signal, ended.signal]));
    deadline.cancel();
    return result;
  }

  return {
    ended: ended.signal,
    pause,
    hurry: () => hurry(),
    async deliver(batch: readonly string[]): Promise<SendResult> {
      for (let retries = 0; ; retries += 1) {
        const result = await sendOnce(batch);
        if (!result.isTemporary || isEnding || retries >= MAX_RETRIES) return result;
        const backoff = BACKOFF_MS * 2 ** retries * (0.5 + Math.random() / 2);
        await pause(Math.min(result.afterMs ?? backoff, MAX_WAIT_MS));
      }
    },
    /** From now on nothing is paused or retried. After CLOSE_MS, unless cancelled, sending ends. */
    endSoon(): Timer {
      isEnding = true;
      hurry();
      return clock.after(CLOSE_MS, () => ended.abort());
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
