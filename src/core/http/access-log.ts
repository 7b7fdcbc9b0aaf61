// The access log: what the line of a response contains, and when it is written. That is at the end
// of the response, but for a client that left early. Then the line waits for the handler, which
// still learns what the request has cost.
import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.ts";
import type { LiveExchange } from "./connection.ts";
import type { AccessRecord, Exchange, LogFields } from "./exchange.ts";
import type { ErrorResponse } from "./responses.ts";
import { pathOf } from "./router.ts";

/** Characters of a path, or of any other text of a client, in a line. */
const MAX_LOGGED = 512;
/** How long a line waits for a handler. */
const HANDLER_MS = 10_000;

/**
 * Receives the record of every response when it has left or has been broken off. `exchange`
 * undefined: the request could not be parsed.
 */
export type AccessLog = (record: AccessRecord, exchange: Exchange | undefined) => void;

export interface ResponseLog {
  /** Logs an exchange that is over. */
  ended(exchange: LiveExchange, status: number): void;
  /** Logs an error that was sent outside of any exchange. */
  refused(error: ErrorResponse, requestId: string, req: Partial<IncomingMessage>): void;
  /** Resolves when no line waits any more. After `ms` milliseconds those that wait are written. */
  settle(ms: number): Promise<void>;
}

export function createResponseLog(access: AccessLog, clock: Clock): ResponseLog {
  /** Writes the lines that wait. */
  const waiting = new Set<() => void>();
  let onSettled: (() => void) | undefined;

  return {
    ended(exchange, status) {
      const durationMs = clock.monotonic() - exchange.startedAt;
      const end = { time: clock.now(), status, durationMs };
      if (exchange.delivered || exchange.handled) {
        access(accessRecord(exchange, end), exchange);
        return;
      }
      const write = (): void => {
        if (!waiting.delete(write)) return;
        timer.cancel();
        access(accessRecord(exchange, end), exchange);
        if (waiting.size === 0) onSettled?.();
      };
      const timer = clock.after(HANDLER_MS, write);
      waiting.add(write);
      exchange.onHandled = write;
    },
    refused({ code, status }, requestId, req) {
      const end = { time: clock.now(), status, durationMs: 0 };
      access(accessRecord({ requestId, req, log: { error_code: code } }, end), undefined);
    },
    async settle(ms) {
      if (waiting.size === 0) return;
      await new Promise<void>((resolve) => {
        const timer = clock.after(ms, () => {
          for (const write of waiting) write();
        });
        onSettled = () => {
          timer.cancel();
          resolve();
        };
      });
    },
  };
}

/** An exchange, or a request that could not be parsed and may lack its method and URL. */
interface LoggedRequest {
  readonly requestId: string;
  readonly req: Partial<IncomingMessage>;
  readonly log: LogFields;
}

function accessRecord(
  { requestId, req, log }: LoggedRequest,
  end: { time: number; status: number; durationMs: number },
): AccessRecord {
  return {
    time: new Date(end.time).toISOString(),
    request_id: requestId,
    method: req.method ?? null,
    path: req.url === undefined ? null : shortened(pathOf(req.url)),
    status: end.status,
    duration_ms: Math.round(end.durationMs * 1000) / 1000,
    account: log.account ?? null,
    key_id: log.key_id ?? null,
    model: log.model ?? null,
    model_requested: optionalText(log.model_requested),
    provider: optionalText(log.provider),
    recovery: log.recovery,
    attempts: log.attempts,
    usage_source: log.usage_source,
    prompt_tokens: log.prompt_tokens,
    completion_tokens: log.completion_tokens,
    cost: log.cost,
    currency: log.currency,
    error_code: log.error_code,
    param: optionalText(log.param),
  };
}

const shortened = (text: string): string =>
  text.length > MAX_LOGGED ? `${text.slice(0, MAX_LOGGED)}\u2026` : text;

const optionalText = (text: string | null | undefined): string | undefined =>
  text === null || text === undefined ? undefined : shortened(text);
