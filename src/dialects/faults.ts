// What a provider's refusal means, for every dialect, in one table: HTTP status and the error's words to a code of our own and
// to who is to blame. WIRE.md 4.3. Nothing of the text is passed on; it may quote keys, hosts or our client's content.
import { array, literal, nonEmpty, number, object, optional, refine } from "../protocol/checker.ts";
import { asArray, asObject, asString } from "../protocol/foreign.ts";
import { ProviderFault } from "./dialect.ts";
import faultsJson from "./faults.json" with { type: "json" };

/** Any of them, as regular expressions. */
const words = refine(array(nonEmpty), (list) => new RegExp(list.join("|"), "i"));
/** `words` are looked for in code, type and message; absent: whatever they say. `operator`: the provider refuses this gateway, not this
 * request: a matter for the operator, and no use in trying again; `other`: our address or our method is wrong. */
const rule = object({
  status: refine(nonEmpty, (pattern) => new RegExp(`^(${pattern})$`)), words: optional(words), operator: optional(literal("key", "other")),
  code: literal("model_unavailable", "model_overloaded", "context_length_exceeded", "content_filter", "upstream_rejected", "upstream_error"),
}, { strict: true });
/** Of the rules the first that fits counts; one does. `stated`: of errors inside a 200 that state no status, what their code or type stands for. */
const { rules, stated } = object({ rules: array(rule), stated: array(object({ words, status: number() })) })(faultsJson, true);

/** Throws the fault of an error inside a 200, if there is one. Its code may be an HTTP status (OpenRouter, vLLM, Gemini) or a word. */
export function throwErrorIn(json: unknown): void {
  const body = asObject(Array.isArray(json) ? json[0] : json);
  const error = body["error"] ?? (body["object"] === "error" ? body : undefined);
  if (error === undefined || error === "") return;
  const status = [asObject(error)["code"], asObject(error)["status"]].map(Number).find((status) => status >= 400 && status < 600);
  const [name, message] = errorWords(body);
  const clients = rules.some(({ words, operator }) => !operator && words?.test(message)); // the words are of a rule that blames the client
  const meant = stated.find(({ words }) => words.test(name))?.status ?? (clients ? 400 : 500);
  throw refusal(status ?? meant, { get: () => null }, body);
}

/** The fault of an answer other than 200. `body` is its JSON, or its text (or the beginning of it) if it was none. */
export function refusal(status: number, headers: { get(name: string): string | null }, body: unknown): ProviderFault {
  const text = errorWords(body).join(" ");
  const { code, operator } = rules.find((rule) => rule.status.test(String(status)) && (!rule.words || rule.words.test(text)))!;
  const detail = { status, operator, retryAfterMs: retryAfterMs(headers.get("retry-after"), body) };
  return new ProviderFault(code, `the provider answered with status ${status}`, detail);
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
