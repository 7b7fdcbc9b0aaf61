// `telemetry` in gateway.json: where spans are sent.
import { strict, url } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import {
  fail,
  nonEmpty,
  record,
  refine,
  string,
  withDefault,
  type Check,
} from "../../../core/schema/checker.ts";

export interface CollectorSettings {
  /** Without a slash at its end; /v1/traces is appended. */
  readonly endpoint: string;
  /** The values are secrets. */
  readonly headers: ReadonlyMap<string, string>;
  /** The name of this service in traces. */
  readonly service_name: string;
}

const endpoint = refine(url, (address) =>
  address.endsWith("/v1/traces")
    ? fail("invalid_value", "expected the address to which /v1/traces is appended")
    : address,
);

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** Headers that the gateway or HTTP itself sets. */
const OWN_HEADERS = /^(content-(type|length|encoding)|transfer-encoding|connection|host|expect)$/i;

/** A word such as Bearer may stand before the secret. */
const headerValue = (credential: Check<string>): Check<string> =>
  refine(string({ min: 1, secret: true }), (text) => {
    const [, scheme = "", secret = text] = /^([A-Za-z][A-Za-z-]* )(\S+)$/.exec(text) ?? [];
    return scheme + credential(secret);
  });

const headers = (credential: Check<string>) =>
  refine(withDefault(record(headerValue(credential)), new Map()), (values) => {
    for (const name of values.keys())
      if (!HEADER_NAME.test(name) || OWN_HEADERS.test(name))
        fail("invalid_value", "expected the name of a header that may be set", [name]);
    const names = new Set([...values.keys()].map((name) => name.toLowerCase()));
    if (names.size < values.size) fail("invalid_value", "expected each header once");
    return values;
  });

/** Absent: nothing is traced. */
export const telemetry = defineSetting(
  "telemetry",
  undefined,
  ({ credential }) =>
    strict({
      otlp: strict({
        endpoint,
        headers: headers(credential),
        service_name: withDefault(nonEmpty, "chat-gateway"),
      }),
    }),
  { fixed: true },
);

/** The secrets in the headers, also without the word before them. */
export const secretsOf = ({ headers }: CollectorSettings): readonly string[] =>
  [...headers.values()].flatMap((value) => [value, value.slice(value.indexOf(" ") + 1)]);
