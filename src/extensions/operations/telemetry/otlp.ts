// Spans in the JSON of the OpenTelemetry Protocol: ids in hexadecimal digits, times and 64-bit
// integers as decimal strings, enums as integers. https://opentelemetry.io/docs/specs/otlp/

/**
 * Characters of a text. Some texts come from clients; the access log cuts them at the same length.
 */
const MAX_CHARS = 512;

export const SERVER = 2;
export const CLIENT = 3;

/** Undefined and null: the attribute is absent. */
export type Value = string | number | readonly string[] | null | undefined;
export type Values = Readonly<Record<string, Value>>;

export interface SpanEvent {
  /** The name of the event: `first_token`. */
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface Span {
  /** 32 hexadecimal digits. The client's, if it sent a traceparent. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Undefined: it is the root of its trace. */
  readonly parentId: string | undefined;
  /** The parent is a span of another process. */
  readonly isParentRemote: boolean;
  /** The flags of its trace. */
  readonly flags: number;
  /** Its tracestate. */
  readonly state: string;
  /** SERVER: a request of a client. CLIENT: an attempt at a provider. */
  readonly kind: typeof SERVER | typeof CLIENT;
  /** Has few different values, as names of spans must. */
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Milliseconds since 1970. */
  readonly endedAt: number;
  /** By the names of OpenTelemetry's conventions where these have one. */
  readonly attributes: Values;
  /** The events in it, in order. Empty: there are none. */
  readonly events: readonly SpanEvent[];
  /** It failed. A request that was refused for its client's mistake did not. */
  readonly isError: boolean;
}

/** Whether the parent is remote is known, and is. */
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;
const STATUS_ERROR = 2;

/** Nanoseconds of milliseconds, exact to the microsecond. */
const nanos = (ms: number): string => `${Math.round(ms * 1_000)}000`;

/** Cut, and without halves of surrogate pairs, which no UTF-8 has. */
const clean = (text: string): string => Buffer.from(text.slice(0, MAX_CHARS)).toString();

function anyValue(value: NonNullable<Value>): object {
  if (typeof value === "string") return { stringValue: clean(value) };
  if (typeof value !== "number")
    return { arrayValue: { values: value.map((text) => ({ stringValue: clean(text) })) } };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

function keyValues(values: Values): object[] {
  const list: object[] = [];
  for (const [key, value] of Object.entries(values))
    if (value !== undefined && value !== null) list.push({ key, value: anyValue(value) });
  return list;
}

/** A span as JSON. */
export function spanText(span: Span): string {
  const remote = span.isParentRemote ? IS_REMOTE : 0;
  return JSON.stringify({
    traceId: span.traceId,
    spanId: span.spanId,
    traceState: span.state || undefined,
    parentSpanId: span.parentId,
    flags: span.flags | HAS_IS_REMOTE | remote,
    name: clean(span.name),
    kind: span.kind,
    startTimeUnixNano: nanos(span.startedAt),
    endTimeUnixNano: nanos(Math.max(span.startedAt, span.endedAt)),
    attributes: keyValues(span.attributes),
    events: span.events.map(({ name, at }) => ({ name, timeUnixNano: nanos(at) })),
    status: span.isError ? { code: STATUS_ERROR } : {},
  });
}

/** Makes the body of a request to the collector of spans that are JSON already. */
export function createEnvelope(resource: Values): (spans: readonly string[]) => string {
  const head = JSON.stringify({ attributes: keyValues(resource) });
  const scope = JSON.stringify({ name: "chat-gateway" });
  return (spans) =>
    `{"resourceSpans":[{"resource":${head},"scopeSpans":[{"scope":${scope},` +
    `"spans":[${spans.join()}]}]}]}`;
}
