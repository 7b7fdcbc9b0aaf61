// The body of a provider's answer as an iterator, for tests that take it piece by piece.

import type { UpstreamBody } from "../../src/core/upstream/transport.ts";

/** Nothing is passed on before the next piece is asked for. Returning abandons the body. */
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
