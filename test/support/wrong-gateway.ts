// A gateway with one fault at a time: a proxy in front of a correct gateway. The faults are in
// faults/, one or more for each check of the conformance suite. A fault changes only what its check
// tests, so no other check may fail.

import http, { type IncomingHttpHeaders } from "node:http";
import net, { type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { parseJson } from "../../scripts/conformance/client.ts";
import { isObject, list, first, type Json } from "../../scripts/conformance/shapes.ts";
import { listening } from "./listening.ts";

/** Changes the bytes of a request, but not their number. */
export type Change = (bytes: string) => string;

/** A request to the wrong gateway. */
export type Asked = ReturnType<typeof askedBy>;

/** An answer of the correct gateway, before or after the fault has changed it. */
export interface Answer {
  readonly status: number;
  /** The headers by their names as received. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly text: string;
}

/** A fault. Absent members change nothing. */
export interface Fault {
  /** Whether the fault concerns a request. */
  readonly when: (asked: Asked) => boolean;
  /** Returns another body, or further headers, to forward to the gateway. */
  readonly forward?: (asked: Asked) => {
    readonly text?: string;
    readonly headers?: IncomingHttpHeaders;
  };
  /** Changes the answer. */
  readonly answer?: (answer: Answer) => Answer;
  /** Returns a request to send if this one is refused. `answer` then changes only 200s. */
  readonly mend?: (asked: Asked) => Json;
  /** Whether the connection is closed without an answer. */
  readonly cut?: boolean;
  /** Milliseconds from the last byte of the answer to its end. */
  readonly lateMs?: number;
  /** Whether the request is sent twice, and the first answer is dropped. */
  readonly twice?: boolean;
  /** A further request to the provider. `model` absent: the requested model. */
  readonly knock?: { readonly path: string; readonly model?: string };
  /** Whether the request continues although its client has left. */
  readonly holds?: boolean;
  /** Whether the answer is read faster than the client reads it. */
  readonly greedy?: boolean;
  /** Changes the gateway's requests to its provider. */
  readonly wire?: Change;
  /** Changes the answer to raw bytes. */
  readonly raw?: {
    readonly when: (bytes: string) => boolean;
    readonly answer: (answer: string) => string;
  };
}

/** The most bytes that are read of an answer to raw bytes. The suite reads no more, either. */
const MAX_RAW_BYTES = 1024 * 1024;

const NO_FAULT: Fault = { when: () => true };

/** Forwards an answer. `greedy`: reads it faster than the client does. */
function pipe(answer: http.IncomingMessage, res: http.ServerResponse, greedy = false): void {
  res.writeHead(answer.statusCode ?? 0, answer.rawHeaders);
  if (greedy) answer.on("data", (piece) => res.write(piece)).on("end", () => res.end());
  else answer.pipe(res);
}

/** Sends a whole answer after the fault has changed it. Ends it `lateMs` after its last byte. */
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
    setTimeout(() => res.end(), lateMs).unref();
  };

/** Starts the proxy. `right`: the correct gateway's address. `provider`: that of its provider. */
export async function startWrongGateway(t: TestContext, right: string, provider = right) {
  const { hostname, port } = new URL(right);
  const agent = new http.Agent({ keepAlive: true });
  let fault: Fault | undefined;

  /** Sends the further requests of a fault: `twice` and `knock`. */
  async function disturb(asked: Asked, applied: Fault, again: () => http.ClientRequest) {
    if (applied.twice) await answered(again());
    if (!applied.knock) return;
    const { path, model = asked.body["model"] } = applied.knock;
    const options = { agent, method: asked.method };
    await answered(http.request(provider + path, options).end(JSON.stringify({ model })));
  }

  /** Sends another request instead of a refused one, and forwards its answer. */
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
        buffer(answer).then(edited(applied.answer, answer, res, applied.lateMs), () =>
          res.destroy(),
        );
      else pipe(answer, res, applied.greedy);
    });
    upstream.end(sent);
  }

  const proxy = http.createServer({ noDelay: true }, (req, res) => {
    buffer(req).then(
      (bytes) => relay(bytes, req, res),
      () => res.destroy(),
    );
  });

  /** Forwards raw bytes to the correct gateway. */
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
    /** Sets the fault. Undefined: none. */
    turn: (next: Fault | undefined) => {
      fault = next;
    },
  };
}

function askedBy(method: string, path: string, headers: IncomingHttpHeaders, text: string) {
  const parsed = parseJson(text);
  const body: Json = isObject(parsed) ? parsed : {};
  const last = list(body["messages"]).at(-1);
  return {
    method,
    path,
    headers,
    text,
    /** The parsed body. {}: it is no JSON object. */
    body,
    /** The text of the last message. */
    question: String(first(last, "content") ?? ""),
    streamed: body["stream"] === true,
  };
}

/** Resolves when there is an answer, or after 50 ms without one. */
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

/** Starts a proxy in front of the provider, which can change the correct gateway's requests. */
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
