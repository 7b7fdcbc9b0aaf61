// The HTTP client of the suite. It keeps each answer as received (raw headers and text), parses
// whole replies and streams, can watch a stream and leave it early, and can send raw bytes that no
// other client would send. Each wait has a deadline, whose error names what was awaited.

import { isUtf8 } from "node:buffer";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { within } from "./expect.ts";
import { find, first, isObject, type Json } from "./shapes.ts";

/** Headers of a request. Undefined: the header is left out. */
export type Headers = Readonly<Record<string, string | undefined>>;
/** A request to the gateway. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers?: Headers | undefined;
  readonly body?: string | Buffer | undefined;
  /** When it is aborted, the connection is closed at once. */
  readonly signal?: AbortSignal | undefined;
}

/** An answer whose head has been received. */
export type Opened = ReturnType<typeof reading>;
/** A whole answer, as received. */
export type Answer = Awaited<ReturnType<Opened["rest"]>>;

/** A client of one gateway. */
export type Client = ReturnType<typeof createClient>;

/**
 * Creates a client. `baseUrl`: the address before `/v1`. `deadlineMs`: for each wait. `common`:
 * headers of every request except raw ones.
 */
export function createClient(baseUrl: string, deadlineMs: number, common: Headers = {}) {
  const base = new URL(baseUrl.replace(/\/+$/, ""));
  const protocol = base.protocol === "https:" ? https : http;
  const agent = new protocol.Agent({ keepAlive: true });
  const prefix = base.pathname === "/" ? "" : base.pathname;

  /** Sends a request. Resolves when the head of the answer has been received. */
  async function open({ method, path, headers, body, signal }: Request): Promise<Opened> {
    const askedAt = performance.now();
    const name = `${method} ${path}`;
    const req = protocol.request(base, { method, path: prefix + path, agent, signal });
    const length = body === undefined ? undefined : String(Buffer.byteLength(body));
    const sent = { ...common, "content-length": length, ...headers };
    for (const [field, value] of Object.entries(sent))
      if (value !== undefined) req.setHeader(field, value);
    const head = new Promise<IncomingMessage>((resolve, reject) => {
      req.on("response", resolve);
      req.on("error", (error) => reject(new Error(`the connection failed: ${error.message}`)));
    });
    req.end(body);
    const res = await within(head, `the head of the answer to ${name}`, deadlineMs, () =>
      req.destroy(),
    );
    return reading(res, name, askedAt, deadlineMs);
  }

  /** Sends raw bytes on a connection of its own. */
  function connect(bytes: string | Buffer): net.Socket {
    const host = base.hostname.replace(/^\[|\]$/g, "");
    const secure = protocol === https;
    const port = Number(base.port || (secure ? 443 : 80));
    const socket = secure
      ? tls.connect({ host, port, servername: net.isIP(host) ? "" : host })
      : net.connect({ host, port });
    socket.on("error", () => undefined); // what was received before is the answer
    socket.write(bytes);
    return socket;
  }

  return {
    open,
    /** Sends a request. Resolves with the whole answer, whatever its status is. */
    send: async (request: Request): Promise<Answer> => (await open(request)).rest(),
    /** Sends raw bytes. Resolves with everything received once the server closes the connection. */
    async raw(bytes: string | Buffer): Promise<string> {
      const socket = connect(bytes);
      const pieces: Buffer[] = [];
      socket.on("data", (piece: Buffer) => pieces.push(piece));
      const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
      await within(closed, "the server to close a connection with a bad request", deadlineMs, () =>
        socket.destroy(),
      );
      return Buffer.concat(pieces).toString("latin1");
    },
    /** Sends raw bytes and reads nothing. Resolves when the first answer has begun. */
    async unread(bytes: string): Promise<net.Socket> {
      const socket = connect(bytes);
      const begun = new Promise<void>((resolve, reject) => {
        socket.once("readable", resolve); // without a read(), only the connection's buffers fill
        socket.once("close", () => reject(new Error("the connection was closed unanswered")));
      });
      await within(begun, "the first answer on a connection", deadlineMs, () => socket.destroy());
      return socket;
    },
    close: () => agent.destroy(),
  };
}

