// The judge of scripts/fuzz.ts: parses everything received on a connection as strictly as HTTP/1.1
// allows, and applies the conformance suite's rules about every answer. It knows the bytes that
// were sent, but not how they were mutated.

import { isUtf8 } from "node:buffer";
import { RULES } from "../conformance/checks/all.ts";
import { exchangeOf, parseEvents, parseJson } from "../conformance/client.ts";
import * as expect from "../conformance/expect.ts";
import * as is from "../conformance/forms.ts";
import { first, isObject, isText, list, type Fields, type Json } from "../conformance/shapes.ts";
import { KINDS } from "../conformance/suite.ts";
import { CHAT } from "../conformance/tester.ts";

/** An answer is wrong. */
class Fault extends Error {}
/** The bytes end in the middle of an answer. */
class Truncated extends Fault {}

const demand: (holds: unknown, what: string) => asserts holds = (holds, what) => {
  if (!holds) throw new Fault(what);
};

/**
 * The type of the error with each status: those that a client's bytes can cause, and the 503 of a
 * busy gateway or a failed provider. A 429 and every other 5xx are faults.
 */
const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  ...[400, 404, 405, 408, 413, 415, 417, 426, 431].map(
    (status) => [status, "invalid_request_error"] as const,
  ),
  [401, "authentication_error"],
  [403, "permission_error"],
  [503, "service_unavailable_error"],
]);

/** The bytes on a connection. */
interface Exchanged {
  readonly sent: Buffer;
  readonly received: Buffer;
  /** Whether the last answer may be incomplete, because the client left or was reset. */
  readonly mayBeCut: boolean;
  /** Whether the gateway may answer 503. */
  readonly mayBeBusy: boolean;
}

/** The statuses of the answers, without 100. Throws if an answer is wrong. */
export function judge({ sent, received, mayBeCut, mayBeBusy }: Exchanged): number[] {
  const asked = sent.toString("latin1");
  const statuses: number[] = [];
  let rest = received;
  let last = false;
  let continued = false;
  try {
    while (rest.length > 0) {
      demand(!last, "something comes after an answer with Connection: close");
      const { status, headers, body, size } = readAnswer(rest, asked.includes("HEAD"), mayBeCut);
      rest = rest.subarray(size);
      continued = status === 100;
      if (continued) {
        demand(/100-continue/i.test(asked), "100 Continue, but nobody expected it");
        continue;
      }
      const isKnown = status === 503 ? mayBeBusy : status === 200 || ERROR_TYPES.has(status);
      demand(isKnown, `status ${status}: ${body?.toString("utf8", 0, 500)}`);
      checkAnswer(status, headers, body);
      last = isLast(headers);
      statuses.push(status);
    }
    // After another answer the connection may end instead, because the gateway drops a pipelined
    // request whose body is malformed.
    if (continued && statuses.length === 0) throw new Truncated("nothing follows 100 Continue");
  } catch (error) {
    if (!(error instanceof Truncated && mayBeCut)) throw error;
  }
  // Bytes that are not a request get an answer too, so there may be one more.
  const requests = asked.split(/HTTP\//i).length;
  demand(statuses.length <= requests, `${statuses.length} answers to at most ${requests} requests`);
  return statuses;
}

interface Answer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** Undefined: an answer to HEAD, an interim answer, or a truncated one. */
  readonly body: Buffer | undefined;
  /** The size in bytes, with the head. */
  readonly size: number;
}
const isLast = (headers: Answer["headers"]): boolean =>
  /close/i.test(headers.get("connection") ?? "");

