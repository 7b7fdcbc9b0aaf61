// The judge of scripts/fuzz.ts: reads what came back on a connection as strictly as HTTP/1.1 and
// the contract (contract.md "Errors", "Request ids"; wire.md "To the client") allow. It knows only
// the bytes that were sent, not what they were meant to be.

import { parseEvents } from "../conformance/client.ts";
import {
  CHUNK,
  count,
  ERROR,
  expectField,
  expectFields,
  find,
  first,
  isObject,
  isText,
  list,
  object,
  positive,
  REPLY,
  Shape,
  text,
  type Fields,
  type Json,
} from "../conformance/shapes.ts";

/** What is wrong with the answers. */
export class Fault extends Error {}
/** The bytes end in the middle of an answer. */
class Cut extends Fault {}

const demand: (holds: unknown, what: string) => asserts holds = (holds, what) => {
  if (!holds) throw new Fault(what);
};

/**
 * The type of an error, by its status: those that bytes of a client alone can cause, and the 503 of
 * a gateway that is busy or whose provider failed. A 429 and every other 5xx are faults.
 */
const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  ...[400, 404, 405, 408, 413, 415, 417, 426, 431].map(
    (status) => [status, "invalid_request_error"] as const,
  ),
  [401, "authentication_error"],
  [403, "permission_error"],
  [503, "service_unavailable_error"],
]);

export interface Heard {
  readonly sent: Buffer;
  readonly received: Buffer;
  /** The client did not wait for the end, or was reset: the last answer may be a beginning. */
  readonly mayBeCut: boolean;
  /** Whether 503 is an answer. */
  readonly mayBeBusy: boolean;
}

/** The statuses of the answers, interim ones (100) left out. Throws a Fault. */
export function judge({ sent, received, mayBeCut, mayBeBusy }: Heard): number[] {
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
    // Behind another answer the connection may end instead: of pipelined requests one with a fault
    // in its body is dropped with it.
    if (continued && statuses.length === 0) throw new Cut("nothing follows 100 Continue");
  } catch (error) {
    if (!(error instanceof Cut && mayBeCut)) throw error;
  }
  // One more than there can be: what is no request at all has an answer as well.
  const requests = asked.split(/HTTP\//i).length;
  demand(statuses.length <= requests, `${statuses.length} answers to at most ${requests} requests`);
  return statuses;
}

interface Answer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** Undefined: an answer to HEAD, an interim one, or a beginning. */
  readonly body: Buffer | undefined;
  /** In bytes, with its head. */
  readonly size: number;
}
const isLast = (headers: Answer["headers"]): boolean =>
  /close/i.test(headers.get("connection") ?? "");

/** RFC 9112: status line, field lines, and as much body as they say. */
function readAnswer(bytes: Buffer, mayBeHead: boolean, mayBeCut: boolean): Answer {
  const headEnd = bytes.indexOf("\r\n\r\n") + 4;
  if (headEnd === 3)
    throw new Cut(`a head that does not end: ${JSON.stringify(bytes.toString("latin1", 0, 200))}`);
  const [start = "", ...lines] = bytes.toString("latin1", 0, headEnd - 4).split("\r\n");
  const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [A-Za-z' -]+$/.exec(start)?.[1]);
  demand(status, `not a status line: ${JSON.stringify(start)}`);
  const headers = headersOf(lines);
  const withoutBody = { status, headers, body: undefined, size: headEnd };
  if (status === 100) {
    demand(headers.size === 0, "100 Continue with headers");
    return withoutBody;
  }
  // Bodies are JSON, events or metrics: none begins like an answer.
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
    throw new Cut(`a body of ${bytes.length - headEnd} bytes, ${length} were announced`);
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
    if (lineEnd === -1) throw new Cut("chunks that do not end");
    const line = bytes.toString("latin1", at, lineEnd);
    demand(/^[0-9a-fA-F]{1,8}$/.test(line), `not a chunk size: ${JSON.stringify(line)}`);
    const [begin, end] = [lineEnd + 2, lineEnd + 2 + Number.parseInt(line, 16)];
    if (bytes.length < end + 2) throw new Cut("a chunk that does not end");
    const isWhole = bytes.toString("latin1", end, end + 2) === "\r\n";
    demand(isWhole, "a chunk that is longer than its size");
    if (begin === end) return [Buffer.concat(pieces), end + 2];
    pieces.push(bytes.subarray(begin, end));
    at = end + 2;
  }
}

/** What every answer of the gateway must be. */
function checkAnswer(status: number, headers: Answer["headers"], body: Buffer | undefined): void {
  const id = headers.get("x-request-id");
  demand(id !== undefined && /^[\x20-\x7e]{1,512}$/.test(id), `${status} with X-Request-Id ${id}`);
  if (body === undefined) return;
  const said = decoded(body);
  const [type] = (headers.get("content-type") ?? "").split(";");
  const document = type === "application/json" ? parse(said) : undefined;
  if (status === 200) checkSuccess(type, said, document);
  else checkError(status, id, document);
}

function decoded(body: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw new Fault("a body that is not UTF-8");
  }
}

