// Where clients of further APIs put their key: in `x-api-key`, or where all others put it.
import type { IncomingHttpHeaders } from "node:http";

/** The key as an Authorization header. Undefined: there is none. */
export function authorization(headers: IncomingHttpHeaders): string | undefined {
  const key = headers["x-api-key"];
  return headers.authorization ?? (typeof key === "string" ? `Bearer ${key}` : undefined);
}
