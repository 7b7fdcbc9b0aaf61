// Bytes that arrive in pieces and are kept.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addPiece } from "../../src/core/pieces.ts";

describe("addPiece", () => {
  it("keeps few pieces of many small ones, in their order", () => {
    const pieces: Uint8Array[] = [];
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 7) % 251));
    for (const byte of bytes) addPiece(pieces, Buffer.from([byte]));
    assert.ok(pieces.length < 30, `${pieces.length}`);
    assert.deepEqual(Buffer.concat(pieces), bytes);
  });

  it("keeps large pieces as they are", () => {
    const pieces: Uint8Array[] = [];
    const large = Buffer.alloc(64 * 1024, 1);
    for (const piece of [large, Buffer.from("a"), large]) addPiece(pieces, piece);
    assert.equal(pieces[0], large);
    assert.equal(pieces[2], large);
    assert.deepEqual(pieces[1], Buffer.from("a"));
  });
});
