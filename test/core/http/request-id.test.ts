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

  it("takes the first of several, whatever the case of its name", () => {
    assert.equal(requestId(["x-request-ID", "one", "X-REQUEST-ID", "two"]), "one");
  });

  it("does not take the value of another header for the name", () => {
    assert.match(requestId(["A", "x-request-id", "B", "value"]), GENERATED);
  });

  it("makes a new one each time where there is none", () => {
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

  const without = [
    "",
    "X-Request-Id: mine\r\n",
    "G\r\nX-Request-Id: mine",
    "G\r\nX-Request-Id:\r\n",
  ];
  for (const text of without)
    it(`makes a new one for ${JSON.stringify(text)}`, () => {
      assert.match(requestIdFromBytes(Buffer.from(text)), GENERATED);
    });

  it("makes a new one if Node has kept no bytes", () => {
    assert.match(requestIdFromBytes(undefined), GENERATED);
  });
});
