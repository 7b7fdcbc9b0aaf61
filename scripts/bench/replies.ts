// Whether a target answers, and answers right. A gateway that answers with less than the provider
// sent, or holds a stream back until it is whole, would be measured doing less than the others.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { bodyOf, post, type Callee } from "./body.ts";
import type { Target } from "./target.ts";

/** Sends a chat request whose text says what the provider is to answer. */
const ask = (target: Callee & Pick<Target, "model">, words: string) =>
  post(target, bodyOf(words, target.model));

/** Resolves when the target answers a chat request with 200. */
export async function answered(
  target: Callee & Pick<Target, "name" | "model">,
  isAlive: () => boolean,
  deadlineMs = 120_000,
): Promise<void> {
  let answer = "nothing";
  for (const late = performance.now() + deadlineMs; performance.now() < late; await pause(2)) {
    if (!isAlive()) throw new Error(`${target.name} ended before it answered`);
    try {
      const res = await ask(target, "bytes=10");
      res.resume();
      if (res.statusCode === 200) return;
      answer = `status ${res.statusCode}`;
    } catch {
      // nobody listens yet
    }
  }
  throw new Error(`${target.name} did not answer within ${deadlineMs} ms: ${answer} came`);
}

/** A reply, whole or streamed, as a client of chat completions reads it. */
async function read(target: Target, words: string) {
  const res = await ask(target, words);
  let text = "";
  let firstAt = Number.NaN;
  for await (const piece of res.setEncoding("utf8")) {
    text += piece;
    if (Number.isNaN(firstAt) && text.includes("happy")) firstAt = performance.now();
  }
  assert.equal(res.statusCode, 200, `status of a reply: ${text.slice(0, 200)}`);
  const events = text.split(/\r?\n\r?\n/).filter((event) => event.startsWith("data: "));
  const last = words.startsWith("events") ? events.pop() : undefined;
  const replies = events.length > 0 ? events.map((event) => event.slice(6)) : [text];
  const choices = replies.flatMap((reply) => JSON.parse(reply).choices);
  const contents = choices.map(({ delta, message }) => (delta ?? message).content ?? "");
  return {
    content: contents.join(""),
    finish: choices.flatMap(({ finish_reason }) => finish_reason ?? []),
    tokens: last === undefined ? JSON.parse(text).usage.total_tokens : undefined,
    last,
    /** Milliseconds from the first text to the end. */
    tookMs: performance.now() - firstAt,
    pieces: replies.length,
  };
}

const EVENTS = 20;
const EVERY_MS = 10;

/** Throws unless the target passes on a whole and a streamed reply as the provider sends them. */
export async function checkReplies(target: Target): Promise<void> {
  const { content, finish, tokens } = await read(target, "bytes=300");
  const sent = "All happy families are alike. ".repeat(10);
  assert.deepEqual([content, finish, tokens], [sent, ["stop"], 90], "a whole reply");
  const stream = await read(target, `events=${EVENTS} every=${EVERY_MS}`);
  assert.equal(stream.last, "data: [DONE]", "last event of a stream");
  const events = " happy".repeat(EVENTS);
  assert.deepEqual([stream.content, stream.finish], [events, ["stop"]], "a stream");
  assert.ok(stream.pieces >= EVENTS, `${stream.pieces} events of a stream, expected ${EVENTS}`);
  const sentMs = EVENTS * EVERY_MS;
  assert.ok(
    stream.tookMs > sentMs / 2,
    `a stream of ${sentMs} ms came within ${stream.tookMs.toFixed(0)} ms: it was held back`,
  );
}