/** Reads an answer. `name`: the request in errors. */
function reading(res: IncomingMessage, name: string, askedAt: number, deadlineMs: number) {
  let receivedAt = askedAt;
  let onData = () => {};
  const pieces: Buffer[] = [];
  const closed = new Promise<void>((resolve) => res.on("close", resolve));
  res.on("error", () => undefined); // `complete` is false then
  res.on("data", (bytes: Buffer) => {
    pieces.push(bytes);
    receivedAt = performance.now();
    onData();
  });
  return {
    /** Resolves when this text has been received. Rejects if the body ends before. */
    async until(text: string): Promise<void> {
      const seen = new Promise<void>((resolve) => {
        onData = () => Buffer.concat(pieces).includes(text) && resolve();
        onData();
      });
      const ended = closed.then(() => {
        throw new Error(`the answer to ${name} ended before ${text}`);
      });
      await within(Promise.race([seen, ended]), text, deadlineMs);
    },
    /** Resolves with the answer at its end. */
    async rest() {
      await within(closed, `the end of the answer to ${name}`, deadlineMs, () => res.destroy());
      const body = Buffer.concat(pieces);
      return {
        status: res.statusCode ?? 0,
        headers: res.headers,
        /** Names and values in turn. */
        rawHeaders: res.rawHeaders as readonly string[],
        /** The body. Undefined: it is not UTF-8. */
        text: isUtf8(body) ? new TextDecoder().decode(body) : undefined,
        /** Whether the body is complete. False: the connection broke before its end. */
        whole: res.complete,
        /** Milliseconds from the last byte of the body, or from the request, to the end. */
        closingMs: performance.now() - receivedAt,
      };
    },
    /** Stops reading. */
    pause: () => res.pause(),
    /** Closes the connection at once. */
    leave: () => res.destroy(),
  };
}

/** A block of an event stream, which ends with a blank line. */
export interface StreamEvent {
  readonly lines: readonly string[];
  /** Its `data` lines, joined. Undefined: it has none. */
  readonly data: string | undefined;
  /** The parsed data. Undefined: it is not JSON. */
  readonly json: unknown;
}

/** The blocks of a stream. `rest`: the text after the last blank line. */
export function parseEvents(text: string): { events: StreamEvent[]; rest: string } {
  const blocks = text.split(/\r?\n\r?\n/);
  const rest = blocks.pop() ?? "";
  const events = blocks.map((block) => {
    const lines = block.split(/\r?\n/);
    const dataLines = lines
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5).replace(/^ /, ""));
    const data = dataLines.length > 0 ? dataLines.join("\n") : undefined;
    return { lines, data, json: parseJson(data) };
  });
  return { events, rest };
}

/** A request to the gateway with its answer, as received and parsed. */
export type Exchange = ReturnType<typeof exchangeOf>;

/** Parses an answer. `check`: the id of the check that sent the request. */
export function exchangeOf(check: string, request: Request, answer: Answer) {
  const { body = "" } = request;
  const sent = parseJson(String(body));
  const asked: Json = isObject(sent) ? sent : {};
  const { text = "" } = answer;
  const streamed = answer.status === 200 && asked["stream"] === true;
  const json = parseJson(text);
  const { events, rest } = streamed ? parseEvents(text) : { events: [], rest: "" };
  const documents = streamed ? events.map((event) => event.json).filter(isObject) : [json];
  const isError = (value: unknown) => isObject(value) && "error" in value;
  const parts = streamed ? documents.filter((each) => !isError(each)) : documents;
  const all = (path: string): unknown[] =>
    parts.flatMap((part) => find(part, path)).map(({ value }) => value);
  const joined = (field: string): string =>
    all(`choices[].${streamed ? "delta" : "message"}.${field}`)
      .filter((value) => (value ?? null) !== null)
      .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
      .join("");
  return {
    ...answer,
    check,
    request,
    /** The request's body if it is a JSON object, else {}. */
    asked,
    /** The parsed body of the answer. Undefined: it is not JSON. */
    json,
    /** Whether the request asked for a stream and got status 200. */
    streamed,
    /** The blocks of the stream. Empty: the answer is not a stream. */
    events,
    /** The text after the last blank line of the stream. */
    rest,
    /** The parsed body, or the chunks of the stream. */
    parts,
    /** The error in the body or in an event. */
    error: first(documents.find(isError), "error"),
    content: joined("content"),
    thoughts: joined("reasoning_content"),
    /** The last finish_reason. */
    finish: all("choices[].finish_reason").at(-1),
    /** The last usage. */
    usage: all("usage").findLast(isObject) as unknown,
    /** Headers and body as text, for messages. */
    shown: `${answer.rawHeaders.join("\n")}\n${text}`,
  };
}

/** Parses the first answer in the text received for raw bytes. */
export function parseRaw(text: string) {
  const [head = "", ...body] = text.split("\r\n\r\n");
  const [start = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line) => {
    const [name = "", ...value] = line.split(":");
    return [name.toLowerCase(), value.join(":").trim()] as const;
  });
  return {
    status: Number(start.split(" ")[1]),
    /** Header values, by names in lower case. */
    headers: Object.fromEntries(headers) as Readonly<Record<string, string>>,
    text: body.join("\r\n\r\n"),
  };
}

/** Parses JSON. Undefined: it is not JSON. */
export function parseJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
