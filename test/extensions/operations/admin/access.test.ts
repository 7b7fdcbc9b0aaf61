// Who may use the admin listener: by which name, from which page, with which password, and where it
// may listen.

import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { configMoments } from "../../../../src/config/extension.ts";
import { pathText } from "../../../../src/core/schema/checker.ts";
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
  it("is asked for by an address, localhost or its own name: a name that is made to point here is another site's", async (t) => {
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

  it("has so many connections, and closes those that have been idle for longest", async (t) => {
    const admin = await startAdmin(t);
    const port = Number(new URL(admin).port);
    const first = net.connect(port, "127.0.0.1").resume();
    const others = await Promise.all(
      Array.from({ length: MAX_CONNECTIONS }, async () => {
        const socket = net.connect(port, "127.0.0.1");
        await once(socket, "connect");
        return socket;
      }),
    );
    t.after(() => others.map((socket) => socket.destroy()));
    await within(once(first, "close"), "the first connection to be closed");
    assert.equal((await ask(admin, "/status")).status, 200);
  });

  it("what changes something, and what another site's page asks for, must come from its own page", async (t) => {
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
    for (const [path, method] of [
      ["/keys", "POST"],
      ["/keys/key_none", "DELETE"],
    ] as const) {
      const answer = await ask(admin, path, { origin: evil }, { method, body });
      assertRefused(answer, 403, "origin_not_allowed");
    }
    assert.equal(gw.access.length, 1, "the others never reached the public listener");
    for (const [path, mode, isAllowed] of [
      ["/usage.csv?month=2026-01", "no-cors", false],
      ["/trace?request_id=x", "navigate", false],
      ["/", "navigate", true], // a link to it is no harm
    ] as const) {
      const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": mode };
      const answer = await ask(admin, path, headers);
      if (isAllowed) assert.equal(answer.status, 200);
      else assertRefused(answer, 403, "origin_not_allowed");
    }
  });

  it("with a password it wants that, from everybody, and tells nobody what it is", async (t) => {
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
    assert.equal((await fetch(`${gw.url}/healthz`)).status, 200, "it is the admin's only");
    const { text } = await ask(admin, "/status", right);
    assert.doesNotMatch(JSON.stringify([gw.access, gw.diagnostics, text]), /correct/);
  });
});

describe("an address that others reach", () => {
  const tls = certificate();
  const BEYOND = { host: "0.0.0.0", port: 0 };
  const PLAIN = { ...BEYOND, password: "letmein", plain: true };

  it("wants a password and a certificate, or the password and admin.plain: true", () => {
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

  it("has the password and the certificate, by whatever name it is reached", async (t) => {
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
    await assert.rejects(
      startAdmin(t, { tls: { ...tls, cert_file } }),
      /admin\.tls\.cert_file: .*none.pem cannot be read: ENOENT/,
    );
  });

  it("with admin.plain still has the password, and is told in the log and by `check`; on loopback nothing is", async (t) => {
    for (const [settings, expected] of [
      [PLAIN, ["admin_plain"]],
      [{ port: 0, plain: true }, []],
    ] as const) {
      const gw = await startGateway(t, demo({ admin: settings }));
      const local = adminOf(gw).replace("0.0.0.0", "127.0.0.1");
      const { status } = await ask(local, "/status", basic("letmein"));
      assert.equal(status, 200);
      const told = gw.diagnostics.filter(({ event }) => event === "admin_plain");
      const events = told.map(({ event }) => event);
      assert.deepEqual(events, expected);
      const config = checkConfig(demo({ admin: settings }));
      const warnings = installed
        .listeners(configMoments.warnings)
        .flatMap(({ call }) => call(config))
        .filter(({ path }) => pathText(path) === "admin.plain");
      assert.equal(warnings.length, expected.length);
      if (expected.length === 0) continue;
      assert.equal(told[0]!["level"], "warn");
      const detail = /admin\.plain allows admin\.password without TLS/;
      assert.match(String(told[0]!["detail"]), detail);
      assertRefused(await ask(local, "/status"), 401, "invalid_password");
    }
  });
});
