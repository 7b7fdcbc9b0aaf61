// Spans in the JSON of the OpenTelemetry Protocol: ids in hexadecimal digits, times and 64-bit
// integers as decimal strings, enums as integers. https://opentelemetry.io/docs/specs/otlp/
import type { TraceContext } from "./trace-context.ts";

/**
 * Characters of a text. Some texts come from clients; the access log cuts them at the same length.
 */
const MAX_CHARS = 512;

export const SERVER = 2;
export const CLIENT = 3;

/** Undefined and null: the attribute is absent. */
export type Value = string | number | readonly string[] | null | undefined;
export type Values = Readonly<Record<string, Value>>;

export interface Span {
  /** The trace that it belongs to. */
  readonly context: TraceContext;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Undefined: it is the root of its trace. */
  readonly parentId: string | undefined;
  /** SERVER: a request of a client, its parent is of another process. CLIENT: an attempt. */
  readonly kind: typeof SERVER | typeof CLIENT;
  /** Has few different values, as names of spans must. */
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Milliseconds since 1970. */
  readonly endedAt: number;
  /** By the names of OpenTelemetry's conventions where these have one. */
  readonly attributes: Values;
  /** Milliseconds since 1970. Undefined: it has no such event. */
  readonly firstTokenAt?: number | undefined;
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

const keyValues = (values: Values): object[] =>
  Object.entries(values).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [{ key, value: anyValue(value) }],
  );

/** A span as JSON. */
export function spanText(span: Span): string {
  const { context, parentId, startedAt, endedAt, firstTokenAt } = span;
  const remote = span.kind === SERVER && parentId !== undefined ? IS_REMOTE : 0;
  const events = [];
  if (firstTokenAt !== undefined) {
    // It is known to the millisecond, and an event lies within its span.
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

/** Makes the body of a request to the collector of spans that are JSON already. */
export function createEnvelope(resource: Values): (spans: readonly string[]) => string {
  const head = JSON.stringify({ attributes: keyValues(resource) });
  const scope = JSON.stringify({ name: "chat-gateway" });
  return (spans) =>
    `{"resourceSpans":[{"resource":${head},"scopeSpans":[{"scope":${scope},` +
    `"spans":[${spans.join()}]}]}]}`;
}
