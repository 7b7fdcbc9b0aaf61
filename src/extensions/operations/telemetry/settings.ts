// `telemetry` in gateway.json: where spans are sent.
import { strict, url } from "../../../config/fields.ts";
import { headersOf } from "../../../config/headers.ts";
import { defineSetting } from "../../../config/setting.ts";
import {
  fail,
  nonEmpty,
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

/** The secret may follow a scheme such as Bearer. */
const headerValue = (credential: Check<string>): Check<string> =>
  refine(string({ min: 1, secret: true }), (text) => {
    const [, scheme = "", secret = text] = /^([A-Za-z][A-Za-z-]* )(\S+)$/.exec(text) ?? [];
    return scheme + credential(secret);
  });

/** Absent: nothing is traced. */
export const telemetry = defineSetting(
  "telemetry",
  undefined,
  ({ credential }) =>
    strict({
      otlp: strict({
        endpoint,
        headers: withDefault(headersOf(headerValue(credential)), new Map()),
        service_name: withDefault(nonEmpty, "chat-gateway"),
      }),
    }),
  { fixed: true },
);

/** The header values, each also without its scheme. */
export const secretsOf = ({ headers }: CollectorSettings): readonly string[] =>
  [...headers.values()].flatMap((value) => [value, value.slice(value.indexOf(" ") + 1)]);
