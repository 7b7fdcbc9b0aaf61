// Sends raw bytes, for requests that no client library would send.

import assert from "node:assert/strict";
import { createClient, parseRaw } from "../../scripts/conformance/client.ts";
import { PATIENCE_MS } from "./wait.ts";

export type RawAnswer = ReturnType<typeof parseAnswer>;

/** Sends the bytes and reads until the server closes the connection. */
export const rawRequest = async (url: string, bytes: string | Buffer): Promise<RawAnswer> =>
  parseAnswer(await createClient(url, PATIENCE_MS).raw(bytes));

export function parseAnswer(text: string) {
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
