// Errors of a request as HTTP, independent of its content. The server is given a function that
// renders these errors, and all others, for the client.

/** The code of the error that the client gets (openai/errors.ts). */
export type HttpErrorReason =
  | "malformed_request"
  | "expectation_failed"
  | "unknown_url"
  | "method_not_allowed"
  | "headers_too_large"
  | "request_timeout"
  | "unsupported_media_type"
  | "request_too_large"
  | "invalid_json"
  | "server_overloaded";

/** Headers of a response, by name. */
export type ResponseHeaders = Readonly<Record<string, string>>;

/** The message is for the client. */
export class HttpError extends Error {
  readonly reason: HttpErrorReason;
  /** Headers that the response must have, such as Allow. */
  readonly headers: ResponseHeaders;

  constructor(reason: HttpErrorReason, message: string, headers: ResponseHeaders = {}) {
    super(message);
    this.reason = reason;
    this.headers = headers;
  }
}
