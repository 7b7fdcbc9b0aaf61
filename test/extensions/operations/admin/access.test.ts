// Access to the admin listener: the allowed host names, pages, passwords and addresses; and the
// limits on wrong passwords per minute, per network and in total.

import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { configHooks } from "../../../../src/config/extension.ts";
import type { Exchange } from "../../../../src/core/http/exchange.ts";
import { ApiError } from "../../../../src/core/openai/errors.ts";
import { pathText } from "../../../../src/core/schema/checker.ts";
import { createGuard, networkOf } from "../../../../src/extensions/operations/admin/access.ts";
import { MAX_CONNECTIONS } from "../../../../src/extensions/operations/admin/index.ts";
import { adminOf, ask, assertRefused, basic } from "../../../support/admin.ts";
import { certificate } from "../../../support/certificate.ts";
import { checkConfig, installed } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { demo, startGateway, user } from "../../../support/gateway.ts";
import { within } from "../../../support/wait.ts";
import { faultsOf } from "../faults-of.ts";

const startAdmin = async (t: TestContext, admin: object = {}) =>
  adminOf(await startGateway(t, demo({ admin: { port: 0, ...admin } })));

describe("who may use the admin listener", () => {
  it("must use an IP address, localhost or the listener's own name, so that no other name can be pointed here", async (t) => {
    const admin = await startAdmin(t, { host: "localhost" });
    const { port } = new URL(admin);
    const own = ["127.0.0.1", "localhost", "[::1]", "10.1.2.3"];
    for (const host of [...own.map((name) => `${name}:${port}`), "10.1.2.3", "localhost"])
      assert.equal((await ask(admin, "/status", { host })).status, 200, host);
    const foreign = ["localhost.evil.example", "127.0.0.1.evil.example", "1.2.3"];
    for (const host of [`evil.example:${port}`, ...foreign])
      for (const path of ["/", "/status", "/metrics", "/events", "/costs", "/trace", "/nothing"])
        assertRefused(await ask(admin, path, { host }), 403, "host_not_allowed");
  });

  it("share a limit on connections; beyond it the one idle longest is closed", async (t) => {
    const admin = await startAdmin(t);
    const port = Number(new URL(admin).port);
    const first = net.connect(port, "127.0.0.1").resume();
    const others = Array.from({ length: MAX_CONNECTIONS }, () => net.connect(port, "127.0.0.1"));
    t.after(() => others.map((socket) => socket.destroy()));
    await Promise.all(others.map((socket) => once(socket, "connect")));
    await within(once(first, "close"), "the first connection to be closed");
    assert.equal((await ask(admin, "/status")).status, 200);
  });

  it("must come from its own page to change anything, and never from another site's page", async (t) => {
    const gw = await startGateway(t, demo());
    const admin = adminOf(gw);
    const body = JSON.stringify({ model: "demo-chat", messages: user("hi") });
    const post = (origin: object) =>
      ask(admin, "/try", { "x-api-key": "sk-demo", ...origin }, { method: "POST", body });
    assert.equal((await post({ origin: admin })).status, 200);
    const evil = `http://evil.example/${new URL(admin).host}`;
    assertRefused(await post({}), 403, "origin_not_allowed");
    for (const origin of ["null", "http://evil.example", evil, admin.replace(/\d+$/, "1")])
      assertRefused(await post({ origin }), 403, "origin_not_allowed");
    for (const [method, path] of Object.entries({ POST: "/keys", DELETE: "/keys/key_none" })) {
      const answer = await ask(admin, path, { origin: evil }, { method, body });
      assertRefused(answer, 403, "origin_not_allowed");
    }
    assert.equal(gw.access.length, 1, "the others never reached the public listener");
    const crossSite = (path: string, mode: string) =>
      ask(admin, path, { "sec-fetch-site": "cross-site", "sec-fetch-mode": mode });
    const embedded = await crossSite("/usage.csv?month=2026-01", "no-cors");
    for (const answer of [embedded, await crossSite("/trace?request_id=x", "navigate")])
      assertRefused(answer, 403, "origin_not_allowed");
    assert.equal((await crossSite("/", "navigate")).status, 200, "links are allowed");
  });

  it("need the password if there is one, which no response reveals", async (t) => {
    const config = demo({ admin: { port: 0, password: "$ADMIN_PASSWORD" } });
    const gw = await startGateway(t, config, {}, { ADMIN_PASSWORD: "correct:horse" });
    const admin = adminOf(gw);
    const read = ["/", "/status", "/metrics", "/events", "/costs", "/usage", "/usage.csv"];
    for (const path of [...read, "/trace", "/nothing"]) {
      const answer = await ask(admin, path);
      assertRefused(answer, 401, "invalid_password");
      assert.match(answer.headers["www-authenticate"]!, /^Basic realm=/);
    }
    const right = basic("correct:horse");
    for (const [headers, status] of [
      [right, 200],
      [basic("correct"), 401],
      [basic(""), 401],
      [{ authorization: "Bearer correct:horse" }, 401],
      [{ ...right, host: "gateway.internal" }, 403],
    ] as const)
      assert.equal((await ask(admin, "/status", headers)).status, status);
    assert.equal((await fetch(`${gw.url}/healthz`)).status, 200, "no password needed");
    const { text } = await ask(admin, "/status", right);
    assert.doesNotMatch(JSON.stringify([gw.access, gw.diagnostics, text]), /correct/);
  });
});

