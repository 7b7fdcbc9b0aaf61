// Clients that try a WebSocket first, such as Codex: they take 426 as the word to go on over HTTP.
import { ApiError } from "../../../core/openai/errors.ts";
import type { Guard } from "../../../core/http/request-listener.ts";
import { pathOf } from "../../../core/http/router.ts";

/** A 426 names the protocols that are served (RFC 9110 15.5.22). */
const HEADERS = { Upgrade: "HTTP/1.1", Connection: "Upgrade" };

/** Throws the 426 for the beginning of a WebSocket at `path`. */
export const refuseWebSockets =
  (path: string): Guard =>
  ({ req: { method, url = "", headers } }) => {
    const isHandshake = method === "GET" && /\bwebsocket\b/i.test(headers.upgrade ?? "");
    if (!isHandshake || pathOf(url) !== path) return;
    const message = "There is no WebSocket here; send the request by POST, with stream: true.";
    throw new ApiError("upgrade_required", message, { headers: HEADERS });
  };
