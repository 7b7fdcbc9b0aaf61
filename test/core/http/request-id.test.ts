// The id of a request: the client's own if it is usable, also where the request cannot be parsed.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { requestId, requestIdFromBytes } from "../../../src/core/http/request-id.ts";

const GENERATED = /^req_[0-9a-f]{32}$/;

describe("requestId", () => {
  for (const value of ["x", "a b c", "~".repeat(512), '"quoted" <tag> \\ %0d%0a'])
    it(`uses ${JSON.stringify(value.slice(0, 20))}, of ${value.length} characters, as it is`, () => {
      assert.equal(requestId(["Host", "x", "X-Request-Id", value]), value);
    });

  for (const value of ["", "y".repeat(513), "caf\u00e9", "tab\there", "line\nbreak"])
    it(`replaces ${JSON.stringify(value.slice(0, 20))}, of ${value.length} characters`, () => {
      assert.match(requestId(["X-Request-Id", value]), GENERATED);
    });

  it("takes the first of several, whatever the case of its name, and no other header's value", () => {
    assert.equal(requestId(["x-request-ID", "one", "X-REQUEST-ID", "two"]), "one");
    assert.match(requestId(["A", "x-request-id", "B", "value"]), GENERATED);
    assert.notEqual(requestId([]), requestId([]));
  });
});

describe("requestIdFromBytes", () => {
  it("finds the id in a head that is malformed", () => {
    assert.equal(requestIdFromBytes(Buffer.from("G\r\nx-request-id:mine\r\n")), "mine");
    const blanks = Buffer.from("G\r\nX-Request-Id: \t mine 7 \t\r\n");
    assert.equal(requestIdFromBytes(blanks), "mine 7");
  });

  it("searches as much as one read brings, and no more", () => {
    const after = (bytes: number) =>
      requestIdFromBytes(Buffer.from(`G\r\nA: ${"b".repeat(bytes)}\r\nX-Request-Id: mine\r\n`));
    assert.equal(after(65_000), "mine");
    assert.match(after(66_000), GENERATED);
  });

  for (const text of [
    "",
    "X-Request-Id: mine\r\n",
    "G\r\nX-Request-Id: mine",
    "G\r\nX-Request-Id:\r\n",
    undefined, // Node has kept no bytes
  ])
    it(`makes a new one for ${JSON.stringify(text)}`, () => {
      const bytes = text === undefined ? undefined : Buffer.from(text);
      assert.match(requestIdFromBytes(bytes), GENERATED);
    });
});
