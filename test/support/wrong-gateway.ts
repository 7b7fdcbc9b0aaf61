// A gateway that is wrong on purpose: a proxy before a right one that has one fault at a time. The
// faults are in faults/, one or more for each check of the conformance suite; a fault touches no
// more than what its check is about, so that no other may notice.

import http, { type IncomingHttpHeaders } from "node:http";
import net, { type Socket } from "node:net";
import type { TestContext } from "node:test";
import { parseJson } from "../../scripts/conformance/client.ts";
import { isObject, list, first, type Json } from "../../scripts/conformance/shapes.ts";
import { listening } from "./listening.ts";

/** What is made of the bytes of a request; they keep their number. */
export type Change = (bytes: string) => string;

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body, or {} if it is not a JSON object. */
  readonly body: Json;
  /** The last message's text. */
  readonly question: string;
  readonly streamed: boolean;
}

export interface Answer {
  readonly status: number;
  /** By their names as they came. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly text: string;
}

export interface Fault {
  readonly when: (asked: Asked) => boolean;
  /** What is asked instead: another body, other headers. */
  readonly forward?: (asked: Asked) => {
    readonly text?: string;
    readonly headers?: IncomingHttpHeaders;
  };
  readonly answer?: (answer: Answer) => Answer;
  /** What is asked instead where the gateway refuses; `answer` is for what it does not refuse. */
  readonly mend?: (asked: Asked) => Json;
  /** Closes the connection instead of answering. */
  readonly cut?: boolean;
  /** The answer ends so much after its last byte. */
  readonly lateMs?: number;
  /** The gateway is asked twice, and the first answer thrown away. */
  readonly twice?: boolean;
  /** The provider is sent a request by itself. Absent: for the same model. */
  readonly knock?: { readonly path: string; readonly model?: string };
  /** A client that has left goes unnoticed. */
  readonly holds?: boolean;
  /** Reads the answer no matter how slowly the client does. */
  readonly greedy?: boolean;
  /** What is made of the gateway's own requests, by a wire between it and its provider. */
  readonly wire?: Change;
  /** What is done to the answer to bytes that the suite sends by itself. */
  readonly raw?: {
    readonly when: (bytes: string) => boolean;
    readonly answer: (answer: string) => string;
  };
}

/**
 * An answer to bytes that the suite sends by itself is read no further: it is one that nobody
 * reads.
 */
const MAX_RAW_BYTES = 1024 * 1024;

const NO_FAULT: Fault = { when: () => true };

/** Passes an answer on; `greedy`: no matter how slowly the client reads. */
function pipe(answer: http.IncomingMessage, res: http.ServerResponse, greedy = false): void {
  res.writeHead(answer.statusCode ?? 0, answer.rawHeaders);
  if (greedy) answer.on("data", (piece) => res.write(piece)).on("end", () => res.end());
  else answer.pipe(res);
}

/** Sends the whole answer after the fault has changed it; its end comes `lateMs` later. */
const edited =
  (
    edit: (answer: Answer) => Answer,
    { statusCode = 0, headers }: http.IncomingMessage,
    res: http.ServerResponse,
    lateMs: number | undefined,
  ) =>
  (came: Buffer): void => {
    const { "content-length": _length, "transfer-encoding": _encoding, ...rest } = headers;
    const text = came.toString("utf8");
    const changed = edit({ status: statusCode, headers: rest as Answer["headers"], text });
    res.writeHead(changed.status, changed.headers);
    if (lateMs === undefined) {
      res.end(changed.text);
      return;
    }
    res.write(changed.text);
    setTimeout(() => res.end(), lateMs);
  };

