// A line of the access log: what it says of one response. SPEC.md "Request ID", DESIGN.md "Files under data_dir".
import type { LogFields } from "./exchange.ts";
import { pathOf } from "./router.ts";

/** Characters of a path, and of any other text of a client, in a line of the log. */
const MAX_LOGGED = 512;

/** Fields that are undefined do not stand in the line. */
export interface AccessRecord extends LogFieldsOrAbsent {
  readonly time: string;
  readonly request_id: string;
  readonly method: string | null;
  readonly path: string | null;
  readonly status: number;
  readonly duration_ms: number;
  readonly account: string | null;
  readonly key_id: string | null;
  readonly model: string | null;
}
type LogFieldsOrAbsent = {
  readonly [Field in Exclude<keyof LogFields, "account" | "key_id" | "model">]?:
    | Exclude<LogFields[Field], null>
    | undefined;
};

/** What a line is made of. Method and URL are absent where they could not be parsed. */
interface Logged {
  readonly requestId: string;
  readonly req: { readonly method?: string | undefined; readonly url?: string | undefined };
  readonly log: LogFields;
  /** The wall clock in milliseconds. */
  readonly time: number;
  readonly status: number;
  readonly durationMs: number;
}

export const shortened = (text: string): string =>
  text.length > MAX_LOGGED ? `${text.slice(0, MAX_LOGGED)}\u2026` : text;
const optionalText = (text: string | null | undefined): string | undefined =>
  text === null || text === undefined ? undefined : shortened(text);

export function accessRecord({
  requestId,
  req: { method, url },
  log,
  time,
  status,
  durationMs,
}: Logged): AccessRecord {
  return {
    time: new Date(time).toISOString(),
    request_id: requestId,
    method: method ?? null,
    path: url === undefined ? null : shortened(pathOf(url)),
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
