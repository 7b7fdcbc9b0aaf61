// The fuzzer (scripts/fuzz.ts) in small: a seed and a number reproduce a case, and the gateway
// survives some hundred cases in this process. The script itself runs a hundred thousand, and tests
// its judge.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeCase } from "../scripts/fuzz/cases.ts";
import { runCase } from "../scripts/fuzz/run-case.ts";
import { demo, startGateway } from "./support/gateway.ts";

describe("fuzz", () => {
  it("a case follows from its seed and its number", () => {
    for (let number = 0; number < 200; number += 1)
      assert.deepEqual(makeCase(7, number), makeCase(7, number));
    const bytes = new Set(
      Array.from({ length: 200 }, (_, number) =>
        Buffer.concat(makeCase(7, number).pieces).toString("latin1"),
      ),
    );
    assert.ok(bytes.size > 190, "the cases differ");
  });

  it("every answer is well-formed and none a 5xx", async (t) => {
    const gateway = await startGateway(
      t,
      demo({ server: { max_body_bytes: 65_536, receive_ms: 3_000 } }),
    );
    const ports = [gateway.url, gateway.gateway.adminAddress()!].map((url) =>
      Number(new URL(url).port),
    );
    const faults = await Promise.all(
      Array.from({ length: 300 }, async (_, number) => {
        const sent = makeCase(3, number);
        const { fault } = await runCase(ports[sent.admin ? 1 : 0]!, sent);
        return fault === undefined ? [] : [`case ${number} (${sent.description}): ${fault}`];
      }),
    );
    assert.deepEqual(faults.flat(), []);
    const bugs = gateway.diagnostics.filter(({ event }) => event === "internal_error");
    assert.deepEqual(bugs, []);
  });
});
