// One line of the access log: what it contains about one response.
import type { LogFields } from "./exchange.ts";
import { pathOf } from "./router.ts";

/** Characters of a path, or of any other text of a client, in a line. */
const MAX_LOGGED = 512;

/** The fields that every line has, and those of LogFields. An undefined one is left out. */
export interface AccessRecord extends Readonly<LogFields> {
  /** When the response ended, in ISO 8601. */
  readonly time: string;
  readonly request_id: string;
  /** Null if the request could not be parsed. */
  readonly method: string | null;
  /** Without the query. Null if the request could not be parsed. */
  readonly path: string | null;
  /** 499 if the client left before it had the whole response. */
  readonly status: number;
  /** From the parsed head to the end of the response, in milliseconds, to the microsecond. */
  readonly duration_ms: number;
}

/** Receives the record of every response when it has left or has been broken off. */
export type AccessLog = (record: AccessRecord) => void;

/** Of an exchange, or of a request that could not be parsed and has no method and URL. */
export interface LoggedRequest {
  readonly requestId: string;
  readonly req: { readonly method?: string | undefined; readonly url?: string | undefined };
  readonly log: LogFields;
}

/** How and when a response ended. */
export interface LoggedEnd {
  /** The wall clock, in milliseconds. */
  readonly time: number;
  readonly status: number;
  readonly durationMs: number;
}

const shortened = (text: string): string =>
  text.length > MAX_LOGGED ? `${text.slice(0, MAX_LOGGED)}\u2026` : text;

const optionalText = (text: string | null | undefined): string | undefined =>
  text === null || text === undefined ? undefined : shortened(text);

export function accessRecord(request: LoggedRequest, end: LoggedEnd): AccessRecord {
  const { requestId, req, log } = request;
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
    usage_source: log.usage_source,
    prompt_tokens: log.prompt_tokens,
    completion_tokens: log.completion_tokens,
    cost: log.cost,
    currency: log.currency,
    error_code: log.error_code,
    param: optionalText(log.param),
  };
}
