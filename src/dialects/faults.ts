// What a provider's refusal means, for every dialect, in one table: HTTP status and the error's words to a code of our own and
// to who is to blame. WIRE.md 4.3. Nothing of the text is passed on; it may quote keys, hosts or our client's content.
import { asArray, asObject, asString } from "../protocol/foreign.ts";
import { ProviderFault, type FaultCode } from "./dialect.ts";

/** `operator`: the provider refuses this gateway, not this request: a matter for the operator, and no use in trying again. */
type Outcome = { readonly code: FaultCode; readonly operator?: "key" | "other" };
/** `words` are looked for in code, type and message; absent: any. */
type Rule = Outcome & { readonly statuses: readonly number[]; readonly words?: RegExp };
const BAD_REQUEST = [400, 413, 422];
const CONTEXT = /context[ _]length|context window|context limit|maximum context|exceed_context_size|prompt is too long|too many (input )?tokens|input token count|reduce the length|maximum prompt length|exceeds max length|more than max tokens|exceeded model token limit|range of input length/i;
const FILTER = /content[ _]filter|content[ _]policy|content management policy|data_inspection|content safety|safety (system|filter|polic)|sensitive[_ ](content|words?)|moderation[_ ](blocked|failed)|requires moderation|violates usage guidelines/i;
const BAD_KEY = /api[ _]key[ _](invalid|not[ _]valid|expired)|invalid[ _]api[ _]key|incorrect api key|credit balance|location is not supported/i;

/** The first rule that fits. */
const RULES: readonly Rule[] = [
  { statuses: BAD_REQUEST, words: BAD_KEY, code: "model_unavailable", operator: "key" },
  { statuses: BAD_REQUEST, words: CONTEXT, code: "context_length_exceeded" },
  { statuses: [...BAD_REQUEST, 403], words: FILTER, code: "content_filter" },
  { statuses: BAD_REQUEST, code: "upstream_rejected" },
  { statuses: [401, 402, 403], code: "model_unavailable", operator: "key" },
  { statuses: [429], words: /insufficient_quota|insufficient balance|^1113 /i, code: "model_unavailable", operator: "key" },
  { statuses: [408, 409, 425, 429, 503, 529], code: "model_overloaded" },
];

/** Errors inside a 200 that state no status: what their code or type stands for. */
const STATED: readonly (readonly [words: RegExp, status: number])[] = [
  [/insufficient_quota|rate_limit|too_many_requests/i, 429],
  [/authentication|invalid_api_key|permission|insufficient_balance|billing/i, 401],
  [/not_found/i, 404],
  [/request_too_large/i, 413],
  [/overload|unavailable/i, 529],
  [/context_length|exceed_context|content_filter|content_policy|invalid_request/i, 400],
];

/** The fault of an error inside a 200, if there is one. Its code may be an HTTP status (OpenRouter, vLLM, Gemini) or a word. */
export function errorIn(json: unknown): ProviderFault | undefined {
  const body = asObject(Array.isArray(json) ? json[0] : json);
  const error = body["error"] ?? (body["object"] === "error" ? body : undefined);
  if (error === undefined || error === "") return undefined;
  const stated = [asObject(error)["code"], asObject(error)["status"]].map(Number).find((status) => status >= 400 && status < 600);
  const [name, message] = errorWords(body);
  const meant = STATED.find(([pattern]) => pattern.test(name))?.[1] ?? (CONTEXT.test(message) || FILTER.test(message) ? 400 : 500);
  return refusal(stated ?? meant, { get: () => null }, body);
}

/** The fault of an answer other than 200. `body` is its JSON, or its text (or the beginning of it) if it was none. */
export function refusal(status: number, headers: { get(name: string): string | null }, body: unknown): ProviderFault {
  const text = errorWords(body).join(" ");
  // Any other 4xx: our address or our method is wrong. Anything else that is no 200 is the provider's failure.
  const other: Outcome = status >= 400 && status < 500 ? { code: "model_unavailable", operator: "other" } : { code: "upstream_error" };
  const { code, operator } = RULES.find(({ statuses, words }) => statuses.includes(status) && (!words || words.test(text))) ?? other;
  const retryAfter = retryAfterMs(headers.get("retry-after"), body);
  return new ProviderFault(code, `the provider answered with status ${status}`, { status, retryAfterMs: retryAfter, operator });
}

/** What stands under `error`, or the body itself; some of Gemini's answers are a list. */
const errorOf = (body: unknown): unknown => (Array.isArray(body) ? errorOf(body[0]) : (asObject(body)["error"] ?? body));

/** The provider's own words for what went wrong, its code and type and then its message, as far as there are such fields:
 * `{message, type, code}`, Gemini's `{message, status}`, or the flat and bare forms that some providers use. */
function errorWords(body: unknown): readonly [name: string, message: string] {
  const error = errorOf(body);
  const { message, detail, type, status, code = asObject(body)["code"] } = asObject(error);
  const name = `${asString(code) ?? asString(status) ?? ""} ${asString(type) ?? ""}`;
  return [name, asString(error) ?? asString(message) ?? (detail === undefined ? "" : JSON.stringify(detail))];
}

/** Retry-After (seconds or an HTTP date), or Gemini's RetryInfo (`"retryDelay": "17s"`), in milliseconds; undefined if there is none. */
function retryAfterMs(header: string | null, body: unknown): number | undefined {
  const delays = asArray(asObject(errorOf(body))["details"]).map((detail) => asString(asObject(detail)["retryDelay"])?.replace(/s$/, ""));
  const stated = (header ?? delays.find((delay) => delay !== undefined) ?? "").trim();
  if (/^\d+(\.\d+)?$/.test(stated)) return Number(stated) * 1000;
  const date = Date.parse(stated);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
