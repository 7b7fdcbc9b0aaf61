// `telemetry` in gateway.json: where spans are sent.
import { strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import {
  fail,
  nonEmpty,
  optional,
  record,
  refine,
  string,
  withDefault,
  type Check,
} from "../../../core/schema/checker.ts";

export interface CollectorSettings {
  /** Without a slash at its end; /v1/traces is appended. */
  readonly endpoint: string;
  /** Pairs of a name in lower case and a value, which is a secret. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The name of this service in traces. */
  readonly service_name: string;
}

interface TelemetrySettings {
  readonly otlp: CollectorSettings;
}

const endpoint = refine(nonEmpty, (text) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    return fail("invalid_value", "expected an http:// or https:// address");
  if (url.username || url.password)
    return fail("invalid_value", "must not hold a user name or password; use headers");
  if (url.search || url.hash) return fail("invalid_value", "must not have a query or fragment");
  const address = url.href.endsWith("/") ? url.href.slice(0, -1) : url.href;
  if (/\/$|\/v1\/traces$/.test(address))
    return fail("invalid_value", "expected the address to which /v1/traces is appended");
  return address;
});

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** Headers that the gateway or HTTP itself sets. */
const OWN_HEADERS = /^(content-(type|length|encoding)|transfer-encoding|connection|host|expect)$/;

/** A word such as Bearer may stand before the secret. */
const headerValue = (credential: Check<string>): Check<string> =>
  refine(string({ min: 1, secret: true }), (text) => {
    const [, scheme = "", secret = text] = /^([A-Za-z][A-Za-z-]* )(\S+)$/.exec(text) ?? [];
    return scheme + credential(secret);
  });

const headers = (credential: Check<string>) =>
  refine(withDefault(record(headerValue(credential)), new Map()), (values) => {
    const pairs = [...values].map(([name, value]) => [name.toLowerCase(), value] as const);
    const names = new Set(pairs.map(([name]) => name));
    for (const [name] of pairs)
      if (!HEADER_NAME.test(name) || OWN_HEADERS.test(name))
        fail("invalid_value", "expected the name of a header that may be set", [name]);
    if (names.size < pairs.length) fail("invalid_value", "expected each header once");
    return pairs;
  });

/** Absent: nothing is traced. */
export const telemetry = defineSetting<TelemetrySettings | undefined>(
  "telemetry",
  undefined,
  ({ credential }) =>
    optional(
      strict({
        otlp: strict({
          endpoint,
          headers: headers(credential),
          service_name: withDefault(nonEmpty, "chat-gateway"),
        }),
      }),
    ),
  { fixed: true },
);

/** The secrets in the headers, also without the word before them. */
export const secretsOf = ({ headers }: CollectorSettings): readonly string[] =>
  headers.flatMap(([, value]) => [value, value.slice(value.indexOf(" ") + 1)]);
