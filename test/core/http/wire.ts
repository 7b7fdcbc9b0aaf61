// Requests as bytes, connections that record what they receive, and a server for them.

import net from "node:net";
import { systemClock } from "../../../src/core/clock.ts";
import { renderError, shuttingDown } from "../../../src/core/error-responses.ts";
import type { Routes } from "../../../src/core/http/exchange.ts";
import { createServer, type ServerOptions } from "../../../src/core/http/server.ts";
import type { Scope } from "../../support/scope.ts";

/** A request head and what follows it. `line`: method, target and (default 1.1) version. */
export function bytesOf(line: string, fields: readonly string[] = [], rest = ""): string {
  const first = / HTTP\//.test(line) ? line : `${line} HTTP/1.1`;
  return [first, "Host: x", ...fields, "", rest].join("\r\n");
}

/** A chat request with Content-Length, unless a field frames the body. */
export function chatBytes(key: string, body: string, fields: readonly string[] = []): string {
  const isFramed = fields.some((field) => /^(content-length|transfer-encoding):/i.test(field));
  const length = isFramed ? [] : [`Content-Length: ${body.length}`];
  const all = [`Authorization: Bearer ${key}`, "Content-Type: application/json", ...fields];
  return bytesOf("POST /v1/chat/completions", [...all, ...length], body);
}

export type Wire = ReturnType<typeof connect>;

/** Connects, and writes the bytes. */
export function connect(t: Scope, url: string, bytes: string) {
  const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
  t.after(() => socket.destroy());
  let text = "";
  socket.on("error", () => undefined);
  socket.on("data", (data: Buffer) => (text += data.toString()));
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write(bytes);
  return {
    socket,
    /** The text received so far. */
    text: () => text,
    /** The number of responses that have begun in it. */
    responses: () => text.match(/HTTP\/1\.1 /g)?.length ?? 0,
    /** Resolves when the connection is closed. */
    closed,
  };
}

/** Starts a server with these routes, and records the statuses in its access log. */
export async function serve(
  t: Scope,
  routes: Routes,
  over: Partial<ServerOptions> = {},
  clock = systemClock,
) {
  const statuses: number[] = [];
  const server = createServer(
    routes,
    { host: "127.0.0.1", port: 0, receive_ms: 60_000, send_ms: 30_000, ...over },
    {
      clock,
      renderError,
      access: ({ status }) => statuses.push(status),
      failed: (_, error) => {
        throw error;
      },
    },
  );
  const close = (ms: number) => server.close(ms, shuttingDown());
  t.after(() => close(0));
  return { url: await server.listen(), statuses, close };
}
