// Collects bytes that arrive in pieces until all of them have arrived.

/** Pieces of at least this many bytes are kept as they are. */
const LARGE_BYTES = 16 * 1024;

/**
 * Appends a piece. A small one is first joined with the pieces before it that are no larger,
 * because a separate one-byte piece takes hundreds of bytes of memory.
 */
export function addPiece(pieces: Uint8Array[], piece: Uint8Array): void {
  let joined = piece;
  while (joined.length < LARGE_BYTES && (pieces.at(-1)?.length ?? Infinity) <= joined.length)
    joined = Buffer.concat([pieces.pop()!, joined]);
  pieces.push(joined);
}
