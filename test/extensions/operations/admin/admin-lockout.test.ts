// Guessing the admin password: how many wrong ones a network has in a minute, and how many all have
// together.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createGuard, networkOf } from "../../../../src/extensions/operations/admin/access.ts";
import type { Exchange } from "../../../../src/core/http/exchange.ts";
import { ApiError } from "../../../../src/core/openai/errors.ts";

function bench() {
  let now = 0;
  const told: unknown[] = [];
  const options = { host: "0.0.0.0", password: "right" };
  const guard = createGuard(
    options,
    (event) => told.push(event),
    () => now,
  );
  return {
    told,
    pass: (ms: number) => (now += ms),
    /** The status that a request from this address gets. */
    ask(remoteAddress: string, password?: string): number {
      const authorization = `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`;
      const given = password !== undefined && { authorization };
      const headers = { host: "127.0.0.1", ...given };
      const req = { headers, method: "GET", url: "/", socket: { remoteAddress } };
      try {
        guard({ req } as unknown as Exchange);
        return 200;
      } catch (error) {
        assert.ok(error instanceof ApiError);
        if (error.status === 429) assert.equal(error.headers["Retry-After"], "60");
        return error.status;
      }
    },
  };
}

describe("the lockout of the admin password", () => {
  it("counts an IPv6 network as one: ten wrong passwords from ten addresses of a /64 lock all of it", () => {
    const { ask, pass, told } = bench();
    // A browser's first question has none.
    for (let n = 0; n < 10; n += 1) assert.equal(ask("2001:db8:0:7::1"), 401);
    for (let n = 0; n < 10; n += 1)
      assert.equal(ask(`2001:db8:0:7:${n.toString(16)}::${n}`, "wrong"), 401);
    assert.equal(ask("2001:db8:0:7:ffff::1", "wrong"), 429);
    const address = "2001:db8:0:7:9::9";
    assert.deepEqual(told, [{ event: "admin_locked_out", level: "error", address }], "once");
    assert.equal(ask("2001:db8:0:7::42", "right"), 429, "the right one too");
    assert.equal(ask("2001:db8:0:8::42", "right"), 200, "another network is not locked");
    pass(60_001);
    assert.equal(ask("2001:db8:0:7::42", "right"), 200);
  });

  it("counts an IPv4 address and the same one mapped into IPv6 as one", () => {
    const { ask } = bench();
    for (let n = 0; n < 5; n += 1) {
      assert.equal(ask("192.0.2.7", "wrong"), 401);
      assert.equal(ask("::ffff:192.0.2.7", "wrong"), 401);
    }
    assert.equal(ask("192.0.2.7", "wrong"), 429);
    assert.equal(ask("::ffff:192.0.2.8", "wrong"), 401, "its neighbour has its own ten");
  });

  it("counts all networks together: after 100 wrong ones nobody new is let in, for a minute", () => {
    const { ask, pass } = bench();
    assert.equal(ask("192.0.2.1", "right"), 200);
    for (let n = 0; n < 100; n += 1) assert.equal(ask(`2001:db8:1:${n}::1`, "wrong"), 401);
    assert.equal(ask("198.51.100.1", "right"), 429);
    assert.equal(ask("2001:db8:2:1::1", "wrong"), 429);
    assert.equal(ask("192.0.2.1", "right"), 200, "who knew the password before is let in");
    pass(60_001);
    assert.equal(ask("198.51.100.1", "right"), 200);
  });

  it("does not spare a network that once knew it from its own ten", () => {
    const { ask } = bench();
    assert.equal(ask("192.0.2.1", "right"), 200);
    for (let n = 0; n < 10; n += 1) assert.equal(ask("192.0.2.1", "wrong"), 401);
    assert.equal(ask("192.0.2.1", "right"), 429);
  });
});

describe("the network of an address", () => {
  for (const [address, network] of [
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001::7:1:2:3:4", "2001:0:0:7::/64"],
    ["::1", "0:0:0:0::/64"],
    ["1::", "1:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["", ""],
  ] as const)
    it(`${address || "none"}: ${network || "none"}`, () =>
      assert.equal(networkOf(address), network));
});
