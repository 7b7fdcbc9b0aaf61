// A JSON request to any path of a gateway, for tests of the further client APIs.

import { KEY } from "../../support/gateway.ts";

/** `body`: a string is sent unchanged. */
export const post = (url: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${KEY}`, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
