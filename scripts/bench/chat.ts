// The benchmark's chat requests, and the check that a target answers them correctly. A gateway that
// returns less than the provider sent, or buffers a stream until it is complete, does less work
// than the others, so its figures would not be comparable.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { createClient, exchangeOf, type Request } from "../conformance/client.ts";
import { first } from "../conformance/shapes.ts";
import type { Target } from "./targets.ts";

/** A request body. `words` tell the provider how to reply; `filler` bytes of text follow them. */
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

/** The URL and headers of chat requests. */
export interface Callee {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Sends a chat request. Resolves when the response head has been received. */
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

const START_MS = 120_000;

/** Resolves when the target answers a chat request with 200. */
export async function answered(
  target: Callee & Pick<Target, "name" | "model">,
  isAlive: () => boolean,
): Promise<void> {
  let answer = "nothing";
  for (const late = performance.now() + START_MS; performance.now() < late; await pause(2)) {
    if (!isAlive()) throw new Error(`${target.name} ended before it answered`);
    try {
      const res = await post(target, bodyOf("bytes=10", target.model));
      res.resume();
      if (res.statusCode === 200) return;
      answer = `status ${res.statusCode}`;
    } catch {
      // nothing listens yet
    }
  }
  throw new Error(`${target.name} did not answer within ${START_MS} ms: ${answer} came`);
}

const EVENTS = 20;
const EVERY_MS = 10;
const DEADLINE_MS = 30_000;

/**
 * Throws unless the target relays a whole and a streamed reply exactly as the provider sends them.
 */
export async function checkReplies({ url, path, model, headers }: Target): Promise<void> {
  const client = createClient(url, DEADLINE_MS);
  const requestFor = (words: string): Request => ({
    method: "POST",
    path,
    headers,
    body: bodyOf(words, model),
  });
  const request = requestFor("bytes=300");
  const whole = exchangeOf("", request, await client.send(request));
  const sent = "All happy families are alike. ".repeat(10);
  const got = [whole.content, whole.finish, first(whole.usage, "total_tokens")];
  assert.deepEqual(got, [sent, "stop", 90], `a whole reply: ${whole.shown.slice(0, 300)}`);

  const streamed = requestFor(`events=${EVENTS} every=${EVERY_MS}`);
  const opened = await client.open(streamed);
  await opened.until("happy");
  const began = performance.now();
  const stream = exchangeOf("", streamed, await opened.rest());
  const tookMs = performance.now() - began;
  client.close();
  assert.equal(stream.events.at(-1)?.data, "[DONE]", "last event of a stream");
  assert.deepEqual([stream.content, stream.finish], [" happy".repeat(EVENTS), "stop"], "a stream");
  const pieces = stream.parts.length;
  assert.ok(pieces >= EVENTS, `${pieces} events of a stream, expected ${EVENTS}`);
  const sentMs = EVENTS * EVERY_MS;
  const wasHeld = tookMs < sentMs / 2;
  assert.ok(
    !wasHeld,
    `a stream of ${sentMs} ms came within ${tookMs.toFixed(0)} ms: it was held back`,
  );
}
