// Requests as bytes, and connections whose bytes are collected.

import net from "node:net";
import type { Scope } from "../../support/scope.ts";

/** The head of a request, and what follows it. `line`: method, target and, if it is not 1.1, version. */
export function bytesOf(line: string, fields: readonly string[] = [], rest = ""): string {
  const first = / HTTP\//.test(line) ? line : `${line} HTTP/1.1`;
  return [first, "Host: x", ...fields, "", rest].join("\r\n");
}

/** A chat request. Its length is stated unless a field says how long it is. */
export function chatBytes(key: string, body: string, fields: readonly string[] = []): string {
  const isFramed = fields.some((field) => /^(content-length|transfer-encoding):/i.test(field));
  const length = isFramed ? [] : [`Content-Length: ${body.length}`];
  const all = [`Authorization: Bearer ${key}`, "Content-Type: application/json", ...fields];
  return bytesOf("POST /v1/chat/completions", [...all, ...length], body);
}

export interface Wire {
  readonly socket: net.Socket;
  /** What has come so far. */
  text(): string;
  /** How many responses have begun in it. */
  responses(): number;
  /** Resolves when the connection is closed. */
  readonly closed: Promise<unknown>;
}

/** Connects, and writes the bytes. */
export function connect(t: Scope, url: string, bytes: string): Wire {
  const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
  t.after(() => socket.destroy());
  let text = "";
  socket.on("error", () => undefined);
  socket.on("data", (data: Buffer) => (text += data.toString()));
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write(bytes);
  return {
    socket,
    text: () => text,
    responses: () => text.match(/HTTP\/1\.1 /g)?.length ?? 0,
    closed,
  };
}
