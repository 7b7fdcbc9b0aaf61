// W3C Trace Context: the headers traceparent and tracestate, strictly by
// https://www.w3.org/TR/trace-context/. If traceparent is malformed, both headers are ignored; if
// tracestate is, only tracestate.
import type { IncomingHttpHeaders } from "node:http";

/** The position of a request in a trace. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** The client's span: 16 such digits. Undefined: the trace begins here. */
  readonly parentId: string | undefined;
  /** Bit 0: the trace is sampled. Bit 1: the trace id is random. */
  readonly flags: number;
  /** The tracestate: data of other tracing systems. Empty: none. */
  readonly state: string;
}

const SAMPLED = 1;
/** The flags that the standard defines. Others are not passed on. */
const KNOWN_FLAGS = 3;

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;

/** Members of a tracestate. */
const MAX_MEMBERS = 32;
/** A key, and a value of printable ASCII without comma and equals sign. */
const MEMBER = /^([a-z0-9][a-z0-9_\-*/@]{0,255})=[ -+\--<>-~]{1,256}$/;

export const isSampled = ({ flags }: TraceContext): boolean => (flags & SAMPLED) === SAMPLED;

/** The context of a trace that begins here. */
export const newContext = (traceId: string): TraceContext => ({
  traceId,
  parentId: undefined,
  flags: SAMPLED,
  state: "",
});

/** The trace in a client's headers. Undefined: there is none, or no valid one. */
export function readContext(headers: IncomingHttpHeaders): TraceContext | undefined {
  // Node joins repeated headers, which makes a repeated traceparent invalid.
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== "string") return undefined;
  const [, version, traceId = "", parentId = "", flags = "", rest] =
    TRACEPARENT.exec(traceparent) ?? [];
  if (version === undefined || version === "ff") return undefined;
  // Version 00 has these four fields. Later ones may append others.
  if (version === "00" && rest !== undefined) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(parentId)) return undefined;
  const state = typeof tracestate === "string" ? validState(tracestate) : "";
  return { traceId, parentId, flags: Number.parseInt(flags, 16) & KNOWN_FLAGS, state };
}

/** The list without blanks around its members; empty if it is invalid. */
function validState(text: string): string {
  const members = text.split(",").map((member) => member.trim());
  const filled = members.filter((member) => member !== "");
  const keys = new Set(filled.map((member) => MEMBER.exec(member)?.[1]));
  const isValid = filled.length <= MAX_MEMBERS && keys.size === filled.length;
  return isValid && !keys.has(undefined) ? filled.join(",") : "";
}

/** The headers for a provider. The span with this id becomes the parent of the provider's. */
export function contextHeaders(
  { traceId, flags, state }: TraceContext,
  spanId: string,
): Readonly<Record<string, string>> {
  const traceparent = `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;
  return state === "" ? { traceparent } : { traceparent, tracestate: state };
}
