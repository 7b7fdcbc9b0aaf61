// A request to the gateway with its answer, and what the answer says, whole or as a stream.

import { parseEvents, parseJson, type Answer, type Request, type StreamEvent } from "./client.ts";
import { find, first, isObject, type Json } from "./shapes.ts";

export interface Exchange extends Answer {
  /** The check that made it. */
  readonly check: string;
  readonly request: Request;
  /** The request's body if it is a JSON object, else {}. */
  readonly asked: Json;
  /** The answer's body, parsed; undefined if it is not JSON. */
  readonly json: unknown;
  /** Whether the answer is an event stream that was asked for. */
  readonly streamed: boolean;
  /** The blocks of the event stream; none if something else was asked for. */
  readonly events: readonly StreamEvent[];
  /** What follows the last blank line of an event stream. */
  readonly rest: string;
  /** The body, or the chunks of the stream. */
  readonly parts: readonly unknown[];
  /** The error, in the body or as an event. */
  readonly error: unknown;
  readonly content: string;
  readonly thoughts: string;
  /** The last finish_reason. */
  readonly finish: unknown;
  /** The last usage. */
  readonly usage: unknown;
  /** Head and body, as they came. */
  readonly shown: string;
}

export function exchangeOf(check: string, request: Request, answer: Answer): Exchange {
  const { asked = {} } = request;
  const { text = "" } = answer;
  const streamed = answer.status === 200 && asked["stream"] === true;
  const json = parseJson(text);
  const { events, rest } = streamed ? parseEvents(text) : { events: [], rest: "" };
  const documents = streamed ? events.map((event) => event.json).filter(isObject) : [json];
  const isError = (value: unknown) => isObject(value) && "error" in value;
  const parts = streamed ? documents.filter((each) => !isError(each)) : documents;
  const all = (path: string): unknown[] =>
    parts.flatMap((part) => find(part, path)).map(({ value }) => value);
  const said = (field: string): string =>
    all(`choices[].${streamed ? "delta" : "message"}.${field}`)
      .filter((value) => (value ?? null) !== null)
      .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
      .join("");
  return {
    check,
    request,
    asked,
    ...answer,
    json,
    streamed,
    events,
    rest,
    parts,
    error: first(documents.find(isError), "error"),
    content: said("content"),
    thoughts: said("reasoning_content"),
    finish: all("choices[].finish_reason").at(-1),
    usage: all("usage").findLast(isObject),
    shown: `${answer.rawHeaders.join("\n")}\n${text}`,
  };
}
