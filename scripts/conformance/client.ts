// HTTP as the suite needs it: requests whose answers are kept as they came (raw headers, text) and
// read, whole or as streams, streams that can be watched and left half-way, and raw bytes for what no
// client would send. Nothing waits without a deadline, and one that passes says what was waited for.

import { isUtf8 } from "node:buffer";
import http, { type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { within } from "./expect.ts";
import { find, first, isObject, type Json } from "./shapes.ts";

export interface Request {
  readonly method: string;
  readonly path: string;
  /** One that is undefined is left out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Buffer | undefined;
  /** The body as it was before it was written. Absent: it is no JSON object. */
  readonly asked?: Json;
  /** Aborted: the connection is closed at once, also before the head of the answer has come. */
  readonly signal?: AbortSignal | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
  /** The body; undefined if it is not UTF-8. */
  readonly text: string | undefined;
  /** Whether the body came to its end; false if the connection broke before. */
  readonly whole: boolean;
  /** Milliseconds from the last byte of the body, or the request if there is none, to the end. */
  readonly closingMs: number;
}

/** An answer whose head has come. */
export interface Opened {
  /** Resolves once this text has come; fails if the body ends before, or at the deadline. */
  until(text: string): Promise<void>;
  /** The rest, up to its end. */
  rest(): Promise<Answer>;
  /** Reads no more. */
  pause(): void;
  /** Closes the connection at once. */
  leave(): void;
}

export type Client = ReturnType<typeof createClient>;

/**
 * `baseUrl` is the address before `/v1`; `deadlineMs` holds for each wait; `common` headers go with
 * every request but raw ones.
 */
export function createClient(
  baseUrl: string,
  deadlineMs: number,
  common: Readonly<Record<string, string>> = {},
) {
  const base = new URL(baseUrl.replace(/\/+$/, ""));
  const protocol = base.protocol === "https:" ? https : http;
  const agent = new protocol.Agent({ keepAlive: true });
  const prefix = base.pathname === "/" ? "" : base.pathname;

  /** Resolves when the head of the answer has come. */
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
    return reading(res, name, { askedAt, deadlineMs });
  }

  /** A connection of its own, for what no client would send. */
  function connect(bytes: string | Buffer): net.Socket {
    const host = base.hostname.replace(/^\[|\]$/g, "");
    const secure = protocol === https;
    const port = Number(base.port || (secure ? 443 : 80));
    const socket = secure
      ? tls.connect({ host, port, servername: net.isIP(host) ? "" : host })
      : net.connect({ host, port });
    socket.on("error", () => undefined); // what came until then is the answer
    socket.write(bytes);
    return socket;
  }

  return {
    open,
    /** Resolves with the whole answer, whatever its status. */
    send: async (request: Request): Promise<Answer> => (await open(request)).rest(),
    /**
     * Sends bytes on a connection of its own and resolves with what came back when the server has
     * closed it.
     */
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
    /**
     * Sends bytes on a connection of its own, of which no answer is read; resolves when the first
     * answer has begun.
     */
    async unread(bytes: string): Promise<net.Socket> {
      const socket = connect(bytes);
      const begun = new Promise<void>((resolve, reject) => {
        socket.once("readable", resolve); // without a read(), the connection's buffers are all that is filled
        socket.once("close", () => reject(new Error("the connection was closed unanswered")));
      });
      await within(begun, "the first answer on a connection", deadlineMs, () => socket.destroy());
      return socket;
    },
    close: () => agent.destroy(),
  };
}

/** Reads an answer to a request of this name. */
function reading(
  res: IncomingMessage,
  name: string,
  { askedAt, deadlineMs }: { readonly askedAt: number; readonly deadlineMs: number },
): Opened {
  let heardAt = askedAt;
  let came = () => {};
  const pieces: Buffer[] = [];
  const closed = new Promise<void>((resolve) => res.on("close", resolve));
  res.on("error", () => undefined); // told by `complete`
  res.on("data", (bytes: Buffer) => {
    pieces.push(bytes);
    heardAt = performance.now();
    came();
  });
  return {
    async until(text) {
      const seen = new Promise<void>((resolve) => {
        came = () => Buffer.concat(pieces).includes(text) && resolve();
        came();
      });
      const ended = closed.then(() => {
        throw new Error(`the answer to ${name} ended before ${text}`);
      });
      await within(Promise.race([seen, ended]), text, deadlineMs);
    },
    async rest() {
      await within(closed, `the end of the answer to ${name}`, deadlineMs, () => res.destroy());
      const body = Buffer.concat(pieces);
      return {
        status: res.statusCode ?? 0,
        headers: res.headers,
        rawHeaders: res.rawHeaders,
        text: isUtf8(body) ? new TextDecoder().decode(body) : undefined,
        whole: res.complete,
        closingMs: performance.now() - heardAt,
      };
    },
    pause: () => res.pause(),
    leave: () => res.destroy(),
  };
}

/** One block of an event stream, up to its blank line, with its lines as they came. */
export interface StreamEvent {
  readonly lines: readonly string[];
  /** What its `data` lines say together; undefined if it has none. */
  readonly data: string | undefined;
  /** The data, parsed; undefined if it is not JSON. */
  readonly json: unknown;
}

/** The blocks of a stream; `rest` is what follows the last blank line. */
export function parseEvents(text: string): { events: StreamEvent[]; rest: string } {
  const blocks = text.split(/\r?\n\r?\n/);
  const rest = blocks.pop() ?? "";
  const events = blocks.map((block) => {
    const lines = block.split(/\r?\n/);
    const given = lines
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5).replace(/^ /, ""));
    const data = given.length > 0 ? given.join("\n") : undefined;
    return { lines, data, json: parseJson(data) };
  });
  return { events, rest };
}

/** A request to the gateway with its answer, and what the answer says. */
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

export interface RawAnswer {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** The first answer in what came back for raw bytes. */
export function parseRaw(text: string): RawAnswer {
  const [head = "", ...body] = text.split("\r\n\r\n");
  const [start = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line) => {
    const [name = "", ...value] = line.split(":");
    return [name.toLowerCase(), value.join(":").trim()] as const;
  });
  return {
    status: Number(start.split(" ")[1]),
    headers: Object.fromEntries(headers),
    text: body.join("\r\n\r\n"),
  };
}

export function parseJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
