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

const BYTES = 300;
const EVENTS = 20;
const EVERY_MS = 10;

/** Throws unless the whole reply has the provider's text and counts. */
async function checkWhole(target: Target): Promise<void> {
  const res = await ask(target, `bytes=${BYTES}`);
  const text = Buffer.concat(await res.toArray()).toString();
  assert.equal(res.statusCode, 200, `status of a whole reply: ${text.slice(0, 200)}`);
  const { choices, usage } = JSON.parse(text);
  const expected = "All happy families are alike. ".repeat(BYTES / 30);
  assert.equal(choices[0].message.content, expected, "text of a whole reply");
  assert.equal(choices[0].finish_reason, "stop", "finish reason of a whole reply");
  assert.equal(usage.total_tokens, 90, "tokens of a whole reply");
}

/** Throws unless each event of a stream comes, and the first long before the last. */
async function checkStream(target: Target): Promise<void> {
  const res = await ask(target, `events=${EVENTS} every=${EVERY_MS}`);
  assert.equal(res.statusCode, 200, "status of a stream");
  let text = "";
  let firstAt = Number.NaN;
  for await (const piece of res.setEncoding("utf8")) {
    text += piece;
    if (Number.isNaN(firstAt) && text.includes("happy")) firstAt = performance.now();
  }
  const tookMs = performance.now() - firstAt;
  const events = text.split(/\r?\n\r?\n/).filter((event) => event.startsWith("data: "));
  assert.equal(events.pop(), "data: [DONE]", "last event of a stream");
  const choices = events.flatMap((event) => JSON.parse(event.slice(6)).choices);
  const content = choices.map(({ delta }) => delta.content ?? "").join("");
  assert.equal(content, " happy".repeat(EVENTS), "text of a stream");
  assert.ok(events.length >= EVENTS, `${events.length} events of a stream, expected ${EVENTS}`);
  assert.ok(
    choices.some((choice) => choice.finish_reason === "stop"),
    "finish reason of a stream",
  );
  const sentMs = EVENTS * EVERY_MS;
  assert.ok(
    tookMs > sentMs / 2,
    `a stream of ${sentMs} ms came within ${tookMs.toFixed(0)} ms: it was held back`,
  );
}

/** Throws unless the target passes on a whole and a streamed reply as the provider sends them. */
export async function checkReplies(target: Target): Promise<void> {
  await checkWhole(target);
  await checkStream(target);
}
