// One line of the access log: what it contains about one response.
import type { LogFields } from "./exchange.ts";
import { pathOf } from "./router.ts";

/** Characters of a path, or of any other text of a client, in a line. */
const MAX_LOGGED = 512;

/** A field that is undefined is left out of the line. */
export interface AccessRecord {
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
  /** Null if the client was not authenticated. */
  readonly account: string | null;
  readonly key_id: string | null;
  /** The canonical name of the model that served or was to serve. Null if there was none. */
  readonly model: string | null;
  readonly model_requested: string | undefined;
  readonly provider: string | undefined;
  readonly usage_source: string | undefined;
  readonly prompt_tokens: number | undefined;
  readonly completion_tokens: number | undefined;
  /** An exact decimal number, in `currency`. */
  readonly cost: string | undefined;
  readonly currency: string | undefined;
  readonly error_code: string | undefined;
  /** The path of the request field that is to blame. */
  readonly param: string | undefined;
}

/** Receives the record of every response when it has left or has been broken off. */
export type AccessLog = (record: AccessRecord) => void;

/** What a record is made of. */
export interface LoggedResponse {
  readonly requestId: string;
  /** Method and URL are absent if the request could not be parsed. */
  readonly req: { readonly method?: string | undefined; readonly url?: string | undefined };
  readonly log: LogFields;
  /** The wall clock at the end of the response, in milliseconds. */
  readonly time: number;
  readonly status: number;
  readonly durationMs: number;
}

const shortened = (text: string): string =>
  text.length > MAX_LOGGED ? `${text.slice(0, MAX_LOGGED)}\u2026` : text;

const optionalText = (text: string | null | undefined): string | undefined =>
  text === null || text === undefined ? undefined : shortened(text);

export function accessRecord(response: LoggedResponse): AccessRecord {
  const { requestId, req, log, time, status, durationMs } = response;
  return {
    time: new Date(time).toISOString(),
    request_id: requestId,
    method: req.method ?? null,
    path: req.url === undefined ? null : shortened(pathOf(req.url)),
    status,
    duration_ms: Math.round(durationMs * 1000) / 1000,
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
