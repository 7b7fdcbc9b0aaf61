// Every error that a client can get, in one table: condition (its code) to HTTP status and type. WIRE.md 4.2. All that is thrown ends
// in `toApiError`. A code of a provider's fault also stands in dialects/dialect.ts, dialects/faults.ts and routing/failure.ts.
import { CheckError, pathText, type Fault } from "./checker.ts";

const TYPES = {
  invalid_request_error: {
    malformed_request: 400, invalid_json: 400, missing_required_parameter: 400, invalid_type: 400, invalid_value: 400,
    invalid_parameter_combination: 400, unsupported_value: 400, context_length_exceeded: 400, content_filter: 400,
    upstream_rejected: 400, unknown_url: 404, model_not_found: 404, method_not_allowed: 405, request_timeout: 408,
    request_too_large: 413, unsupported_media_type: 415, expectation_failed: 417, headers_too_large: 431,
  },
  authentication_error: { missing_api_key: 401, invalid_api_key: 401, api_key_disabled: 401 },
  permission_error: { model_not_allowed: 403 },
  rate_limit_error: { rate_limit_exceeded: 429 },
  service_unavailable_error: {
    model_unavailable: 503, model_overloaded: 503, upstream_timeout: 503, upstream_error: 503, server_overloaded: 503,
  },
  server_error: { internal_error: 500 },
} as const;

type Types = typeof TYPES;
export type ErrorCode = { [type in keyof Types]: keyof Types[type] }[keyof Types];

const BY_CODE: ReadonlyMap<string, { readonly status: number; readonly type: string }> = new Map(
  Object.entries(TYPES).flatMap(([type, codes]) => Object.entries(codes).map(([code, status]) => [code, { status, type }])),
);

export interface ErrorDetail {
  /** The path of the request field that is to blame: `messages[2].role`. */
  readonly param?: string | null;
  /** Headers that belong to this error, such as Retry-After or Allow. */
  readonly headers?: Readonly<Record<string, string>>; readonly cause?: unknown;
}

/** An error as the client will see it. Its message is for the client's eyes: no provider, address, key or stack. */
export class ApiError extends Error {
  readonly code: ErrorCode; readonly param: string | null; readonly headers: Readonly<Record<string, string>>;
  readonly status!: number; readonly type!: string;
  constructor(code: ErrorCode, message: string, { param = null, headers, cause }: ErrorDetail = {}) {
    super(message, { cause });
    Object.assign(this, BY_CODE.get(code));
    this.code = code;
    this.param = param;
    // SDKs retry 5xx by themselves; each retry of these would buy a long generation again, or meet the same bug (WIRE 4.5).
    const noRetry = code === "upstream_timeout" || code === "internal_error";
    this.headers = { ...headers, ...(noRetry && { "x-should-retry": "false" }) };
  }
}

/** The JSON body of an error (SPEC "Errors"; `param` is WIRE.md 4.1's). */
export const errorBody = ({ message, type, code, param }: ApiError, requestId: string) =>
  ({ error: { message, type, code, param, request_id: requestId } });

/** Whatever was thrown, as the client may see it: what is neither kind of error is a bare 500, its detail kept for the log. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const fault: Fault | undefined = thrown instanceof CheckError ? thrown.faults[0] : undefined;
  if (!fault) return new ApiError("internal_error", "The gateway failed to handle this request.", { cause: thrown });
  const param = pathText(fault.path) || null;
  return new ApiError(fault.code, `${param === null ? "The request body" : `Invalid '${param}'`}: ${fault.message}.`, { param });
}
