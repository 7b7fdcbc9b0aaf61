// Sends requests to the admin listener, with any Host and Origin headers.

import assert from "node:assert/strict";
import { once } from "node:events";
import http, { type IncomingHttpHeaders } from "node:http";
import https from "node:https";
import type { RunningGateway } from "./gateway.ts";
import { within } from "./wait.ts";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body. Undefined: it is not JSON. */
  readonly body: any;
}

export async function ask(
  address: string,
  path: string,
  headers: Record<string, string> = {},
  { method = "GET", body = "" } = {},
): Promise<Answer> {
  const req = (address.startsWith("https") ? https : http).request(`${address}${path}`, {
    method,
    headers,
    rejectUnauthorized: false,
    agent: false,
  });
  req.end(body);
  const [res] = await within(once(req, "response"), `the answer to ${method} ${path}`);
  let text = "";
  for await (const piece of res.setEncoding("utf8")) text += piece;
  const isJson = /json/.test(res.headers["content-type"]);
  const { statusCode: status } = res;
  return { status, headers: res.headers, text, body: isJson ? JSON.parse(text) : undefined };
}

export const adminOf = (gw: RunningGateway): string => gw.gateway.adminAddress()!;

export const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`operator:${password}`).toString("base64")}`,
});

export const assertRefused = ({ status, body }: Answer, expected: number, code: string) =>
  assert.deepEqual([status, body.error.code], [expected, code]);
