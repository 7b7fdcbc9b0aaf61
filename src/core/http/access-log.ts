// The access log: one line for each response. The line is written when the response ends. If the
// client left early, the line waits for the handler, which still has to learn the cost.
import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.ts";
import type { LiveExchange } from "./connection.ts";
import type { AccessRecord, Exchange } from "./exchange.ts";
import type { ApiError } from "../openai/errors.ts";
import { pathOf } from "./router.ts";

/** The most characters of a path, or of any other text from a client, in a line. */
const MAX_LOGGED = 512;

/**
 * Receives the record of every response, sent or cut off. `exchange` undefined: the request could
 * not be parsed.
 */
export type AccessLog = (record: AccessRecord, exchange: Exchange | undefined) => void;

export function createResponseLog(access: AccessLog, clock: Clock) {
  /** Each function writes one waiting line. */
  const waiting = new Set<() => void>();
  let onSettled = (): void => undefined;

  return {
    /** Logs an exchange that has ended. */
    ended(exchange: LiveExchange, status: number): void {
      const durationMs = clock.monotonic() - exchange.startedAt;
      const end = { time: clock.now(), status, durationMs };
      const write = (): void => {
        if (waiting.delete(write)) access(accessRecord(exchange, exchange.req, end), exchange);
        if (waiting.size === 0) onSettled();
      };
      waiting.add(write);
      if (exchange.delivered || exchange.handled) write();
      else exchange.onHandled = write;
    },
    /** Logs an error that was sent without an exchange. */
    refused({ code, status }: ApiError, requestId: string, req: Partial<IncomingMessage>): void {
      const end = { time: clock.now(), status, durationMs: 0 };
      access(accessRecord({ requestId, log: { error_code: code } }, req, end), undefined);
    },
    /** Resolves when no line is waiting. Writes the waiting lines after `ms` milliseconds. */
    async settle(ms: number): Promise<void> {
      if (waiting.size === 0) return;
      const timer = clock.after(ms, () => {
        for (const write of waiting) write();
      });
      await new Promise<void>((resolve) => {
        onSettled = resolve;
      });
      timer.cancel();
    },
  };
}

/** `req` may lack method and URL if the request could not be parsed. */
function accessRecord(
  { requestId, log }: Pick<LiveExchange, "requestId" | "log">,
  req: Partial<IncomingMessage>,
  end: { time: number; status: number; durationMs: number },
): AccessRecord {
  return {
    time: new Date(end.time).toISOString(),
    request_id: requestId,
    method: req.method ?? null,
    path: req.url === undefined ? null : shortened(pathOf(req.url)),
    status: end.status,
    duration_ms: Math.round(end.durationMs * 1000) / 1000,
    account: null,
    key_id: null,
    model: null,
    ...log,
    model_requested: optionalText(log.model_requested),
    provider: optionalText(log.provider),
    param: optionalText(log.param),
  };
}

/** Without halves of characters, which strict readers of JSON refuse: the cut may leave one too. */
const shortened = (text: string): string =>
  (text.length > MAX_LOGGED ? `${text.slice(0, MAX_LOGGED)}\u2026` : text).toWellFormed();

const optionalText = (text: string | null | undefined): string | undefined =>
  text === null || text === undefined ? undefined : shortened(text);