/** Reads one answer by RFC 9112: status line, field lines, and a body as long as they state. */
function readAnswer(bytes: Buffer, mayBeHead: boolean, mayBeCut: boolean): Answer {
  const headEnd = bytes.indexOf("\r\n\r\n") + 4;
  if (headEnd === 3)
    throw new Truncated(
      `a head that does not end: ${JSON.stringify(bytes.toString("latin1", 0, 200))}`,
    );
  const [start = "", ...lines] = bytes.toString("latin1", 0, headEnd - 4).split("\r\n");
  const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [A-Za-z' -]+$/.exec(start)?.[1]);
  demand(status, `not a status line: ${JSON.stringify(start)}`);
  const headers = headersOf(lines);
  const withoutBody = { status, headers, body: undefined, size: headEnd };
  if (status === 100) {
    demand(headers.size === 0, "100 Continue with headers");
    return withoutBody;
  }
  // Bodies are JSON, events or metrics, and none of them begins with "HTTP/".
  const isNext = bytes.toString("latin1", headEnd, headEnd + 5) === "HTTP/";
  if (mayBeHead && (bytes.length === headEnd || isNext)) return withoutBody;
  const [length, coding] = [headers.get("content-length"), headers.get("transfer-encoding")];
  if (coding !== undefined) {
    const isChunked = coding === "chunked" && length === undefined;
    demand(isChunked, `Transfer-Encoding: ${coding}, Content-Length: ${length}`);
    const [body, size] = readChunks(bytes, headEnd);
    return { status, headers, body, size };
  }
  if (length === undefined) {
    demand(isLast(headers), "a body without a length, but the connection stays open");
    const body = mayBeCut ? undefined : bytes.subarray(headEnd);
    return { status, headers, body, size: bytes.length };
  }
  demand(/^\d+$/.test(length), `Content-Length: ${length}`);
  const size = headEnd + Number(length);
  if (bytes.length < size)
    throw new Truncated(`a body of ${bytes.length - headEnd} bytes, ${length} were announced`);
  return { status, headers, body: bytes.subarray(headEnd, size), size };
}

function headersOf(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\x20-\x7e]*)$/.exec(line) ?? [];
    demand(name !== undefined && value !== undefined, `not a header: ${JSON.stringify(line)}`);
    demand(!headers.has(name.toLowerCase()), `header ${name} comes twice`);
    headers.set(name.toLowerCase(), value);
  }
  return headers;
}

function readChunks(bytes: Buffer, from: number): [body: Buffer, end: number] {
  const pieces: Buffer[] = [];
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd === -1) throw new Truncated("chunks that do not end");
    const line = bytes.toString("latin1", at, lineEnd);
    demand(/^[0-9a-fA-F]{1,8}$/.test(line), `not a chunk size: ${JSON.stringify(line)}`);
    const [begin, end] = [lineEnd + 2, lineEnd + 2 + Number.parseInt(line, 16)];
    if (bytes.length < end + 2) throw new Truncated("a chunk that does not end");
    const isWhole = bytes.toString("latin1", end, end + 2) === "\r\n";
    demand(isWhole, "a chunk that is longer than its size");
    if (begin === end) return [Buffer.concat(pieces), end + 2];
    pieces.push(bytes.subarray(begin, end));
    at = end + 2;
  }
}

/** Checks what must be true of every answer. */
function checkAnswer(status: number, headers: Answer["headers"], body: Buffer | undefined): void {
  const id = headers.get("x-request-id");
  demand(id !== undefined && /^[\x20-\x7e]{1,512}$/.test(id), `${status} with X-Request-Id ${id}`);
  if (body === undefined) return;
  demand(isUtf8(body), "a body that is not UTF-8");
  const text = body.toString();
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  const form = FORMS[type];
  if (status !== 200) checkError(status, headers, text);
  else if (form) demand(form.test(text), `not ${type}: ${text.slice(0, 500)}`);
  else if (type !== "text/event-stream") checkDocument(headers, text);
  else if (text.startsWith("event: ")) checkNamedEvents(text);
  else checkRules(status, headers, text);
}

