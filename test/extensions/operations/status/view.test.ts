// Each sentence of `status` and `top`, by what the gateway reports.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { linesOf } from "../../../../src/extensions/operations/status/view.ts";

const model = (name: string, breaker: object = {}) => {
  const healthy = { state: "closed", retry_ms: 0, last_fault: null, last_answer: null };
  return { model: name, provider: "lab", breaker: { ...healthy, ...breaker } };
};
const open = (name: string) => model(name, { state: "open", retry_ms: 6_001 });
const limits = { store: "redis", fault: null, accounts: [{ account: "x", rpm: null, used: 0 }] };
const base = { version: "1.2", workers: 2, in_flight: 0, config_loaded_at: "NOW", limits };
const status = { ...base, models: [model("a")], event_loop_delay: { "0.99": 0.0041 } };
const quiet = { total: { first_token: { p50: null } }, bins: [null], accounts: [], models: [] };
const refused = [..."abcdef"].map((account) => ({ account, code: "no", count: 1 }));
const fault = { time: "T", path: "keys[0]", message: "bad", count: 3 };

describe("a gateway's status in words", () => {
  for (const [over, line, of = {}] of [
    [{}, "healthy: 1 model can serve, 0 requests in flight"],
    [{ models: [model("a"), model("b")], in_flight: 1 }, /^healthy: 2 models .*, 1 request in /],
    [{ status: "draining" }, "not healthy: the gateway is stopping"],
    [{ spend: { fault: "F\u001b[2J\u202e" } }, /: the spend log .*, so .* are refused: F\[2J$/],
    [{ usage: { fault: "F" } }, "not healthy: the usage records cannot be written: F"],
    [{ limits: { ...limits, fault: "F" } }, "not healthy: the limits' store cannot be asked: F"],
    [{ models: [] }, "not healthy: no model is configured"],
    [{ models: [open("a")] }, "not healthy: no model can serve; a fails: next try in 7 s"],
    [{ models: [open("a"), model("b")] }, "not healthy: a fails: next try in 7 s"],
    [{ models: [model("a", { state: "probing" })] }, /^ {2}a +lab +is being tried again +0 +0 /],
    [{ models: [model("a", { last_answer: { message: "M" } })] }, / M$/],
    [{ config_fault: fault }, /^reload failed at T, .*: keys\[0\]: bad \(3 faults in all\)/],
    [{ config_fault: { time: "T", message: "bad", count: 1 } }, / stays in force: bad$/],
    [{ restart_needed: ["a.b", "c"] }, /^a restart is needed: a\.b, c changed, and are read at/],
    [
      { keys: { fault: "F" } },
      /^keys\.json cannot be read, and the previous keys stay in force: F$/,
    ],
    [{ config_file: "/f" }, /^version 1\.2; .* 2; event .* 4 ms; limits in redis; .* \/f of NOW$/],
    [{}, /^ {2}x +- +unlimited$/],
    [{}, "tokens in 0, out 0; no first token yet"],
    [{}, /^refused or failed: a 1 \(no\), .*, e 1 \(no\), 1 more$/, { refused }],
    [{}, /: no valid key 2 \(C\)$/, { refused: [{ account: null, code: "C", count: 2 }] }],
    [{}, /: others 3$/, { refused: [{ account: null, code: null, count: 3 }] }],
  ] as readonly (readonly [object, string | RegExp, object?])[])
    it(String(line), () => {
      const history = { ...quiet, refused: [], ...of };
      const lines = linesOf({ status: { ...status, ...over }, history } as never);
      const isIt = (text: string) => (typeof line === "string" ? text === line : line.test(text));
      assert.ok(lines.some(isIt), lines.join("\n"));
    });
});
