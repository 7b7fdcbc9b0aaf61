// The id of a request: the client's own if it is usable, also where the request cannot be parsed.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { requestId, requestIdFromBytes } from "../../../src/core/http/request-id.ts";

const GENERATED = /^req_[0-9a-f]{32}$/;

describe("requestId", () => {
  it("uses up to 512 printable characters as they are, and replaces anything else", () => {
    for (const value of ["x", "a b c", "~".repeat(512), '"quoted" <tag> \\ %0d%0a'])
      assert.equal(requestId(["Host", "x", "X-Request-Id", value]), value);
    for (const value of ["", "y".repeat(513), "caf\u00e9", "tab\there", "line\nbreak"])
      assert.match(requestId(["X-Request-Id", value]), GENERATED);
  });
});

it("the id is found in a head that is malformed, as far as one read goes", () => {
  const after = (bytes: number) => `G\r\nA: ${"b".repeat(bytes)}\r\nX-Request-Id: \t mine 7 \t\r\n`;
  assert.equal(requestIdFromBytes(Buffer.from(after(65_000))), "mine 7");
  assert.equal(requestIdFromBytes(Buffer.from("G\nX-Request-Id: mine\n\n")), "mine");
  const without = ["", "X-Request-Id: mine\r\n", "G\r\nX-Request-Id: mine", after(66_000)];
  for (const text of without) assert.match(requestIdFromBytes(Buffer.from(text)), GENERATED);
  assert.match(requestIdFromBytes(undefined), GENERATED);
});
