// What two parsers make of the same bytes: that of the pooled client, and Node's own (llhttp),
// which plays the part of the oracle. No sockets are needed: node:http gets a stream that plays the
// bytes.

import http from "node:http";
import { Duplex } from "node:stream";
import { ResponseParser } from "../../src/extensions/providers/pooled-client/response-parser.ts";
import type { ResponseHead } from "../../src/extensions/providers/pooled-client/response-head.ts";

/** A complete response, or why there is none. */
export type Reading =
  | {
      readonly status: number;
      /** The value of a header, by the name in lower case. */
      readonly header: (name: string) => string | null;
      /** Every name that came, in lower case, if that is known. */
      readonly names: readonly string[];
      readonly body: string;
      /** The connection can be used again. */
      readonly kept: boolean;
    }
  | { readonly refused: string };

/** A connection on which a server sends these bytes, and ends it. */
function playing(bytes: Buffer): Duplex {
  let played = false;
  return new Duplex({
    read() {},
    write(_chunk, _encoding, done) {
      done();
      if (played) return;
      played = true;
      if (bytes.length > 0) this.push(bytes);
      this.push(null);
    },
  });
}

/** node:http's reading. Its bound on heads is well above the client's own. */
export function readByNode(text: string): Promise<Reading> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let response: http.IncomingMessage | undefined;
    let refused = "closed";
    const request = http.request({
      createConnection: () => playing(Buffer.from(text, "latin1")),
      headers: { Connection: "keep-alive" },
      maxHeaderSize: 1024 * 1024,
    });
    request.maxHeadersCount = 0; // no bound
    request.on("error", (error: NodeJS.ErrnoException) => (refused = error.code ?? error.message));
    request.on("response", (message) => {
      response = message;
      message.on("data", (piece: Buffer) => pieces.push(piece));
      message.on("error", () => undefined);
    });
    // The socket's end decides whether the response was complete; its reader may be behind.
    request.on("close", () => {
      if (!response?.complete) return resolve({ refused });
      if (response.readableEnded || response.destroyed) return resolve(readingOf(response));
      response.on("end", () => resolve(readingOf(response!)));
    });
    request.end();

    const readingOf = (message: http.IncomingMessage): Reading => ({
      status: message.statusCode!,
      header: (name) => headerOf(message.rawHeaders, name),
      names: message.rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
      body: Buffer.concat(pieces).toString("latin1"),
      kept: request.shouldKeepAlive,
    });
  });
}

/** The first line of a field that is not to be repeated; the lines of any other make one list. */
function headerOf(raw: readonly string[], name: string): string | null {
  const values = raw.filter((_, at) => at % 2 === 1 && raw[at - 1]!.toLowerCase() === name);
  const isSingle = name === "content-type" || name === "retry-after";
  return values.length === 0 ? null : (isSingle ? values.slice(0, 1) : values).join(", ");
}

/** The client's reading of the same bytes, which arrive in these pieces. */
export function readByClient(pieces: readonly Buffer[]): Reading {
  let head: ResponseHead | undefined;
  let body = "";
  let completed = 0;
  let hasSurplus = false;
  const parser = new ResponseParser({
    head: (parsed) => (head = parsed),
    body: (bytes) => (body += bytes.toString("latin1")),
    complete(surplus) {
      completed += 1;
      hasSurplus = surplus;
    },
  });
  try {
    for (const piece of pieces) {
      if (completed > 0) hasSurplus = true;
      else parser.push(piece);
    }
    if (completed === 0) parser.end();
  } catch (error) {
    return { refused: (error as Error).message };
  }
  if (completed !== 1 || !head) return { refused: "incomplete" };
  return {
    status: head.status,
    header: head.headers.get,
    names: [],
    body,
    kept: head.idleMs > 0 && !hasSurplus,
  };
}
