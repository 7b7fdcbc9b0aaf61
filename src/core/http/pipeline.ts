// Pipelining, bounded. Node's parser takes whatever one read brings: 64 KB are some 1,800 small requests, each of which costs memory
// until its turn comes. Here the bytes of a connection reach the parser one request at a time, and wait unread while enough
// requests of that connection wait for their answers. A client that reads its answers gets all of them, in order.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

/** Requests of one connection that may wait for their answers; what follows them is not parsed before one has been answered. */
export const MAX_PIPELINED = 16;
/** A chunked body does not say where it ends, so it is parsed in pieces of this many bytes: all that can follow it at once. */
const CHUNKED_PIECE = 2_048;
const END_OF_HEAD = "\r\n\r\n";
const NO_BYTES = Buffer.alloc(0);

/** What the bound goes by. */
export interface PipelineState {
  /** How many requests have been parsed and wait for their whole answers. */
  readonly waiting: () => number;
  /** The request that was parsed last; undefined before the first one. */
  readonly latest: () => IncomingMessage | undefined;
}

export interface Pipeline {
  /** To be called when a request has had its answer: parses what has been waiting for that. */
  readonly advance: () => void;
  /** Nothing more of this connection is parsed: what else comes is read and thrown away, so that its end is still noticed. */
  readonly stop: () => void;
}

/** Bounds a connection that Node's HTTP server has just taken. */
export function boundPipeline(socket: Duplex, { waiting, latest }: PipelineState): Pipeline {
  // Node's server listens for the bytes of a connection as anyone would. Our listener takes the place of that one, and calls it.
  const [parse] = socket.listeners("data") as ((bytes: Buffer) => void)[];
  if (!parse) throw new TypeError("the HTTP server does not listen for data");
  socket.removeListener("data", parse);
  let unparsed: Buffer | undefined;
  let seam = NO_BYTES; // the last three bytes of a head that has not ended: its end may be cut by two reads
  let bodyLeft = 0; // bytes of a body of stated length that have not come
  let parsing = false;
  let stopped = false;

  const isBodyComing = (): boolean => latest()?.complete === false;
  // Node's server sets this while too much of its answers is unsent; its own listener must not be called then.
  const isHeldByNode = (): boolean => (socket as Duplex & { _paused?: boolean })._paused === true;
  const mayParse = (): boolean =>
    !stopped &&
    !socket.destroyed &&
    !isHeldByNode() &&
    (waiting() < MAX_PIPELINED || isBodyComing());

  /** How many of these bytes hold no more than the end of one request, or of one head. */
  function pieceLength(bytes: Buffer): number {
    if (isBodyComing()) return bodyLeft > 0 ? bodyLeft : CHUNKED_PIECE;
    if (seam.length > 0) {
      const start = Buffer.concat([seam, bytes.subarray(0, 3)]).indexOf(END_OF_HEAD);
      if (start !== -1) return start + END_OF_HEAD.length - seam.length;
    }
    const end = bytes.indexOf(END_OF_HEAD);
    return end === -1 ? Infinity : end + END_OF_HEAD.length;
  }

  function parsePiece(piece: Buffer, isWhole: boolean): void {
    const before = latest();
    const wasBody = isBodyComing();
    parse!(piece);
    const after = latest();
    if (wasBody) bodyLeft -= Math.min(bodyLeft, piece.length);
    else if (isWhole) seam = NO_BYTES;
    else seam = Buffer.concat([seam, piece.subarray(-3)]).subarray(-3);
    if (after !== before) bodyLeft = Number(after?.headers["content-length"] ?? 0);
  }

  function advance(): void {
    if (parsing) return;
    parsing = true;
    try {
      while (unparsed && mayParse()) {
        const bytes: Buffer = unparsed;
        const length = pieceLength(bytes);
        const isCut = length < bytes.length;
        unparsed = isCut ? bytes.subarray(length) : undefined;
        parsePiece(isCut ? bytes.subarray(0, length) : bytes, length <= bytes.length);
      }
    } finally {
      parsing = false;
    }
    if (stopped) unparsed = undefined;
    if (unparsed) socket.pause();
    else if (socket.isPaused() && !isHeldByNode()) socket.resume();
  }

  socket.on("data", (bytes: Buffer) => {
    if (stopped) return;
    unparsed = unparsed ? Buffer.concat([unparsed, bytes]) : bytes;
    advance();
  });
  socket.on("resume", advance); // Node's server goes on when its answers have left
  return {
    advance,
    stop() {
      stopped = true;
      advance();
    },
  };
}