/** `provider` is the address of the provider of the right gateway. */
export async function startWrongGateway(t: TestContext, right: string, provider = right) {
  const { hostname, port } = new URL(right);
  const agent = new http.Agent({ keepAlive: true });
  let fault: Fault | undefined;

  /** Asks the right gateway more than the client did, if that is the fault. */
  async function disturb(asked: Asked, applied: Fault, again: () => http.ClientRequest) {
    if (applied.twice) await answered(again());
    if (!applied.knock) return;
    const { path, model = asked.body["model"] } = applied.knock;
    const options = { agent, method: asked.method };
    await answered(http.request(provider + path, options).end(JSON.stringify({ model })));
  }

  /** Another request in the place of one that was refused, with the gateway's own key. */
  function mended(body: string, res: http.ServerResponse): void {
    const headers = { "content-type": "application/json", authorization: "Bearer sk-demo" };
    const request = http.request(`${right}/v1/chat/completions`, {
      agent,
      method: "POST",
      headers,
    });
    request.on("error", () => res.destroy()).on("response", (answer) => pipe(answer, res));
    request.end(body);
  }

  async function relay(bytes: Buffer, req: http.IncomingMessage, res: http.ServerResponse) {
    const asked = askedBy(req.method ?? "", req.url ?? "", req.headers, bytes.toString("utf8"));
    const applied: Fault = fault?.when(asked) ? fault : NO_FAULT;
    if (applied.cut) {
      res.destroy();
      return;
    }
    const { text, headers } = applied.forward?.(asked) ?? {};
    const sent = text ?? bytes;
    const length = text === undefined ? {} : { "content-length": String(Buffer.byteLength(text)) };
    const options = {
      agent,
      method: req.method,
      headers: { ...req.headers, ...length, ...headers },
    };
    await disturb(asked, applied, () => http.request(right + req.url, options).end(sent));
    const upstream = http.request(right + req.url, options);
    upstream.on("error", () => res.destroy());
    res.on("close", () => applied.holds || upstream.destroy());
    upstream.on("response", (answer) => {
      if (applied.mend && answer.statusCode !== 200) {
        answer.resume();
        mended(JSON.stringify(applied.mend(asked)), res);
      } else if (applied.answer)
        read(answer).then(edited(applied.answer, answer, res, applied.lateMs), () => res.destroy());
      else pipe(answer, res, applied.greedy);
    });
    upstream.end(sent);
  }

  const proxy = http.createServer({ noDelay: true }, (req, res) => {
    read(req).then(
      (bytes) => relay(bytes, req, res),
      () => res.destroy(),
    );
  });

  /** What the suite sends by itself, as no client would, goes to the right gateway byte by byte. */
  function pass(socket: Socket, bytes: Buffer): void {
    const upstream = net.connect(Number(port), hostname, () => upstream.write(bytes));
    socket.on("error", () => upstream.destroy());
    socket.on("close", () => upstream.destroy());
    const raw = fault?.raw;
    const pieces: Buffer[] = [];
    let size = 0;
    upstream.on("data", (piece: Buffer) => {
      pieces.push(piece);
      size += piece.length;
      if (size <= MAX_RAW_BYTES) return;
      upstream.pause();
      socket.write(Buffer.concat(pieces));
    });
    upstream.on("end", () => {
      const answer = Buffer.concat(pieces);
      const edited = raw?.when(bytes.toString("latin1"))
        ? raw.answer(answer.toString("latin1"))
        : answer;
      socket.end(edited);
    });
    upstream.on("error", () => socket.destroy());
  }

  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.once("data", (bytes) => {
      if (!/^connection: keep-alive/im.test(bytes.toString("latin1"))) return pass(socket, bytes);
      socket.pause();
      socket.unshift(bytes);
      proxy.emit("connection", socket);
      socket.resume();
    });
  });
  t.after(() => agent.destroy());
  return {
    url: await listening(t, server),
    /** Has this fault from now on; undefined: none. */
    turn: (next: Fault | undefined) => {
      fault = next;
    },
  };
}

function askedBy(method: string, path: string, headers: IncomingHttpHeaders, text: string): Asked {
  const parsed = parseJson(text);
  const body = isObject(parsed) ? parsed : {};
  const last = list(body["messages"]).at(-1);
  return {
    method,
    path,
    headers,
    text,
    body,
    question: String(first(last, "content") ?? ""),
    streamed: body["stream"] === true,
  };
}

/** Resolves when there is an answer, or soon after if there is none. */
async function answered(request: http.ClientRequest): Promise<void> {
  const head = new Promise<void>((resolve) =>
    request
      .on("error", () => resolve())
      .on("response", (answer) => {
        answer.resume();
        resolve();
      }),
  );
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([head, new Promise((resolve) => (timer = setTimeout(resolve, 50)))]);
  clearTimeout(timer);
}

async function read(from: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of from) pieces.push(piece);
  return Buffer.concat(pieces);
}

/**
 * What stands between a gateway and its provider, byte by byte, and is wrong on purpose: it changes
 * what the gateway asks, as a gateway would that asks so.
 */
export async function startWire(t: TestContext, provider: string) {
  const { hostname, port } = new URL(provider);
  let change: Change | undefined;
  const server = net.createServer({ noDelay: true, allowHalfOpen: true }, (gateway) => {
    const upstream = net.connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      allowHalfOpen: true,
    });
    for (const [one, other] of [
      [gateway, upstream],
      [upstream, gateway],
    ] as const) {
      one.on("error", () => other.resetAndDestroy());
      one.on("close", () => other.destroy());
      one.on("end", () => other.end());
    }
    gateway.on("data", (bytes: Buffer) => {
      upstream.write(change ? Buffer.from(change(bytes.toString("latin1")), "latin1") : bytes);
    });
    upstream.pipe(gateway, { end: false });
  });
  return {
    url: await listening(t, server),
    turn: (next: Change | undefined) => {
      change = next;
    },
  };
}
