// W3C Trace Context: what the headers traceparent and tracestate say, strictly by
// https://www.w3.org/TR/trace-context/. A malformed traceparent is as good as none, and takes
// tracestate with it; a malformed tracestate is dropped alone.
import type { IncomingHttpHeaders } from "node:http";

/** Where a request stands in a trace. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** The span of the one who sent it: 16 such digits. Undefined: the trace begins here. */
  readonly parentId: string | undefined;
  /** Bit 0: the trace is recorded. Bit 1: the trace id is random. */
  readonly flags: number;
  /** Of other tracing systems, as it came. Empty: nothing. */
  readonly state: string;
}

const SAMPLED = 1;
/** The flags that have a meaning. Others are not handed on. */
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
  // Node joins a header that stands twice, and the result is not valid.
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

/** The list as it came, without blanks around its members; empty if it is not valid. */
function validState(text: string): string {
  const members = text.split(",").map((member) => member.trim());
  const filled = members.filter((member) => member !== "");
  const keys = new Set(filled.map((member) => MEMBER.exec(member)?.[1]));
  const isValid = filled.length <= MAX_MEMBERS && keys.size === filled.length;
  return isValid && !keys.has(undefined) ? filled.join(",") : "";
}

/** The headers for a provider, whose parent is the span with this id. */
export function contextHeaders(
  { traceId, flags, state }: TraceContext,
  spanId: string,
): Readonly<Record<string, string>> {
  const traceparent = `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;
  return state === "" ? { traceparent } : { traceparent, tracestate: state };
}