/** What documents that are no JSON look like. */
const FORMS: Readonly<Record<string, RegExp>> = {
  "text/html": /^<!doctype html>.*<\/html>\n$/s,
  "text/csv": /^usage_id,.*\r\n$/s,
  "text/plain": /^(# .*\n|\w+(\{(\w+="([^"\\\n]|\\.)*",?)+\})? \S+\n)+$/,
};

/** What an answer with status 200 must be. */
function checkSuccess(type = "", said: string, document: unknown): void {
  const form = FORMS[type];
  if (form) demand(form.test(said), `not ${type}: ${said.slice(0, 500)}`);
  else if (type !== "text/event-stream") checkDocument(document);
  else if (said.startsWith("event: ")) checkNamedEvents(said);
  else checkEvents(said);
}

function parse(said: string): unknown {
  try {
    return JSON.parse(said);
  } catch {
    throw new Fault(`not JSON: ${said.slice(0, 500)}`);
  }
}

const one = new Shape("one choice", (value) => list(value).length === 1);
const ownParam = new Shape("null or a name", (value) => value === null || isText(value));

/** An error of the contract, or of the Messages API. */
function checkError(status: number, id: string, document: unknown): void {
  const told = `${status} with ${JSON.stringify(document)}`;
  demand(isObject(document) && isObject(document["error"]), told);
  const namesOf = (value: Json) => Object.keys(value).sort().join();
  if (document["type"] === "error") {
    demand(namesOf(document) === "error,request_id,type", told);
    demand(document["request_id"] === id, `${told}, but X-Request-Id is ${id}`);
    expectFields(document["error"], { type: text, message: text });
    return;
  }
  const { error } = document;
  demand(namesOf(document) === "error", told);
  demand(namesOf(error) === "code,message,param,request_id,type", told);
  expectFields(error, { ...ERROR, param: ownParam });
  demand(error["type"] === ERROR_TYPES.get(status), told);
  demand(error["request_id"] === id, `${told}, but X-Request-Id is ${id}`);
}

/** What one of the gateway's documents has, or a whole reply of one of its APIs. */
function fieldsOf(document: Json): Fields {
  const { object: kind, type, status, openapi, rows, records } = document;
  const isOther = ["ok", "ready", "serving"].some((each) => each === status) || kind === "list";
  const isTable = Array.isArray(rows) || Array.isArray(records);
  if (isOther || isTable || typeof openapi === "string") return {};
  if (type === "message") return { role: "assistant", "usage.output_tokens": count };
  if (kind === "response")
    return { status: /^(completed|incomplete)$/, "usage.total_tokens": positive };
  if ("input_tokens" in document) return { input_tokens: count };
  const tokens = (name: string) => Number(first(document, `usage.${name}_tokens`));
  return { ...REPLY, choices: one, "usage.total_tokens": tokens("prompt") + tokens("completion") };
}

function checkDocument(document: unknown): void {
  const told = `200 with ${JSON.stringify(document)?.slice(0, 500)}`;
  demand(isObject(document), told);
  try {
    expectFields(document, fieldsOf(document));
  } catch (error) {
    throw new Fault(`${told}: ${(error as Error).message}`);
  }
}

/** The events of a stream, each with a blank line, but for comments. */
function eventsOf(said: string) {
  demand(!said.includes("\r"), "a line that does not end with LF alone");
  const { events, rest } = parseEvents(said);
  demand(rest === "", "an event that does not end with a blank line");
  return events.filter(({ lines }) => lines.join("\n") !== ": keep-alive");
}

/** The streams of the other two APIs: named events. The last one says that the reply is whole. */
function checkNamedEvents(said: string): void {
  const names = eventsOf(said).map(({ lines, data = "" }) => {
    const [event = ""] = lines;
    demand(lines.length === 2 && lines[1] === `data: ${data}`, `not an event: ${lines.join("\n")}`);
    const type = first(parse(data), "type");
    demand(
      isText(type) && event === `event: ${type}`,
      `an event of another type than its name: ${event}`,
    );
    return type;
  });
  const last = String(names.at(-1));
  const ends = ["message_stop", "response.completed", "response.incomplete"];
  demand(ends.includes(last), `a stream that ends with ${last}`);
  demand(names.indexOf(last) === names.length - 1, "a stream that ends twice");
}

/**
 * wire.md "Framing", "Chunks": each event one line of data and a blank line; the role first, one
 * finish_reason, `[DONE]` last.
 */
function checkEvents(said: string): void {
  const events = eventsOf(said);
  for (const { lines, data } of events)
    demand(lines.join("\n") === `data: ${data}`, `not an event: ${JSON.stringify(lines)}`);
  demand(events.pop()?.data === "[DONE]", `a stream without [DONE]: ${said.slice(-500)}`);
  const chunks = events.map(({ data = "" }) => parse(data));
  const same = { id: String(first(chunks[0], "id")), object: CHUNK["object"] };
  for (const chunk of chunks) {
    expectFields(chunk, { ...same, choices: CHUNK["choices"] });
    expectField(chunk, "choices[].delta", object);
  }
  const choices = chunks.flatMap((chunk) => find(chunk, "choices[]").map(({ value }) => value));
  const isRole = (choice: unknown) => first(choice, "delta.role") === "assistant";
  const areRoles = choices.every((choice, index) => isRole(choice) === (index === 0));
  demand(areRoles, "the role is not in the first chunk alone");
  const finished = choices.map((choice) => first(choice, "finish_reason") !== null);
  const isOnce = finished.indexOf(true) === finished.length - 1 && finished.length > 0;
  demand(isOnce, "not one finish_reason at the end");
}
