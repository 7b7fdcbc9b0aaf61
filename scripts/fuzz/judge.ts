// The judge of scripts/fuzz.ts: reads what came back on a connection as strictly as HTTP/1.1 and
// the contract (contract.md "Errors", "Request ids"; wire.md "To the client") allow. It knows only
// the bytes that were sent, not what they were meant to be.

/** What is wrong with the answers. */
export class Fault extends Error {}
/** The bytes end in the middle of an answer. */
class Cut extends Fault {}

const demand: (holds: unknown, what: string) => asserts holds = (holds, what) => {
  if (!holds) throw new Fault(what);
};

/**
 * The only errors that bytes of a client alone can cause, with the type that belongs to each. A 429
 * and every 5xx are faults.
 */
const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  ...[400, 404, 405, 408, 413, 415, 417, 426, 431].map(
    (status) => [status, "invalid_request_error"] as const,
  ),
  [401, "authentication_error"],
  [403, "permission_error"],
]);

export interface Heard {
  readonly sent: Buffer;
  readonly received: Buffer;
  /**
   * The client did not wait for the end, or the connection was reset: then the last answer may be a
   * beginning.
   */
  readonly mayBeCut: boolean;
}

/** The statuses of the answers, interim ones (100) left out. Throws a Fault. */
export function judge({ sent, received, mayBeCut }: Heard): number[] {
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
      checkAnswer(status, headers, body);
      last = /close/i.test(headers.get("connection") ?? "");
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

/** RFC 9112: status line, field lines, and as much body as they say. */
function readAnswer(bytes: Buffer, mayBeHead: boolean, mayBeCut: boolean): Answer {
  const headEnd = bytes.indexOf("\r\n\r\n") + 4;
  if (headEnd === 3)
    throw new Cut(`a head that does not end: ${JSON.stringify(bytes.toString("latin1", 0, 200))}`);
  const [start = "", ...lines] = bytes.toString("latin1", 0, headEnd - 4).split("\r\n");
  const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [A-Za-z' -]+$/.exec(start)?.[1]);
  demand(status, `not a status line: ${JSON.stringify(start)}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\x20-\x7e]*)$/.exec(line) ?? [];
    demand(name !== undefined && value !== undefined, `not a header: ${JSON.stringify(line)}`);
    demand(!headers.has(name.toLowerCase()), `header ${name} comes twice`);
    headers.set(name.toLowerCase(), value);
  }
  if (status === 100) {
    demand(headers.size === 0, "100 Continue with headers");
    return { status, headers, body: undefined, size: headEnd };
  }
  // Bodies are JSON, events or metrics: none begins like an answer.
  const noBody =
    bytes.length === headEnd || bytes.toString("latin1", headEnd, headEnd + 5) === "HTTP/";
  if (mayBeHead && noBody) return { status, headers, body: undefined, size: headEnd };
  const [length, coding] = [headers.get("content-length"), headers.get("transfer-encoding")];
  if (coding !== undefined) {
    demand(
      coding === "chunked" && length === undefined,
      `Transfer-Encoding: ${coding}, Content-Length: ${length}`,
    );
    const [body, size] = readChunks(bytes, headEnd);
    return { status, headers, body, size };
  }
  if (length === undefined) {
    demand(
      /close/i.test(headers.get("connection") ?? ""),
      "a body without a length, but the connection stays open",
    );
    return {
      status,
      headers,
      body: mayBeCut ? undefined : bytes.subarray(headEnd),
      size: bytes.length,
    };
  }
  demand(/^\d+$/.test(length), `Content-Length: ${length}`);
  const size = headEnd + Number(length);
  if (bytes.length < size)
    throw new Cut(`a body of ${bytes.length - headEnd} bytes, ${length} were announced`);
  return { status, headers, body: bytes.subarray(headEnd, size), size };
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
    demand(
      bytes.toString("latin1", end, end + 2) === "\r\n",
      "a chunk that is longer than its size",
    );
    if (begin === end) return [Buffer.concat(pieces), end + 2];
    pieces.push(bytes.subarray(begin, end));
    at = end + 2;
  }
}

/** What every answer of the gateway must be. */
function checkAnswer(
  status: number,
  headers: ReadonlyMap<string, string>,
  body: Buffer | undefined,
): void {
  const id = headers.get("x-request-id");
  demand(id !== undefined && /^[\x20-\x7e]{1,512}$/.test(id), `${status} with X-Request-Id ${id}`);
  demand(
    status === 200 || ERROR_TYPES.has(status),
    `status ${status}${body ? `: ${body.toString("utf8", 0, 500)}` : ""}`,
  );
  if (body === undefined) return;
  const text = decoded(body);
  const [type] = (headers.get("content-type") ?? "").split(";");
  if (status !== 200) checkError(status, id, type === "application/json" ? parse(text) : undefined);
  else checkSuccess(type, text);
}

function decoded(body: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw new Fault("a body that is not UTF-8");
  }
}

/** What an answer with status 200 must be. */
function checkSuccess(type: string | undefined, text: string): void {
  if (type === "text/event-stream" && text.startsWith("event: ")) checkNamedEvents(text);
  else if (type === "text/event-stream") checkEvents(text);
  else if (type === "text/html")
    demand(text.startsWith("<!doctype html>") && text.endsWith("</html>\n"), "a page that is cut");
  else if (type === "text/csv")
    demand(
      text.startsWith("usage_id,") && text.endsWith("\r\n"),
      `not a table: ${text.slice(0, 500)}`,
    );
  else if (type === "text/plain")
    demand(
      /^(# .*\n|\w+(\{(\w+="([^"\\\n]|\\.)*",?)+\})? \S+\n)+$/.test(text),
      `not metrics: ${text}`,
    );
  else checkDocument(type === "application/json" ? parse(text) : undefined);
}

function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    throw new Fault(`not JSON: ${text.slice(0, 500)}`);
  }
}

function checkError(status: number, id: string, document: any): void {
  if (document?.type === "error") checkMessagesError(status, id, document);
  else checkOwnError(status, id, document);
}

/** An error of the Messages API. */
function checkMessagesError(status: number, id: string, document: any): void {
  const told = `${status} with ${JSON.stringify(document)}`;
  const { error, request_id } = document;
  demand(Object.keys(document).sort().join() === "error,request_id,type", told);
  demand(
    [error?.type, error?.message].every((text) => typeof text === "string" && text),
    told,
  );
  demand(request_id === id, `${told}, but X-Request-Id is ${id}`);
}

function checkOwnError(status: number, id: string, document: any): void {
  const { message, type, code, param, request_id } = document?.error ?? {};
  const told = `${status} with ${JSON.stringify(document)}`;
  demand(Object.keys(document ?? {}).join() === "error", told);
  demand(Object.keys(document.error).sort().join() === "code,message,param,request_id,type", told);
  demand(
    [message, type, code].every((text) => typeof text === "string" && text !== ""),
    told,
  );
  demand(param === null || (typeof param === "string" && param !== ""), told);
  demand(type === ERROR_TYPES.get(status), told);
  demand(request_id === id, `${told}, but X-Request-Id is ${id}`);
}

/** A whole reply, or one of the gateway's other documents. */
function checkDocument(document: any): void {
  const known =
    document?.object === "list" ||
    ["ok", "ready", "serving"].includes(document?.status) ||
    typeof document?.openapi === "string" ||
    Array.isArray(document?.rows) ||
    Array.isArray(document?.records);
  if (known || isOtherReply(document)) return;
  const [choice] = document?.choices ?? [];
  const told = `200 with ${JSON.stringify(document)?.slice(0, 500)}`;
  demand(
    document?.object === "chat.completion" &&
      typeof document.id === "string" &&
      typeof document.model === "string",
    told,
  );
  demand(
    document.choices.length === 1 &&
      choice.message.role === "assistant" &&
      typeof choice.finish_reason === "string",
    told,
  );
  const { prompt_tokens, completion_tokens, total_tokens } = document.usage;
  demand(
    Number.isInteger(total_tokens) && total_tokens === prompt_tokens + completion_tokens,
    told,
  );
}

/** A whole reply of the Messages API or the Responses API, or a count of tokens. */
function isOtherReply(document: any): boolean {
  if (document?.type === "message")
    return document.role === "assistant" && document.usage.output_tokens >= 0;
  if (document?.object === "response")
    return ["completed", "incomplete"].includes(document.status) && document.usage.total_tokens > 0;
  return Number.isInteger(document?.input_tokens);
}

/** The streams of the other two APIs: named events. The last one says that the reply is whole. */
function checkNamedEvents(text: string): void {
  const events = text.split("\n\n");
  demand(events.pop() === "", "an event that does not end with a blank line");
  const named = events
    .filter((event) => event !== ": keep-alive")
    .map((event) => {
      const [, name, data] = /^event: ([\w.]+)\ndata: ([^\r\n]+)$/.exec(event) ?? [];
      demand(name !== undefined && data !== undefined, `not an event: ${JSON.stringify(event)}`);
      demand(parse(data).type === name, `an event of another type than its name: ${event}`);
      return name;
    });
  const last = named.at(-1) ?? "";
  const ends = ["message_stop", "response.completed", "response.incomplete"];
  demand(ends.includes(last), `a stream that ends with ${last}`);
  demand(named.filter((name) => name === last).length === 1, "a stream that ends twice");
}

/**
 * wire.md "Framing", "Chunks": each event one line of data and a blank line; the role first, one
 * finish_reason, `[DONE]` last.
 */
function checkEvents(text: string): void {
  const events = text.split("\n\n");
  demand(events.pop() === "", "an event that does not end with a blank line");
  const data = events.filter((event) => event !== ": keep-alive");
  for (const event of data)
    demand(/^data: [^\r\n]+$/.test(event), `not an event: ${JSON.stringify(event)}`);
  demand(data.pop() === "data: [DONE]", `a stream without [DONE]: ${text.slice(-500)}`);
  const chunks = data.map((event) => parse(event.slice(6)));
  demand(
    chunks.every(({ object, id }) => object === "chat.completion.chunk" && id === chunks[0].id),
    "a stream of other things than its chunks",
  );
  const choices = chunks.flatMap((chunk) => chunk.choices);
  demand(
    choices.every(({ delta }, index) => (delta.role === "assistant") === (index === 0)),
    "the role is not in the first chunk alone",
  );
  demand(
    choices.filter((choice) => choice.finish_reason !== null).length === 1 &&
      choices.at(-1).finish_reason !== null,
    "not one finish_reason at the end",
  );
}
