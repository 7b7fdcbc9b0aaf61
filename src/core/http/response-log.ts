// When the line of the access log of a response is written: at its end, but for a client that left
// early. Then the line waits for the handler, which still learns what the request has cost.
import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.ts";
import { accessRecord, type AccessLog } from "./access-record.ts";
import type { LiveExchange } from "./connection.ts";
import type { ErrorResponse } from "./responses.ts";

/** How long a line waits for a handler. */
const HANDLER_MS = 10_000;

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

  function ended(exchange: LiveExchange, status: number): void {
    const durationMs = clock.monotonic() - exchange.startedAt;
    const end = { time: clock.now(), status, durationMs };
    if (exchange.delivered || exchange.handled) {
      access(accessRecord(exchange, end));
      return;
    }
    const write = (): void => {
      if (!waiting.delete(write)) return;
      timer.cancel();
      access(accessRecord(exchange, end));
      if (waiting.size === 0) onSettled?.();
    };
    const timer = clock.after(HANDLER_MS, write);
    waiting.add(write);
    exchange.onHandled = write;
  }

  function refused(error: ErrorResponse, requestId: string, req: Partial<IncomingMessage>): void {
    const log = { error_code: error.code };
    const end = { time: clock.now(), status: error.status, durationMs: 0 };
    access(accessRecord({ requestId, req, log }, end));
  }

  async function settle(ms: number): Promise<void> {
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
  }

  return { ended, refused, settle };
}
