// Raw bytes to a port and what comes back, for requests that no client library would send.

import assert from "node:assert/strict";
import net from "node:net";
import { parseRaw } from "../../scripts/conformance/client.ts";
import { within } from "./wait.ts";

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly text: string;
}

/** Sends the bytes and reads until the server closes the connection. */
export async function rawRequest(
  url: string,
  bytes: string | Buffer,
  { end = false } = {},
): Promise<RawAnswer> {
  const { port } = new URL(url);
  const socket = net.connect(Number(port), "127.0.0.1");
  const pieces: Buffer[] = [];
  const closed = new Promise<void>((resolve, reject) => {
    socket.on("data", (piece: Buffer) => pieces.push(piece));
    socket.on("close", () => resolve());
    socket.on("error", (error) => (pieces.length > 0 ? resolve() : reject(error)));
  });
  if (end) socket.end(bytes);
  else socket.write(bytes);
  await within(closed, "the server to close the connection").finally(() => socket.destroy());
  return parseAnswer(Buffer.concat(pieces).toString("latin1"));
}

export function parseAnswer(text: string): RawAnswer {
  const { text: body, ...head } = parseRaw(text);
  return { ...head, body, text };
}

/** Asserts that the answer is an error of the contract with this code. */
export function assertError(answer: RawAnswer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers["content-type"], "application/json");
  const { error } = JSON.parse(answer.body);
  assert.equal(error.code, code);
  for (const field of ["message", "type", "code", "request_id"])
    assert.equal(typeof error[field], "string", field);
  assert.equal(error.request_id, answer.headers["x-request-id"]);
  assert.equal(Number(answer.headers["content-length"]), Buffer.byteLength(answer.body));
}