describe("an address that other machines reach", () => {
  const tls = certificate();
  const BEYOND = { host: "0.0.0.0", port: 0 };
  const PLAIN = { ...BEYOND, password: "letmein", plain: true };

  it("requires a password and a certificate, or a password and admin.plain: true", () => {
    const fault =
      "admin.host: must be a loopback address, unless there are admin.password and admin.tls; admin.plain: true allows the password without TLS";
    for (const admin of [
      BEYOND,
      { ...BEYOND, password: "secret" },
      { ...BEYOND, password: "secret", plain: false },
      { ...BEYOND, plain: true },
      { host: "::", tls },
      { host: "gateway.internal" },
    ])
      assert.deepEqual(faultsOf(demo({ admin })), [fault]);
    for (const admin of [{ ...BEYOND, password: "secret", tls }, PLAIN])
      assert.deepEqual(faultsOf(demo({ admin })), []);
    const unset = /admin\.password: the environment variable NOT_SET is not set/;
    assert.match(faultsOf(demo({ admin: { password: "$NOT_SET" } })).join(), unset);
  });

  it("serves with the password and the certificate, whatever name it is reached by", async (t) => {
    const admin = await startAdmin(t, { ...BEYOND, password: "secret", tls });
    assert.match(admin, /^https:/);
    const local = admin.replace("0.0.0.0", "127.0.0.1");
    for (const [headers, status] of [
      [{}, 401],
      [basic("secret"), 200],
      [{ ...basic("secret"), host: "gateway.internal" }, 200],
    ] as const)
      assert.equal((await ask(local, "/status", headers)).status, status);
    const cert_file = join(folder(), "none.pem");
    const starting = startAdmin(t, { tls: { ...tls, cert_file } });
    await assert.rejects(starting, /admin\.tls\.cert_file: .*none.pem cannot be read: ENOENT/);
  });

  it("with admin.plain still needs the password, and the log and `check` warn; loopback gets no warning", async (t) => {
    for (const [settings, expected] of [
      [PLAIN, 1],
      [{ port: 0, plain: true }, 0],
    ] as const) {
      const gw = await startGateway(t, demo({ admin: settings }));
      const local = adminOf(gw).replace("0.0.0.0", "127.0.0.1");
      const { status } = await ask(local, "/status", basic("letmein"));
      assert.equal(status, 200);
      const told = gw.diagnostics.filter(({ event }) => event === "admin_plain");
      assert.equal(told.length, expected);
      const config = checkConfig(demo({ admin: settings }));
      const warnings = installed
        .listeners(configHooks.warnings)
        .flatMap(({ call }) => call(config))
        .filter(({ path }) => pathText(path) === "admin.plain");
      assert.equal(warnings.length, expected);
      if (expected === 0) continue;
      const { level, detail } = told[0]!;
      assert.match(`${level}: ${detail}`, /^warn: admin\.plain allows admin\.password without TLS/);
      assertRefused(await ask(local, "/status"), 401, "invalid_password");
    }
  });
});

function bench() {
  let now = 0;
  const told: unknown[] = [];
  const options = { host: "0.0.0.0", password: "right" };
  const tell = (event: object) => told.push(event);
  const guard = createGuard(options, tell, () => now);
  return {
    told,
    pass: (ms: number) => (now += ms),
    ask(remoteAddress: string, password?: string): number {
      const headers = { host: "127.0.0.1", ...(password !== undefined && basic(password)) };
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
  it("counts an IPv6 network as one: ten wrong passwords from ten addresses of a /64 lock it out", () => {
    const { ask, pass, told } = bench();
    // A browser's first request has no password.
    for (let n = 0; n < 10; n += 1) assert.equal(ask("2001:db8:0:7::1"), 401);
    for (let n = 0; n < 10; n += 1)
      assert.equal(ask(`2001:db8:0:7:${n.toString(16)}::${n}`, "wrong"), 401);
    assert.equal(ask("2001:db8:0:7:ffff::1", "wrong"), 429);
    const address = "2001:db8:0:7:9::9";
    assert.deepEqual(told, [{ event: "admin_locked_out", level: "error", address }], "once");
    assert.equal(ask("2001:db8:0:7::42", "right"), 429, "right ones too");
    assert.equal(ask("2001:db8:0:8::42", "right"), 200, "another network is not locked");
    pass(60_001);
    assert.equal(ask("2001:db8:0:7::42", "right"), 200);
  });

  it("counts all networks together: after 100 wrong passwords no new network is let in for a minute", () => {
    const { ask, pass } = bench();
    assert.equal(ask("192.0.2.1", "right"), 200);
    for (let n = 0; n < 100; n += 1) assert.equal(ask(`2001:db8:1:${n}::1`, "wrong"), 401);
    assert.equal(ask("198.51.100.1", "right"), 429);
    assert.equal(ask("2001:db8:2:1::1", "wrong"), 429);
    assert.equal(ask("192.0.2.1", "right"), 200, "trusted networks are let in");
    pass(60_001);
    assert.equal(ask("198.51.100.1", "right"), 200);
  });

  it("also applies to a network that knew the password before, after ten wrong ones", () => {
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
