// Sealed texts: only the installation that sealed one can open it, and nobody can change it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSealer } from "../../../../src/extensions/scale/data-files/index.ts";

const sealWith = (digit: string, purpose = "thoughts") =>
  createSealer(purpose, () => Buffer.from(digit.repeat(64), "hex"));

describe("sealed texts", () => {
  it("are opened by every process with the same secret, and differ each time", () => {
    for (const text of ["", "First the city.", "Grüße 👋 \u0000".repeat(1_000)]) {
      const sealed = sealWith("a").seal(text);
      assert.equal(sealWith("a").open(sealed), text);
      assert.notEqual(sealWith("a").seal(text), sealed);
      assert.ok(text === "" || !sealed.includes(text));
    }
  });

  it("are not opened with another secret, for another purpose, or if any character was changed", () => {
    const sealed = sealWith("a").seal("thought");
    assert.equal(sealWith("b").open(sealed), undefined);
    assert.equal(sealWith("a", "others").open(sealed), undefined);
    const { open } = sealWith("a");
    for (let at = 0; at < sealed.length; at += 1) {
      const other = sealed[at] === "A" ? "B" : "A";
      assert.equal(open(sealed.slice(0, at) + other + sealed.slice(at + 1)), undefined, `at ${at}`);
    }
    for (const text of ["", "sealed1.", "sealed1.AAAA", "gAAAAABo", sealed.slice(0, -4)])
      assert.equal(open(text), undefined);
    for (const more of ["!!!", "\n", " ", "=", "==", "A", "."]) {
      assert.equal(open(sealed + more), undefined, `with ${JSON.stringify(more)} after it`);
      assert.equal(open(sealed.replace(".", `.${more}`)), undefined);
    }
    const long = sealWith("a").seal("thought".repeat(1_000));
    assert.equal(open(long.replaceAll("-", "+").replaceAll("_", "/")), undefined);
  });

  it("read the secret once, when the first of them is sealed", (t) => {
    const secret = t.mock.fn(() => Buffer.alloc(32));
    const { seal, open } = createSealer("thoughts", secret);
    assert.equal(secret.mock.callCount(), 0);
    assert.equal(open(seal("thought")), "thought");
    assert.equal(secret.mock.callCount(), 1);
  });
});
