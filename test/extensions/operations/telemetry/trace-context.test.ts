// The headers of W3C Trace Context: what is taken, what is ignored, and what is handed on.

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

describe("a traceparent", () => {
  it("that is valid is taken as it is", () => {
    assert.deepEqual(readContext({ traceparent: VALID }), {
      traceId: TRACE,
      parentId: PARENT,
      flags: 1,
      state: "",
    });
  });

  for (const [situation, traceparent] of [
    ["is absent", undefined],
    ["is empty", ""],
    ["has upper-case digits", VALID.toUpperCase()],
    ["has the version ff", VALID.replace(/^00/, "ff")],
    ["has a version that is no hexadecimal number", VALID.replace(/^00/, "0g")],
    ["has a trace id of zeros", `00-${"0".repeat(32)}-${PARENT}-01`],
    ["has a parent of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
    ["has a trace id that is too short", `00-${TRACE.slice(1)}-${PARENT}-01`],
    ["has a parent that is too long", `00-${TRACE}-${PARENT}0-01`],
    ["has no flags", `00-${TRACE}-${PARENT}`],
    ["has flags of one digit", `00-${TRACE}-${PARENT}-1`],
    ["has more fields than version 00 has", `${VALID}-more`],
    ["has a dash at its end in version 00", `${VALID}-`],
    ["has something after the flags without a dash", `cc-${TRACE}-${PARENT}-01more`],
    ["has blanks around it", ` ${VALID}`],
    ["stands twice", `${VALID}, ${VALID}`],
  ] as const)
    it(`that ${situation} is ignored, and tracestate with it`, () => {
      assert.equal(readContext({ traceparent, tracestate: "a=1" }), undefined);
    });

  it("of a later version is read as far as it is known", () => {
    for (const end of ["", "-", "-what-the-future-will-be-like"])
      assert.equal(readContext({ traceparent: `cc-${TRACE}-${PARENT}-01${end}` })?.traceId, TRACE);
  });

  it("is recorded by the first bit of its flags alone", () => {
    for (const [flags, expected] of [
      ["00", false],
      ["01", true],
      ["02", false],
      ["03", true],
      ["fe", false],
      ["ff", true],
    ] as const) {
      const context = readContext({ traceparent: `00-${TRACE}-${PARENT}-${flags}` });
      assert.equal(isSampled(context!), expected, flags);
    }
  });
});

describe("a tracestate", () => {
  const stateOf = (tracestate: string) => readContext({ traceparent: VALID, tracestate })?.state;

  it("is handed on in its order, without blanks and empty members", () => {
    assert.equal(
      stateOf("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
      "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
    );
    assert.equal(stateOf("a=1 ,\t b=2,,c=x y"), "a=1,b=2,c=x y");
    assert.equal(stateOf("fw529a3039@dt=FfAAA, 1a-_*/@b=!"), "fw529a3039@dt=FfAAA,1a-_*/@b=!");
  });

  it("may have 32 members, keys and values of 256 characters", () => {
    const members = Array.from({ length: 32 }, (_, at) => `k${at}=v`).join(",");
    assert.equal(stateOf(members), members);
    assert.equal(stateOf(`${members},k32=v`), "");
    const long = `${"k".repeat(256)}=${"v".repeat(256)}`;
    assert.equal(stateOf(long), long);
    assert.equal(stateOf(`${"k".repeat(257)}=v`), "");
    assert.equal(stateOf(`k=${"v".repeat(257)}`), "");
  });

  for (const [situation, tracestate] of [
    ["a key twice", "a=1,a=2"],
    ["no equals sign", "a"],
    ["no key", "=1"],
    ["no value", "a="],
    ["two equals signs", "a=1=2"],
    ["an upper-case key", "A=1"],
    ["a key that begins with a digit", "1a=1"],
    ["a system that begins with a digit", "a@1=1"],
    ["a character beyond ASCII", "a=é"],
    ["a control character", "a=\u0001"],
  ] as const)
    it(`with ${situation} is dropped, and traceparent stays`, () => {
      assert.equal(stateOf(tracestate), "");
    });

  it("of megabytes of one member is read in no time", () => {
    const effort = startEffort();
    for (const piece of ["a", "a=", " ", "a@", ","]) stateOf(piece.repeat(1_000_000));
    assert.ok(effort() < 500);
  });
});

describe("the headers for a provider", () => {
  it("keep trace, flags and state, and have the attempt as parent", () => {
    const context = readContext({ traceparent: `cc-${TRACE}-${PARENT}-ff-x`, tracestate: "a=1" })!;
    assert.deepEqual(contextHeaders(context, "1".repeat(16)), {
      traceparent: `00-${TRACE}-${"1".repeat(16)}-03`,
      tracestate: "a=1",
    });
  });

  it("of a trace that begins here say that it is recorded, and have no state", () => {
    const traceparent = `00-${TRACE}-${PARENT}-01`;
    assert.deepEqual(contextHeaders(newContext(TRACE), PARENT), { traceparent });
  });
});
