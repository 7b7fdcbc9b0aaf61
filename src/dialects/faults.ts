// What a provider's refusal means, for every dialect: HTTP status and error body to the code of our own table, WIRE.md 4.3.
// Nothing of the provider's text is passed on; it may quote its keys, hosts or our client's content.

import { ProviderFault, type FaultCode } from "./dialect.ts";

/** The provider's own words for what went wrong, as far as its dialect has such fields. */
export interface ErrorWords {
  readonly message: string;
  readonly code: string;
  readonly type: string;
}

const CONTEXT = /context[ _]length|context window|maximum context|exceed_context_size|prompt is too long|too many (input )?tokens|input token count|reduce the length/i;
const FILTER = /content[ _]filter|content[ _]policy|content management policy|data_inspection|content safety|safety (system|filter|polic)|sensitive[_ ](content|words?)|moderation[_ ](blocked|failed)/i;
const BAD_KEY = /api[ _]key[ _](invalid|not[ _]valid|expired)|invalid[ _]api[ _]key|incorrect api key/i;

function codeOf(status: number, words: ErrorWords): FaultCode {
  const text = `${words.code} ${words.type} ${words.message}`;
  switch (status) {
    case 400:
    case 413:
    case 422:
      if (BAD_KEY.test(text)) return "model_unavailable";
      if (CONTEXT.test(text)) return "context_length_exceeded";
      return FILTER.test(text) ? "content_filter" : "upstream_rejected";
    case 408:
    case 409:
    case 425:
    case 429:
    case 503:
    case 529:
      return "model_overloaded";
    default:
      // Other 4xx: our key, our address or our method is wrong, which is the operator's business, not the client's.
      return status >= 400 && status < 500 ? "model_unavailable" : "upstream_error";
  }
}

/** The fault of an answer with an error status, or of an error body inside a 200 (`status` is then the one it states). */
export function faultOf(status: number, words: ErrorWords, retryAfterMs?: number): ProviderFault {
  return new ProviderFault(codeOf(status, words), `the provider answered with status ${status}`, { status, retryAfterMs });
}

/** Retry-After in milliseconds: seconds or an HTTP date; undefined if absent or unreadable. */
export function retryAfterMs(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d+(\.\d+)?$/.test(value.trim())) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
