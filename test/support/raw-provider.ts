// A provider that sends exactly the bytes that a test gives it; the client that calls it; and the
// body of an answer, piece by piece.

import net from "node:net";
import type { TestContext } from "node:test";
import { readAll } from "../../src/core/upstream/body.ts";
import { Cancel } from "../../src/core/http/cancel.ts";
import type {
  UpstreamBody,
  UpstreamRequest,
  UpstreamResponse,
} from "../../src/core/upstream/transport.ts";
import {
  createPooledClient,
  type PooledClient,
} from "../../src/extensions/providers/pooled-client/client.ts";
import { listening } from "./listening.ts";
import { waitFor, within } from "./wait.ts";

/** A request that has arrived completely. */
export interface RawRequest {
  /** Head and body as text of Latin-1. */
  readonly text: string;
  readonly socket: net.Socket;
  /** The number of its connection, from 0. */
  readonly connection: number;
}

/** `answer` is called with every request. Absent: the test answers through `requests`. */
export async function startRawProvider(
  t: TestContext,
  answer: (request: RawRequest, n: number) => void = () => undefined,
  host = "127.0.0.1",
) {
  const requests: RawRequest[] = [];
  /** All connections that were ever made. */
  const sockets: net.Socket[] = [];
  const server = net.createServer({ noDelay: true }, (socket) => {
    const connection = sockets.push(socket) - 1;
    let text = "";
    socket.on("error", () => undefined);
    socket.on("data", (bytes: Buffer) => {
      text += bytes.toString("latin1");
      const head = text.indexOf("\r\n\r\n") + 4;
      if (head === 3) return;
      const length = Number(/content-length: (\d+)/i.exec(text.slice(0, head))?.[1]);
      if (text.length < head + length) return;
      const request = { text, socket, connection };
      text = "";
      answer(request, requests.push(request) - 1);
    });
  });
  return {
    url: await listening(t, server, host),
    requests,
    sockets,
    /** Waits for the n-th request, from 0. */
    request: (n: number) => waitFor(() => requests[n], `request ${n}`),
    /** Resolves when the client, or the test, has closed the n-th connection. */
    closed: (n: number) => waitFor(() => sockets[n]?.closed, `connection ${n} to close`),
  };
}

/** A response with a Content-Length. `fields`: further header lines. */
export const reply = (text = "ok", ...fields: string[]): string =>
  ["HTTP/1.1 200 OK", `Content-Length: ${text.length}`, ...fields, "", text].join("\r\n");

export function startClient(t: TestContext, maxConnections?: number): PooledClient {
  const client = createPooledClient(maxConnections);
  t.after(() => client.close());
  return client;
}

/** Sends a request. A failure is not an unhandled rejection if the test ignores it. */
export function call(
  { send }: Pick<PooledClient, "send">,
  url: string,
  over: Partial<UpstreamRequest> = {},
) {
  const cancel = new Cancel();
  const request: UpstreamRequest = {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/json" },
    body: "{}",
    cancel,
    connectMs: 2_000,
    sent: () => undefined,
    ...over,
  };
  const response = within(send(url, request), "the head of a response");
  response.catch(() => undefined);
  let text: Promise<string> | undefined;
  return {
    cancel,
    response,
    /** The text of the response's body. Reading begins when this is first accessed. */
    get text() {
      text ??= response.then(textOf);
      return text;
    },
  };
}

export const textOf = async ({ body }: UpstreamResponse): Promise<string> =>
  body ? await within(readAll(body, Infinity), "the end of a body") : "";

/** A body as an iterator. The next piece is read on demand. Returning abandons the body. */
export async function* piecesOf(body: UpstreamBody): AsyncGenerator<Uint8Array, undefined> {
  if (!("each" in body)) {
    yield* body;
    return;
  }
  const pieces: Uint8Array[] = [];
  let wake = (): void => undefined;
  let room: { resolve(): void; reject(error: Error): void } | undefined;
  let end: { readonly error?: unknown } | undefined;
  const take = (bytes: Uint8Array): Promise<void> => {
    pieces.push(bytes);
    wake();
    return new Promise((resolve, reject) => (room = { resolve, reject }));
  };
  body
    .each(take)
    .then(
      () => (end = {}),
      (error) => (end = { error }),
    )
    .then(() => wake());
  try {
    for (;;) {
      const piece = pieces.shift();
      if (piece) {
        yield piece;
        room?.resolve();
      } else if (end) {
        if ("error" in end) throw end.error;
        return;
      } else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    room?.reject(new Error("the body is read no further"));
  }
}
