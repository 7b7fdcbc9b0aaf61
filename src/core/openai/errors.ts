// Every error that a client can get: the HTTP status and the type of each condition. errors.md.
// Whatever is thrown while a request is handled becomes one of them in `toApiError`.
import { pathText, ValidationError } from "../schema/checker.ts";

/** By the error's code. */
export const ERRORS = {
  malformed_request: { status: 400, type: "invalid_request_error" },
  invalid_json: { status: 400, type: "invalid_request_error" },
  missing_required_parameter: { status: 400, type: "invalid_request_error" },
  invalid_type: { status: 400, type: "invalid_request_error" },
  invalid_value: { status: 400, type: "invalid_request_error" },
  invalid_parameter_combination: { status: 400, type: "invalid_request_error" },
  unsupported_value: { status: 400, type: "invalid_request_error" },
  context_length_exceeded: { status: 400, type: "invalid_request_error" },
  content_filter: { status: 400, type: "invalid_request_error" },
  upstream_rejected: { status: 400, type: "invalid_request_error" },
  unknown_url: { status: 404, type: "invalid_request_error" },
  model_not_found: { status: 404, type: "invalid_request_error" },
  method_not_allowed: { status: 405, type: "invalid_request_error" },
  request_timeout: { status: 408, type: "invalid_request_error" },
  request_too_large: { status: 413, type: "invalid_request_error" },
  unsupported_media_type: { status: 415, type: "invalid_request_error" },
  expectation_failed: { status: 417, type: "invalid_request_error" },
  upgrade_required: { status: 426, type: "invalid_request_error" },
  headers_too_large: { status: 431, type: "invalid_request_error" },
  missing_api_key: { status: 401, type: "authentication_error" },
  invalid_api_key: { status: 401, type: "authentication_error" },
  api_key_disabled: { status: 401, type: "authentication_error" },
  model_not_allowed: { status: 403, type: "permission_error" },
  insufficient_balance: { status: 402, type: "billing_error" },
  invalid_password: { status: 401, type: "authentication_error" },
  host_not_allowed: { status: 403, type: "permission_error" },
  origin_not_allowed: { status: 403, type: "permission_error" },
  rate_limit_exceeded: { status: 429, type: "rate_limit_error" },
  tokens_per_minute_exceeded: { status: 429, type: "rate_limit_error" },
  concurrency_limit_exceeded: { status: 429, type: "rate_limit_error" },
  model_unavailable: { status: 503, type: "service_unavailable_error" },
  model_overloaded: { status: 503, type: "service_unavailable_error" },
  upstream_timeout: { status: 503, type: "service_unavailable_error" },
  upstream_error: { status: 503, type: "service_unavailable_error" },
  server_overloaded: { status: 503, type: "service_unavailable_error" },
  internal_error: { status: 500, type: "server_error" },
} as const;

export type ErrorCode = keyof typeof ERRORS;

interface ErrorDetail {
  /** The path of the request field with the error: `messages[2].role`. Absent or null: none. */
  readonly param?: string | null;
  /** Headers of the answer, such as Allow. Absent: none but the usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The original exception, for the log only. */
  readonly cause?: unknown;
}

/** The detail of an error after which the client may retry after a second. */
export const SOON: ErrorDetail = { headers: { "Retry-After": "1" } };

/**
 * An error as the client sees it. Its message never names a provider, an address, a key or a stack.
 */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;
  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}) {
    super(message, { cause: detail.cause });
    this.code = code;
    this.status = ERRORS[code].status;
    this.type = ERRORS[code].type;
    this.param = detail.param ?? null;
    // Some clients retry every error. Below 500, a retry helps only with 408, 409 and 429. After a
    // timeout, a retry would pay for a long generation again. After a bug, it would meet the same
    // bug (wire.md "Retries").
    const isRefused = this.status < 500 && ![408, 409, 429].includes(this.status);
    const noRetry = isRefused || code === "upstream_timeout" || code === "internal_error";
    this.headers = { ...detail.headers, ...(noRetry && { "x-should-retry": "false" }) };
  }
}

/** The JSON body of an error (contract.md "Errors", wire.md "Error body"). */
export const errorBody = ({ message, type, code, param }: ApiError, request_id: string) => ({
  error: { message, type, code, param, request_id },
});

/**
 * The client's error for anything thrown. An unknown throw is a bare 500: its detail goes to the
 * log only.
 */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const issue = thrown instanceof ValidationError ? thrown.issues[0] : undefined;
  if (!issue)
    return new ApiError("internal_error", "The gateway failed to handle this request.", {
      cause: thrown,
    });
  const param = pathText(issue.path) || null;
  const subject = param === null ? "The request body" : `Invalid '${param}'`;
  return new ApiError(issue.code, `${subject}: ${issue.message}.`, { param });
}
