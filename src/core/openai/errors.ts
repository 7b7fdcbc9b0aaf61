// Every error that a client can get: errors.json has the HTTP status and the type of each condition (its code). WIRE.md 4.2. All that is
// thrown ends in `toApiError`. A code of a provider's fault also stands in dialects/dialect.ts and routing/failure.ts.
import { ValidationError, pathText } from "../schema/checker.ts";
import table from "./errors.json" with { type: "json" };

/** Status and type of every error, by its code. The manual's table is made from it. */
export const ERRORS = table;
export type ErrorCode = keyof typeof table;
/** `param`: the path of the request field that is to blame, `messages[2].role`; `headers`: those of this error, such as Allow. */
interface ErrorDetail {
  readonly param?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error as the client will see it. Its message is for the client's eyes: no provider, address, key or stack. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
  readonly type: string;
  constructor(
    code: ErrorCode,
    message: string,
    { param = null, headers, cause }: ErrorDetail = {},
  ) {
    super(message, { cause });
    ({ status: this.status, type: this.type } = table[code]);
    this.code = code;
    this.param = param;
    // SDKs retry 5xx by themselves; each retry of these would buy a long generation again, or meet the same bug (WIRE 4.5).
    const noRetry = code === "upstream_timeout" || code === "internal_error";
    this.headers = { ...headers, ...(noRetry && { "x-should-retry": "false" }) };
  }
}

/** The JSON body of an error (SPEC "Errors"; `param` is WIRE.md 4.1's). */
export const errorBody = ({ message, type, code, param }: ApiError, request_id: string) => ({
  error: { message, type, code, param, request_id },
});

/** Whatever was thrown, as the client may see it: what is neither kind of error is a bare 500, its detail kept for the log. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const fault = thrown instanceof ValidationError ? thrown.faults[0] : undefined;
  if (!fault)
    return new ApiError("internal_error", "The gateway failed to handle this request.", {
      cause: thrown,
    });
  const param = pathText(fault.path) || null;
  return new ApiError(
    fault.code,
    `${param === null ? "The request body" : `Invalid '${param}'`}: ${fault.message}.`,
    { param },
  );
}
