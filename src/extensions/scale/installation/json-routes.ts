// Helpers for paths of the admin listener that answer a query with a JSON document.
import type { IncomingMessage } from "node:http";
import type { Cancel } from "../../../core/http/cancel.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import type { Check } from "../../../core/schema/checker.ts";

/** The headers of an answer that no cache may keep. */
export const NO_STORE = { "Cache-Control": "no-store" };

/** Whether the operating system reported the error (ENOSPC). Node's codes (ERR_...) are bugs. */
export const isSystemError = (error: unknown): boolean =>
  /^E(?!RR_)/.test((error as NodeJS.ErrnoException).code ?? "");

/** The checked query string of a request. Throws a ValidationError. */
export const queryOf = <T>({ url = "" }: IncomingMessage, check: Check<T>): T =>
  check(Object.fromEntries(new URLSearchParams(url.replace(/^[^?]*/, ""))));

/**
 * Answers a GET with the result of `find`, as JSON; a string is sent as it is. `cancel` is aborted
 * when the client disconnects.
 */
export const answering = <T>(
  check: Check<T>,
  find: (query: T, cancel: Cancel) => unknown,
): Routes[string] => ({
  GET: async ({ req, res, cancel }) =>
    sendJson(res, 200, await find(queryOf(req, check), cancel), NO_STORE),
});
