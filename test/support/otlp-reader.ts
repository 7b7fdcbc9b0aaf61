// A strict reader of OTLP/HTTP requests with traces in JSON. It takes the messages of the protocol
// (opentelemetry/proto/trace/v1/trace.proto) and nothing else: an unknown field, a number where the
// JSON mapping has a string, an id of the wrong length or in base64, all fail the test.

import assert from "node:assert/strict";
import { integer, strict } from "../../src/config/fields.ts";
import {
  array,
  boolean,
  nonEmpty,
  number,
  optional,
  refine,
  string,
  withDefault,
  type Check,
} from "../../src/core/schema/checker.ts";

type AttributeValue = string | number | boolean | readonly AttributeValue[];
type Attributes = Readonly<Record<string, AttributeValue>>;

const list = <T>(item: Check<T>): Check<T[]> => withDefault(array(item), []);
const id = (digits: number) => string({ pattern: new RegExp(`^(?!0+$)[0-9a-f]{${digits}}$`) });
/** fixed64: a decimal string. Nanoseconds since 1970. */
const time = refine(string({ pattern: /^[1-9]\d{0,19}$/ }), (text) => {
  assert.ok(BigInt(text) < 1n << 64n, text);
  return BigInt(text);
});

const anyValue: Check<AttributeValue> = refine(
  strict({
    stringValue: optional(string()),
    boolValue: optional(boolean()),
    intValue: optional(refine(string({ pattern: /^(0|-?[1-9]\d{0,18})$/ }), Number)),
    doubleValue: optional(number()),
    arrayValue: optional(strict({ values: list(strict({ stringValue: string() })) })),
  }),
  (kinds) => {
    const [value, ...others] = Object.values(kinds).filter((each) => each !== undefined);
    assert.ok(value !== undefined && others.length === 0, "exactly one kind of value");
    return typeof value === "object" ? value.values.map(({ stringValue }) => stringValue) : value;
  },
);

const attributes = refine(list(strict({ key: nonEmpty, value: anyValue })), (pairs): Attributes => {
  const read = Object.fromEntries(pairs.map(({ key, value }) => [key, value]));
  assert.equal(Object.keys(read).length, pairs.length, "a key stands twice");
  return read;
});

const span = refine(
  strict({
    traceId: id(32),
    spanId: id(16),
    /** Empty: the root of its trace. */
    parentSpanId: withDefault(id(16), ""),
    traceState: withDefault(string(), ""),
    flags: withDefault(integer(0, 0xffff_ffff), 0),
    name: nonEmpty,
    kind: integer(0, 5),
    startTimeUnixNano: time,
    endTimeUnixNano: time,
    attributes,
    events: list(strict({ timeUnixNano: time, name: string(), attributes })),
    /** 0 unset, 1 ok, 2 error. */
    status: withDefault(
      strict({ message: optional(string()), code: withDefault(integer(0, 2), 0) }),
      { message: undefined, code: 0 },
    ),
  }),
  ({ startTimeUnixNano: start, endTimeUnixNano: end, status: { code: status }, ...read }) => {
    assert.ok(end >= start, "a span ends after its start");
    const events = read.events.map(({ name, timeUnixNano }) => ({ name, time: timeUnixNano }));
    for (const event of events)
      assert.ok(event.time >= start && event.time <= end, "an event lies within its span");
    return { ...read, start, end, status, events };
  },
);

const scope = strict({ name: string(), version: optional(string()) });
const request = strict({
  resourceSpans: array(
    strict({
      resource: strict({ attributes }),
      scopeSpans: array(strict({ scope, spans: array(span) })),
    }),
  ),
});

export type ReadSpan = ReturnType<typeof span> & { readonly resource: Attributes };

/** The spans of a request's body, with the attributes of what has made them. */
export function readSpans(body: string): ReadSpan[] {
  const json: unknown = JSON.parse(body);
  assert.doesNotMatch(JSON.stringify(json), /\\ud[89a-f]/, "text without UTF-8");
  return request(json).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((each) => ({ ...each, resource: resource.attributes })),
    ),
  );
}
