// The request that all targets of the benchmark get.

import { once } from "node:events";
import http from "node:http";

/** A request's body, with `filler` bytes of text beside the words that the provider looks for. */
export function bodyOf(words: string, model: string, filler = 200): string {
  const messages = [
    { role: "system", content: words },
    {
      role: "user",
      content: "How does it begin? ".repeat(Math.ceil(filler / 19)).slice(0, filler),
    },
  ];
  return JSON.stringify({ model, stream: words.startsWith("events"), temperature: 0.5, messages });
}

/** Where chat requests go, and with which headers. */
export interface Callee {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Sends a chat request; resolves with the answer when its head has come. */
export async function post(
  { url, path, headers }: Callee,
  body: string,
  agent: http.Agent | false = false,
): Promise<http.IncomingMessage> {
  const req = http.request(url + path, {
    method: "POST",
    agent,
    headers: { ...headers, "content-length": Buffer.byteLength(body) },
  });
  req.end(body);
  const [res] = (await once(req, "response")) as [http.IncomingMessage];
  return res;
}
