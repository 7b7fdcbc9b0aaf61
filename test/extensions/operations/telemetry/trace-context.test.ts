// The headers of W3C Trace Context: what is accepted, ignored and passed on.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  contextHeaders,
  isSampled,
  newContext,
  readContext,
} from "../../../../src/extensions/operations/telemetry/trace-context.ts";
import { startEffort } from "../../../support/effort.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const VALID = `00-${TRACE}-${PARENT}-01`;
const stateOf = (tracestate: string) => readContext({ traceparent: VALID, tracestate })?.state;

describe("a traceparent", () => {
  it("that is valid is used; one of a later version as far as it is known", () => {
    const context = { traceId: TRACE, parentId: PARENT, flags: 1, state: "" };
    assert.deepEqual(readContext({ traceparent: VALID }), context);
    for (const end of ["", "-", "-what-the-future-will-be-like"])
      assert.deepEqual(readContext({ traceparent: `cc-${TRACE}-${PARENT}-01${end}` }), context);
  });

  it("that is invalid is ignored together with tracestate", () => {
    for (const traceparent of [
      undefined,
      VALID.toUpperCase(),
      VALID.replace(/^00/, "ff"),
      VALID.replace(/^00/, "0g"),
      `00-${"0".repeat(32)}-${PARENT}-01`,
      `00-${TRACE}-${"0".repeat(16)}-01`,
      `00-${TRACE.slice(1)}-${PARENT}-01`,
      `00-${TRACE}-${PARENT}0-01`,
      `00-${TRACE}-${PARENT}`,
      `00-${TRACE}-${PARENT}-1`,
      `${VALID}-more`,
      `cc-${TRACE}-${PARENT}-01more`,
      ` ${VALID}`,
    ])
      assert.equal(readContext({ traceparent, tracestate: "a=1" }), undefined, traceparent);
  });

  it("is recorded according to the first bit of its flags", () => {
    const cases = { "00": false, "01": true, "02": false, "03": true, fe: false, ff: true };
    for (const [flags, expected] of Object.entries(cases)) {
      const context = readContext({ traceparent: `00-${TRACE}-${PARENT}-${flags}` });
      assert.equal(isSampled(context!), expected, flags);
    }
  });
});

describe("a tracestate", () => {
  const members = Array.from({ length: 32 }, (_, at) => `k${at}=v`).join(",");
  const long = `${"k".repeat(256)}=${"v".repeat(256)}`;

  it("is passed on in order, without blanks and empty members", () => {
    for (const [state, expected] of [
      ["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"],
      ["a=1 ,\t b=2,,c=x y", "a=1,b=2,c=x y"],
      ["fw529a3039@dt=FfAAA, 1a-_*/@b=!", "fw529a3039@dt=FfAAA,1a-_*/@b=!"],
      [members, members],
      [long, long],
    ] as const)
      assert.equal(stateOf(state), expected);
  });

  it("that is invalid is dropped, and traceparent stays", () => {
    const tooLong = [`${members},k32=v`, `${"k".repeat(257)}=v`, `k=${"v".repeat(257)}`];
    const wrong = ["a=1,a=2", "a", "=1", "a=", "a=1=2", "A=1", "a=é", "a=\u0001"];
    for (const state of [...tooLong, ...wrong]) assert.equal(stateOf(state), "", state);
  });

  it("of megabytes in one member is read in linear time", () => {
    const effort = startEffort();
    for (const piece of ["a", "a=", " ", "a@", ","]) stateOf(piece.repeat(1_000_000));
    assert.ok(effort() < 500);
  });
});

describe("the headers for a provider", () => {
  it("keep trace, flags and state, and have the attempt as parent", () => {
    const context = readContext({ traceparent: `cc-${TRACE}-${PARENT}-ff-x`, tracestate: "a=1" })!;
    const expected = { traceparent: `00-${TRACE}-${"1".repeat(16)}-03`, tracestate: "a=1" };
    assert.deepEqual(contextHeaders(context, "1".repeat(16)), expected);
  });

  it("of a trace that begins here say that it is recorded, and have no state", () => {
    assert.deepEqual(contextHeaders(newContext(TRACE), PARENT), { traceparent: VALID });
  });
});
