// Reads OTLP/HTTP requests with traces in JSON (opentelemetry/proto/trace/v1/trace.proto). It does
// not check for unknown fields: the protocol's own reader does (test/clients/telemetry.test.ts).

import assert from "node:assert/strict";

type AttributeValue = string | number | boolean | readonly AttributeValue[];
type Attributes = Readonly<Record<string, AttributeValue>>;

export interface ReadSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: the span is the root of its trace. */
  readonly parentSpanId: string;
  readonly traceState: string | undefined;
  readonly flags: number;
  readonly name: string;
  readonly kind: number;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Attributes;
  readonly events: readonly { readonly name: string; readonly time: bigint }[];
  /** 0 unset, 1 ok, 2 error. */
  readonly status: number;
  /** The attributes of the resource that made the span. */
  readonly resource: Attributes;
}

/** Reads a value, which must have exactly one kind. Integers are written as strings. */
function valueIn(kinds: Record<string, any>): AttributeValue {
  const [[kind = "", value] = [], ...others] = Object.entries(kinds);
  assert.deepEqual(others, []);
  if (kind === "arrayValue") return value.values.map(valueIn);
  assert.equal(typeof value, { boolValue: "boolean", doubleValue: "number" }[kind] ?? "string");
  return kind === "intValue" ? Number(value) : value;
}

function attributesIn(pairs: readonly { key: string; value: object }[]): Attributes {
  const read = Object.fromEntries(pairs.map(({ key, value }) => [key, valueIn(value)]));
  assert.equal(Object.keys(read).length, pairs.length, "a key is there twice");
  return read;
}

function spanIn(span: any, resource: Attributes): ReadSpan {
  const { startTimeUnixNano, endTimeUnixNano, attributes, status = {}, ...rest } = span;
  const { parentSpanId = "", ...ids } = rest;
  const [start, end] = [BigInt(startTimeUnixNano), BigInt(endTimeUnixNano)];
  assert.ok(end >= start, "a span ends after its start");
  const events = (span.events ?? []).map(({ name, timeUnixNano: time }: any) => {
    assert.ok(BigInt(time) >= start && BigInt(time) <= end, "an event lies within its span");
    return { name, time: BigInt(time) };
  });
  assert.match(`${span.traceId} ${span.spanId}`, /^[0-9a-f]{32} [0-9a-f]{16}$/);
  const read = { start, end, events, attributes: attributesIn(attributes), resource };
  return { flags: 0, ...ids, parentSpanId, ...read, status: status.code ?? 0 };
}

/** The spans in the body of a request, each with the attributes of its resource. */
export function readSpans(body: string): ReadSpan[] {
  const { resourceSpans } = JSON.parse(body);
  assert.doesNotMatch(JSON.stringify(resourceSpans), /\\ud[89a-f]/, "text without UTF-8");
  return resourceSpans.flatMap(({ resource, scopeSpans }: any) => {
    const made = attributesIn(resource.attributes);
    return scopeSpans.flatMap(({ spans }: any) => spans.map((span: any) => spanIn(span, made)));
  });
}
