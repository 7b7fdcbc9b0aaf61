// Spans in the JSON of the OpenTelemetry Protocol: ids in hexadecimal digits, times and 64-bit
// integers as decimal strings, enums as integers. https://opentelemetry.io/docs/specs/otlp/
import type { TraceContext } from "./trace-context.ts";

/** The most characters of a text, as in the access log: some texts come from clients. */
const MAX_CHARS = 512;

export const SERVER = 2;
export const CLIENT = 3;

/** Undefined and null: the attribute is absent. */
export type Value = string | number | readonly string[] | null | undefined;
export type Values = Readonly<Record<string, Value>>;

export interface Span {
  /** The trace to which the span belongs. */
  readonly context: TraceContext;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Undefined: the span is the root of its trace. */
  readonly parentId: string | undefined;
  /** SERVER: a client's request; its parent span, if any, is remote. CLIENT: an attempt. */
  readonly kind: typeof SERVER | typeof CLIENT;
  /** Must have few different values. */
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Milliseconds since 1970. */
  readonly endedAt: number;
  /** Named by OpenTelemetry's conventions where these have a name. */
  readonly attributes: Values;
  /** Milliseconds since 1970. Undefined: no token arrived. */
  readonly firstTokenAt?: number | undefined;
  /** Whether it failed. A client's mistake is no failure of the request's span. */
  readonly isError: boolean;
}

// Flags: HAS_IS_REMOTE says that the bit IS_REMOTE, whether the parent is remote, is valid.
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;
const STATUS_ERROR = 2;

/** Milliseconds as nanoseconds, exact to the microsecond. */
const nanos = (ms: number): string => `${Math.round(ms * 1_000)}000`;

/** Truncated, and without lone surrogates, which UTF-8 cannot encode. */
const clean = (text: string): string => Buffer.from(text.slice(0, MAX_CHARS)).toString();

function anyValue(value: NonNullable<Value>): object {
  if (typeof value === "string") return { stringValue: clean(value) };
  if (typeof value !== "number")
    return { arrayValue: { values: value.map((text) => ({ stringValue: clean(text) })) } };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

const keyValues = (values: Values): object[] =>
  Object.entries(values).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [{ key, value: anyValue(value) }],
  );

export function spanText(span: Span): string {
  const { context, parentId, startedAt, endedAt, firstTokenAt } = span;
  const remote = span.kind === SERVER && parentId !== undefined ? IS_REMOTE : 0;
  const events = [];
  if (firstTokenAt !== undefined) {
    // Its time is rounded to milliseconds, but an event must lie within its span.
    const time = Math.min(endedAt, Math.max(startedAt, firstTokenAt));
    events.push({ name: "first_token", timeUnixNano: nanos(time) });
  }
  return JSON.stringify({
    traceId: context.traceId,
    spanId: span.spanId,
    traceState: context.state || undefined,
    parentSpanId: parentId,
    flags: context.flags | HAS_IS_REMOTE | remote,
    name: clean(span.name),
    kind: span.kind,
    startTimeUnixNano: nanos(startedAt),
    endTimeUnixNano: nanos(endedAt),
    attributes: keyValues(span.attributes),
    events,
    status: span.isError ? { code: STATUS_ERROR } : {},
  });
}

/** The returned function joins spans, which are JSON already, to the body of a request. */
export function createEnvelope(resource: Values): (spans: readonly string[]) => string {
  const head = JSON.stringify({ attributes: keyValues(resource) });
  const scope = JSON.stringify({ name: "chat-gateway" });
  return (spans) =>
    `{"resourceSpans":[{"resource":${head},"scopeSpans":[{"scope":${scope},` +
    `"spans":[${spans.join()}]}]}]}`;
}