/** The forms of documents that are not JSON. */
const FORMS: Readonly<Record<string, RegExp>> = {
  "text/html": /^<!doctype html>.*<\/html>\n$/s,
  "text/csv": /^usage_id,.*\r\n$/s,
  "text/plain": /^(# .*\n|\w+(\{(\w+="([^"\\\n]|\\.)*",?)+\})? \S+\n)+$/,
};

/**
 * Applies the rules of the conformance suite. It assumes a request with the answer's own id, which
 * asked for everything that the answer contains.
 */
function checkRules(status: number, headers: Answer["headers"], text: string): void {
  const stream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  demand(!stream || !/^:(?! keep-alive$)/m.test(text), "a comment other than keep-alive");
  const stream_options = { include_usage: text.includes('"usage":{') };
  const asked = { stream, stream_options, logprobs: true, thinking: { type: "enabled" } };
  const fields = Object.fromEntries(headers);
  const ownId = { "x-request-id": fields["x-request-id"] };
  const request = { method: "POST", path: CHAT, headers: ownId, body: JSON.stringify(asked) };
  const rawHeaders = [...headers].flat();
  const answer = { status, headers: fields, rawHeaders, text, whole: true, closingMs: 0 };
  const exchange = exchangeOf("", request, answer);
  for (const { kind, look } of RULES) if (KINDS[kind](exchange)) look(exchange);
}

const namesOf = (value: Json): string => Object.keys(value).sort().join();

/** Checks an error of chat completions or of the Messages API. */
function checkError(status: number, headers: Answer["headers"], text: string): void {
  const id = headers.get("x-request-id");
  const document = parseJson(text);
  const message = `${status} with ${text.slice(0, 500)}`;
  if (isObject(document) && document["type"] === "error") {
    demand(namesOf(document) === "error,request_id,type", message);
    expect.fields(document, { request_id: id, "error.type": is.text, "error.message": is.text });
    return;
  }
  checkRules(status, headers, text);
  const error = first(document, "error");
  demand(isObject(error) && namesOf(error) === "code,message,param,request_id,type", message);
  expect.fields(error, { type: ERROR_TYPES.get(status), request_id: id });
}

/** The expected fields of a document. Undefined: it must be a reply of chat completions. */
function fieldsOf(document: Json): Fields | undefined {
  const { object: kind, type, status, openapi, rows, records } = document;
  const isOther = ["ok", "ready", "serving"].some((each) => each === status) || kind === "list";
  const isTable = Array.isArray(rows) || Array.isArray(records);
  if (isOther || isTable || typeof openapi === "string") return {};
  if (type === "message") return { role: "assistant", "usage.output_tokens": is.count };
  if (kind === "response")
    return { status: /^(completed|incomplete)$/, "usage.total_tokens": is.positive };
  return "input_tokens" in document ? { input_tokens: is.count } : undefined;
}

function checkDocument(headers: Answer["headers"], text: string): void {
  const document = parseJson(text);
  demand(isObject(document), `200 with ${text.slice(0, 500)}`);
  const fields = fieldsOf(document);
  if (fields) {
    expect.fields(document, fields);
    return;
  }
  checkRules(200, headers, text);
  demand(list(document["choices"]).length === 1, `not one choice: ${text.slice(0, 500)}`);
}

/** Checks a stream of the other two APIs, whose last event says that the reply is complete. */
function checkNamedEvents(text: string): void {
  demand(!text.includes("\r"), "a line that does not end with LF alone");
  const { events, rest } = parseEvents(text);
  demand(rest === "", "an event that does not end with a blank line");
  const names = events
    .filter(({ lines }) => lines.join() !== ": keep-alive")
    .map(({ lines, data, json }) => {
      const type = first(json, "type");
      const isEvent = isText(type) && lines.join("\n") === `event: ${type}\ndata: ${data}`;
      demand(isEvent, `not an event, or one of another type than its name: ${lines.join("\n")}`);
      return type;
    });
  const last = names.findIndex((name) => ENDS.includes(name));
  demand(last === names.length - 1 && last >= 0, `a stream that ends with ${names.slice(last)}`);
}
const ENDS = ["message_stop", "response.completed", "response.incomplete"];
