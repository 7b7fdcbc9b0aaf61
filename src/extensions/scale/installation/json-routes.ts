// What the paths of the admin listener have in common that answer a query with a JSON document.
import type { IncomingMessage } from "node:http";
import type { Cancel } from "../../../core/http/cancel.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import type { Check } from "../../../core/schema/checker.ts";

/** The headers of an answer that nobody keeps. */
export const NO_STORE = { "Cache-Control": "no-store" };

/** Whether the system says so, such as ENOSPC. The codes of Node's checks (ERR_...) are bugs. */
export const isSystemError = (error: unknown): boolean =>
  /^E(?!RR_)/.test((error as NodeJS.ErrnoException).code ?? "");

/** What follows the `?` of a request's path. Throws a ValidationError. */
export const queryOf = <T>({ url = "" }: IncomingMessage, check: Check<T>): T =>
  check(Object.fromEntries(new URLSearchParams(url.replace(/^[^?]*/, ""))));

/**
 * Answers a GET with what `find` returns or resolves with; a string is JSON already. `cancel` is
 * aborted when the client leaves.
 */
export const answering = <T>(
  check: Check<T>,
  find: (query: T, cancel: Cancel) => unknown,
): Routes[string] => ({
  GET: async ({ req, res, cancel }) =>
    sendJson(res, 200, await find(queryOf(req, check), cancel), NO_STORE),
});
