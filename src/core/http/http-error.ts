// What can be wrong with a request as HTTP, whatever it asks for. The server is given a function
// that renders these errors, and all others, for the client.

/** What is wrong with a request, or with the way in which it arrived. */
export type HttpErrorReason =
  | "malformed_request"
  | "missing_host"
  | "expectation_failed"
  | "unknown_url"
  | "method_not_allowed"
  | "headers_too_large"
  | "request_timeout"
  | "unsupported_media_type"
  | "request_too_large"
  | "empty_body"
  | "invalid_utf8";

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
