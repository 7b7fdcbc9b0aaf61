// Bounds HTTP pipelining. Node parses everything in one read: 64 KB hold about 1,800 small
// requests, each of which takes memory until its turn comes. Here the bytes of a connection reach
// the parser one request at a time, and stay unparsed while MAX_PIPELINED requests wait for their
// responses. A client that reads its responses gets all of them, in order.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { Pipeline } from "../../../core/http/connection.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.boundPipeline, boundPipeline);
}

type Head = Pick<IncomingMessage, "complete"> & {
  readonly headers: { readonly "content-length"?: string | undefined };
};

/**
 * The state of a connection on which the bound depends. `live`: requests whose response is not yet
 * complete. `latest`: the request that was parsed last; absent: there is none.
 */
export interface Bounded {
  readonly socket: Duplex;
  readonly live: { readonly size: number };
  readonly latest?: { readonly req: Head } | undefined;
}

/** Requests of one connection that may wait for their responses before parsing stops. */
export const MAX_PIPELINED = 16;
/**
 * The end of a chunked body is only known once it is parsed, so it is parsed in pieces of this many
 * bytes. As many bytes of further requests may be parsed with its last piece.
 */
const CHUNKED_PIECE_BYTES = 2_048;
const END_OF_HEAD = "\r\n\r\n";
const NO_BYTES = Buffer.alloc(0);

/** Bounds a connection that Node's HTTP server has just accepted. */
export function boundPipeline(connection: Bounded): Pipeline {
  const { socket, live } = connection;
  const latest = () => connection.latest?.req;
  const parse = takeParser(socket);
  let unparsed: Buffer | undefined;
  /** The last three bytes of an unfinished head: its end may be split between two reads. */
  let seam = NO_BYTES;
  /** The bytes of a body with a Content-Length that are not yet parsed. */
  let bodyLeft = 0;
  let parsing = false;
  let stopped = false;

  const isBodyComing = (): boolean => latest()?.complete === false;
  const hasRoom = (): boolean => live.size < MAX_PIPELINED || isBodyComing();
  const mayParse = (): boolean =>
    !stopped && !socket.destroyed && !isHeldByNode(socket) && hasRoom();

  /** How many of these bytes to parse next: at most up to the end of one head or body. */
  function pieceLength(bytes: Buffer): number {
    if (isBodyComing()) return bodyLeft > 0 ? bodyLeft : CHUNKED_PIECE_BYTES;
    if (seam.length > 0) {
      const start = Buffer.concat([seam, bytes.subarray(0, 3)]).indexOf(END_OF_HEAD);
      if (start !== -1) return start + END_OF_HEAD.length - seam.length;
    }
    const end = bytes.indexOf(END_OF_HEAD);
    return end === -1 ? Infinity : end + END_OF_HEAD.length;
  }

  /** `isWhole`: the piece contains the end of its head or body. */
  function parsePiece(piece: Buffer, isWhole: boolean): void {
    const before = latest();
    const wasBody = isBodyComing();
    parse(piece);
    const after = latest();
    if (wasBody) bodyLeft -= Math.min(bodyLeft, piece.length);
    else if (isWhole) seam = NO_BYTES;
    else seam = Buffer.concat([seam, piece.subarray(-3)]).subarray(-3);
    if (after !== before) bodyLeft = Number(after?.headers["content-length"] ?? 0);
  }

  function parseUnparsed(): void {
    while (unparsed && mayParse()) {
      const bytes: Buffer = unparsed;
      const length = pieceLength(bytes);
      const isCut = length < bytes.length;
      unparsed = isCut ? bytes.subarray(length) : undefined;
      parsePiece(isCut ? bytes.subarray(0, length) : bytes, length <= bytes.length);
    }
  }

  function advance(): void {
    if (parsing) return;
    parsing = true;
    try {
      parseUnparsed();
    } finally {
      parsing = false;
    }
    if (stopped) unparsed = undefined;
    if (unparsed) socket.pause();
    else if (socket.isPaused() && !isHeldByNode(socket)) socket.resume();
  }

  socket.on("data", (bytes: Buffer) => {
    if (stopped) return;
    unparsed = unparsed ? Buffer.concat([unparsed, bytes]) : bytes;
    advance();
  });
  socket.on("resume", advance); // Node's server resumes a socket when its responses are sent.
  return {
    advance,
    stop() {
      stopped = true;
      advance();
    },
  };
}

/** Removes the listener with which Node's server parses a connection, and returns it. */
function takeParser(socket: Duplex): (bytes: Buffer) => void {
  const [parse] = socket.listeners("data") as ((bytes: Buffer) => void)[];
  if (!parse) throw new TypeError("the HTTP server does not listen for data");
  socket.removeListener("data", parse);
  return parse;
}

/** Node's server sets `_paused` while too many response bytes are unsent: do not parse then. */
const isHeldByNode = (socket: Duplex & { _paused?: boolean }): boolean => socket._paused === true;
