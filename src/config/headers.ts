// Checks of headers that the operator adds to the gateway's requests.
import { fail, record, refine, string, type Check } from "../core/schema/checker.ts";

const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** Headers that the gateway or HTTP itself sets. */
const OWN = new RegExp(
  "^(content-(type|length|encoding)|transfer-encoding|connection|keep-alive|te|trailer|upgrade" +
    "|host|expect|accept(-encoding)?|traceparent|tracestate)$",
  "i",
);
/** Headers in which providers expect a key. */
const KEYS = /^(authorization|proxy-authorization|x-api-key|api-key|x-goog-api-key)$/i;

const isSettable = (name: string): boolean => NAME.test(name) && !OWN.test(name);

/** Headers by lower-case name. Names that differ in case only are an issue: HTTP ignores case. */
export const headersOf = (value: Check<string>): Check<ReadonlyMap<string, string>> =>
  refine(record(value), (values) => {
    const headers = new Map<string, string>();
    for (const [name, text] of values) {
      if (!isSettable(name)) fail("invalid_value", "is not a header that may be set", [name]);
      const same = name.toLowerCase();
      if (headers.has(same)) fail("invalid_value", "is set twice", [name]);
      headers.set(same, text);
    }
    return headers;
  });

function refuseKey(name: string, path: string[]): void {
  const message = "carries a key: state it as api_key, and the header as auth";
  if (KEYS.test(name)) fail("invalid_value", message, path);
}

const sendable = string({ pattern: /^[\x20-\x7e]*$/, expected: "printable ASCII" });

/** As headersOf(), for values that are not secret. Headers that carry a key are an issue. */
export const nonSecretHeaders: Check<Readonly<Record<string, string>>> = refine(
  headersOf(sendable),
  (headers) => {
    for (const name of headers.keys()) refuseKey(name, [name]);
    return Object.fromEntries(headers);
  },
);

/** The lower-case name of one header that the operator may set and that carries no key. */
export const nonSecretHeaderName: Check<string> = refine(string(), (name) => {
  if (!isSettable(name)) fail("invalid_value", "is not a header that may be set");
  refuseKey(name, []);
  return name.toLowerCase();
});
