// Streams that break, and what a client sees of them, for the tests of recovery.

import assert from "node:assert/strict";
import { merge, observedBy, parseStream, startWith, user } from "./gateway.ts";
import {
  chunk,
  event,
  rawStream,
  stream,
  usageChunk,
  wordsIn,
  type Asked,
  type Behaviour,
} from "./provider.ts";
import type { Clock } from "../../src/core/clock.ts";
import type { Settlement } from "../../src/core/ledger/ledger.ts";
import type { Scope } from "./scope.ts";
import { timersOnCall } from "./unhurried-clock.ts";

export { inTurn } from "./provider.ts";

export const SHOWN = "The quick brown";
export const REST = " fox jumps over the lazy dog.";
export const WHOLE = SHOWN + REST;

/** The usage that the provider states for a finished attempt. */
export const FIGURES = { prompt_tokens: 20, completion_tokens: 7, total_tokens: 27 };

/** Prices by model, in USD per million tokens. */
export const PRICES = {
  m: { input_cache_miss: 1, output: 2 },
  n: { input_cache_miss: 10, output: 20 },
};

/** A finished stream of these deltas. */
export const said = (deltas: readonly object[], finish = "stop"): Behaviour =>
  stream([...deltas.map((delta) => chunk(delta)), chunk({}, finish), usageChunk(FIGURES)]);

/** Deltas with the words of a text. */
export const texts = (text: string): object[] => wordsIn(text).map((content) => ({ content }));

export const sayText = (text: string): Behaviour => said(texts(text));

/** Streams of these events that are not finished, by the way in which they end. */
export const BREAKS: Readonly<Record<string, (events: readonly object[]) => Behaviour>> = {
  reset: (events) => stream(events, "cut"),
  "clean end": (events) => stream(events, "eof"),
  stall: (events) => stream(events, "open"),
  "error event": (events) => stream([...events, { error: { message: "boom", code: 500 } }], "eof"),
  garbage: (events) => rawStream(`${events.map(event).join("")}data: {{{\n\ndata: <html>\n\n`),
};

/** A stream that breaks after these deltas. */
export const broken = (deltas: readonly object[], kind = "reset"): Behaviour =>
  BREAKS[kind]!(deltas.map((delta) => chunk(delta)));

/** The last message of a request, if it is the assistant's. */
export function beginningIn({ body }: Pick<Asked, "body">): Record<string, any> | undefined {
  const last = body["messages"].at(-1);
  return last.role === "assistant" ? last : undefined;
}

/** Continues WHOLE after the beginning in the request. Without a beginning, sends all of WHOLE. */
export const goesOn: Behaviour = (asked) =>
  sayText(WHOLE.slice(beginningIn(asked)?.["content"].length ?? 0))(asked);

export interface Scene {
  /** The behaviour of each model. A model whose name is not in PRICES has no price. */
  readonly models: Readonly<Record<string, Behaviour>>;
  readonly config?: object;
  readonly request?: object;
  readonly model?: string;
  readonly time?: Partial<Clock>;
}

/** A total deadline that passes when this many attempts have begun to reply. */
export function overOnceBegun(attempts: number) {
  const timeouts = { total_ms: 123_456, idle_ms: 654_321 };
  const total = timersOnCall(timeouts.total_ms);
  let begun = 0;
  const after: Clock["after"] = (ms, listener) => {
    if (ms === timeouts.idle_ms) begun += 1;
    if (begun === attempts) setImmediate(total.fire);
    return total.after(ms, listener);
  };
  return { timeouts, time: { after } };
}

/** Starts a scene's provider and gateway, requests a stream, and reads it to its end. */
export async function askScene(
  t: Scope,
  { models, config = {}, request, model = "m", time }: Scene,
) {
  const priced = Object.keys(models).map((name) => [
    name,
    { price: PRICES[name as keyof typeof PRICES] },
  ]);
  const settings = merge({ models: Object.fromEntries(priced) }, config) as object;
  const settled: Settlement[] = [];
  const witness = observedBy(() => ({ settled: (_, settlement) => settled.push(settlement) }));
  const deps = { ...witness, ...time };
  const { provider, config: _, ...gateway } = await startWith(t, models, settings, deps);
  const body = {
    model,
    stream: true,
    stream_options: { include_usage: true },
    messages: user("hi"),
    ...request,
  };
  const response = await gateway.chat(body);
  const answer = { status: response.status, text: await response.text() };
  const access = await gateway.accessOf(response.headers.get("x-request-id")!);
  const settlement = settled[0]!;
  return {
    provider,
    gateway,
    answer,
    settlement,
    access,
    /** The model and the outcome of each attempt. */
    attempts: settlement.attempts.map(({ model, outcome }) => `${model} ${outcome}`),
  };
}

/** What a client sees of a stream. Asserts the form of the stream. */
export function seen({ text }: { readonly text: string }) {
  const pieces = text.split(": recovered\n\n");
  const { chunks, done, error } = parseStream(pieces.join(""));
  assert.equal(done, error === undefined, "[DONE] or an error, not both");
  const choices = chunks.flatMap((each) => each.choices);
  const finishes = choices.flatMap(({ finish_reason }) => finish_reason ?? []);
  const usages = chunks.flatMap(({ usage }) => usage ?? []);
  assert.deepEqual([finishes.length, usages.length], done ? [1, 1] : [0, 0]);
  assert.equal(choices.filter(({ delta }) => "role" in delta).length, chunks.length > 0 ? 1 : 0);
  const heads = new Set(chunks.map(({ id, created, object }) => `${id} ${created} ${object}`));
  assert.ok(heads.size <= 1, "id and created stay the same");
  const field = (name: string): string => choices.map(({ delta }) => delta[name] ?? "").join("");
  const joints = pieces.slice(0, -1).map((_, index) => textIn(pieces.slice(0, index + 1).join("")));
  return {
    text: field("content"),
    reasoning: field("reasoning_content"),
    done,
    error: error?.code,
    finish: finishes[0],
    usage: usages[0],
    /** The text before each joint. */
    joints,
    models: [...new Set(chunks.map(({ model }) => model))],
  };
}

const textIn = (events: string): string =>
  [...events.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)]
    .map(([, json]) => JSON.parse(json!))
    .join("");
