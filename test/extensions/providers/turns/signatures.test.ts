// The store of signed reasoning: what it forgets, and when.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  createSignatureStore,
  modelStore,
  scopedStore,
  shareSignatures,
  type SignatureStore,
} from "../../../../src/extensions/providers/turns/index.ts";

describe("the signature store", () => {
  const text = "x".repeat(1_000);
  const kept = (signatures: SignatureStore, ids: readonly string[]) =>
    ids.filter((id) => signatures.get(id) === text);

  it("forgets the least recently used entries first", () => {
    // Room for three entries with their overhead.
    const signatures = createSignatureStore(4_000);
    for (const id of ["a", "b", "c"]) signatures.set(id, text);
    assert.equal(signatures.get("a"), text);
    signatures.set("d", text);
    assert.deepEqual(kept(signatures, ["a", "b", "c", "d"]), ["a", "c", "d"]);
    signatures.set("a", text); // again, replacing the old entry
    signatures.set("e", text);
    assert.deepEqual(kept(signatures, ["a", "c", "d", "e"]), ["a", "d", "e"]);
    for (let at = 0; at < 100; at += 1) signatures.set("a", text);
    assert.deepEqual(
      kept(signatures, ["a", "d", "e"]),
      ["a", "d", "e"],
      "setting an id again uses no more room",
    );
  });

  it("does not store an entry larger than its capacity, and loses no room by it", () => {
    const signatures = createSignatureStore(4_000);
    const huge = "id".repeat(2_000);
    signatures.set(huge, "");
    assert.equal(signatures.get(huge), undefined);
    for (const id of ["a", "b", "c", "d"]) signatures.set(id, text);
    assert.deepEqual(kept(signatures, ["a", "b", "c", "d"]), ["b", "c", "d"]);
  });

  it("has none for an id that several calls have", () => {
    const store = createSignatureStore();
    store.set("call_0", "of Alice");
    store.set("call_0", "of Alice");
    assert.equal(store.get("call_0"), "of Alice");
    store.set("call_0", "of Bob");
    assert.equal(store.get("call_0"), undefined);
    store.set("call_0", "of Bob");
    assert.equal(store.get("call_0"), undefined);
  });
});

it("a part of a store has nothing of another format, provider, account or model", () => {
  const scope = { baseUrl: "https://far.example", account: "acme" };
  const part = (format = "gemini", other = {}, model = "m") =>
    modelStore(scopedStore(format, { ...scope, ...other }), model);
  part().set("call_0", "signed");
  assert.equal(part().get("call_0"), "signed");
  const others = [
    part("openai"),
    part("gemini", { baseUrl: "https://near.example" }),
    part("gemini", { account: "other" }),
    part("gemini", {}, "n"),
  ];
  for (const other of others) assert.equal(other.get("call_0"), undefined);
});

it("a part of a store reports what it keeps, but not what it received from others", (t) => {
  const told: string[] = [];
  const keep = shareSignatures((_id, text) => told.push(text));
  t.after(() => shareSignatures(() => undefined));
  const part = scopedStore("told", { baseUrl: "", account: "" });
  keep('["told","",""]call_0', "of another");
  assert.equal(part.get("call_0"), "of another");
  part.set("call_1", "own");
  assert.deepEqual(told, ["own"]);
});
