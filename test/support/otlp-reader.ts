// A strict reader of OTLP/HTTP requests with traces in JSON. It takes the messages of the protocol
// (opentelemetry/proto/trace/v1/trace.proto) and nothing else: an unknown field, a number where the
// JSON mapping has a string, an id of the wrong length or in base64, all fail the test.

import assert from "node:assert/strict";

export type AttributeValue = string | number | boolean | readonly AttributeValue[];

export interface ReadEvent {
  readonly name: string;
  readonly time: bigint;
}

export interface ReadSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: the root of its trace. */
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly flags: number;
  readonly name: string;
  readonly kind: number;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly events: readonly ReadEvent[];
  /** 0 unset, 1 ok, 2 error. */
  readonly status: number;
  /** Attributes of what has made it. */
  readonly resource: Readonly<Record<string, AttributeValue>>;
}

type Fields = Readonly<Record<string, unknown>>;

function message(value: unknown, what: string, names: readonly string[]): Fields {
  assert.ok(
    typeof value === "object" && value !== null && !Array.isArray(value),
    `${what}: object`,
  );
  const unknown = Object.keys(value).filter((name) => !names.includes(name));
  assert.deepEqual(unknown, [], `${what}: fields that there are not`);
  return value as Fields;
}

function list(value: unknown, what: string): readonly unknown[] {
  if (value === undefined) return [];
  assert.ok(Array.isArray(value), `${what}: array`);
  return value;
}

function text(value: unknown, what: string): string {
  assert.equal(typeof value, "string", `${what}: string`);
  const string = value as string;
  assert.equal(Buffer.from(string).toString(), string, `${what}: text without UTF-8`);
  return string;
}

function hex(value: unknown, digits: number, what: string): string {
  const id = text(value, what);
  assert.match(id, new RegExp(`^[0-9a-f]{${digits}}$`), what);
  assert.doesNotMatch(id, /^0+$/, what);
  return id;
}

function uint(value: unknown, max: number, what: string): number {
  assert.ok(Number.isInteger(value), `${what}: integer`);
  assert.ok((value as number) >= 0 && (value as number) <= max, `${what}: 0 to ${max}`);
  return value as number;
}

/** fixed64: a decimal string. */
function nanoseconds(value: unknown, what: string): bigint {
  assert.match(text(value, what), /^[1-9]\d{0,19}$/, what);
  const time = BigInt(value as string);
  assert.ok(time < 1n << 64n, what);
  return time;
}

const VALUES: Readonly<Record<string, (value: unknown, what: string) => AttributeValue>> = {
  stringValue: text,
  boolValue(value, what) {
    assert.equal(typeof value, "boolean", what);
    return value as boolean;
  },
  intValue(value, what) {
    assert.match(text(value, what), /^(0|-?[1-9]\d{0,18})$/, what);
    return Number(value);
  },
  doubleValue(value, what) {
    assert.ok(Number.isFinite(value), what);
    return value as number;
  },
  arrayValue(value, what) {
    const { values } = message(value, what, ["values"]);
    return list(values, what).map((item) => anyValue(item, what));
  },
};

function anyValue(value: unknown, what: string): AttributeValue {
  const entries = Object.entries(message(value, what, Object.keys(VALUES)));
  assert.equal(entries.length, 1, `${what}: exactly one kind of value`);
  const [[kind, inner]] = entries as [[string, unknown]];
  return VALUES[kind]!(inner, `${what}.${kind}`);
}

function attributes(value: unknown, what: string): Record<string, AttributeValue> {
  const read: Record<string, AttributeValue> = {};
  for (const item of list(value, what)) {
    const pair = message(item, what, ["key", "value"]);
    const key = text(pair["key"], `${what}.key`);
    assert.ok(key !== "" && !Object.hasOwn(read, key), `${what}: ${key} stands twice or is empty`);
    read[key] = anyValue(pair["value"], `${what}.${key}`);
  }
  return read;
}

const SPAN_FIELDS = [
  ...["traceId", "spanId", "traceState", "parentSpanId", "flags", "name", "kind"],
  ...["startTimeUnixNano", "endTimeUnixNano", "attributes", "droppedAttributesCount", "events"],
  ...["droppedEventsCount", "links", "droppedLinksCount", "status"],
];

function event(value: unknown): ReadEvent {
  const fields = message(value, "event", ["timeUnixNano", "name", "attributes"]);
  attributes(fields["attributes"], "event.attributes");
  return {
    name: text(fields["name"], "event.name"),
    time: nanoseconds(fields["timeUnixNano"], "event.timeUnixNano"),
  };
}

function span(value: unknown, resource: ReadSpan["resource"]): ReadSpan {
  const fields = message(value, "span", SPAN_FIELDS);
  const { parentSpanId: parent, traceState = "", flags = 0 } = fields;
  const status = message(fields["status"] ?? {}, "status", ["message", "code"]);
  if (status["message"] !== undefined) text(status["message"], "status.message");
  const read = {
    traceId: hex(fields["traceId"], 32, "traceId"),
    spanId: hex(fields["spanId"], 16, "spanId"),
    parentSpanId: parent === undefined || parent === "" ? "" : hex(parent, 16, "parentSpanId"),
    traceState: text(traceState, "traceState"),
    flags: uint(flags, 0xffff_ffff, "flags"),
    name: text(fields["name"], "name"),
    kind: uint(fields["kind"], 5, "kind"),
    start: nanoseconds(fields["startTimeUnixNano"], "startTimeUnixNano"),
    end: nanoseconds(fields["endTimeUnixNano"], "endTimeUnixNano"),
    attributes: attributes(fields["attributes"], "attributes"),
    events: list(fields["events"], "events").map(event),
    status: uint(status["code"] ?? 0, 2, "status.code"),
    resource,
  };
  assert.ok(read.name !== "", "a span has a name");
  assert.ok(read.end >= read.start, "a span ends after its start");
  for (const { time } of read.events)
    assert.ok(time >= read.start && time <= read.end, "an event lies within its span");
  return read;
}

/** The spans of a request's body. */
export function readSpans(body: string): ReadSpan[] {
  const request = message(JSON.parse(body), "request", ["resourceSpans"]);
  return list(request["resourceSpans"], "resourceSpans").flatMap((item) => {
    const group = message(item, "resourceSpans", ["resource", "scopeSpans", "schemaUrl"]);
    const described = message(group["resource"], "resource", ["attributes"]);
    const resource = attributes(described["attributes"], "resource.attributes");
    return list(group["scopeSpans"], "scopeSpans").flatMap((inner) => {
      const scoped = message(inner, "scopeSpans", ["scope", "spans", "schemaUrl"]);
      const scope = message(scoped["scope"], "scope", ["name", "version"]);
      text(scope["name"], "scope.name");
      return list(scoped["spans"], "spans").map((each) => span(each, resource));
    });
  });
}
