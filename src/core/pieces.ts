// Bytes that arrive in pieces, and are kept until all are there.

/** In bytes. A larger piece is kept as it is. */
const SMALL = 16 * 1024;

/**
 * Adds a piece to others. Small ones are joined, each with those before it that are no larger: a
 * piece of one byte that is kept by itself takes hundreds.
 */
export function addPiece(pieces: Uint8Array[], piece: Uint8Array): void {
  let joined = piece;
  while (joined.length < SMALL && (pieces.at(-1)?.length ?? Infinity) <= joined.length)
    joined = Buffer.concat([pieces.pop()!, joined]);
  pieces.push(joined);
}
