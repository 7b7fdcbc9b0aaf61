// Who may use the admin listener: by which name, from which page, with which password, and where it
// may listen.

import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { ValidationError } from "../../../../src/core/schema/checker.ts";
import { MAX_CONNECTIONS } from "../../../../src/extensions/operations/admin/index.ts";
import { adminOf, ask, assertRefused, basic } from "../../../support/admin.ts";
import { certificate } from "../../../support/certificate.ts";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { demo, startGateway, user } from "../../../support/gateway.ts";
import { within } from "../../../support/wait.ts";

describe("who may use the admin listener", () => {
  it("is asked for by an address, localhost or its own name: a name that is made to point here is another site's", async (t) => {
    const admin = adminOf(await startGateway(t, demo({ admin: { host: "localhost", port: 0 } })));
    const { port } = new URL(admin);
    const own = ["127.0.0.1", "localhost", "[::1]", "10.1.2.3"];
    for (const host of [...own.map((name) => `${name}:${port}`), "10.1.2.3", "localhost"])
      for (const path of ["/", "/status", "/metrics"])
        assert.equal((await ask(admin, path, { host })).status, 200, `${host} ${path}`);
    const foreign = ["localhost.evil.example", "127.0.0.1.evil.example", "1.2.3"];
    for (const host of [`evil.example:${port}`, ...foreign])
      for (const path of ["/", "/status", "/metrics", "/events", "/costs", "/trace", "/nothing"])
        assertRefused(await ask(admin, path, { host }), 403, "host_not_allowed");
  });

  it("has so many connections, and closes those that have been idle for longest", async (t) => {
    const { gateway } = await startGateway(t, demo());
    const { port } = new URL(gateway.adminAddress()!);
    const first = net.connect(Number(port), "127.0.0.1").resume();
    const others = await Promise.all(
      Array.from({ length: MAX_CONNECTIONS }, async () => {
        const socket = net.connect(Number(port), "127.0.0.1");
        await once(socket, "connect");
        return socket;
      }),
    );
    t.after(() => others.map((socket) => socket.destroy()));
    await within(once(first, "close"), "the first connection to be closed");
    assert.equal((await fetch(`${gateway.adminAddress()}/status`)).status, 200);
  });

  it("what changes something, and what another site's page asks for, must come from its own page", async (t) => {
    const gw = await startGateway(t, demo());
    const admin = adminOf(gw);
    const host = new URL(admin).host;
    const request = {
      method: "POST",
      body: JSON.stringify({ model: "demo-chat", messages: user("hi") }),
    };
    const key = { "x-api-key": "sk-demo" };
    assert.equal((await ask(admin, "/try", { ...key, origin: admin }, request)).status, 200);
    for (const origin of [
      undefined,
      "null",
      "http://evil.example",
      `http://evil.example/${host}`,
      admin.replace(/\d+$/, "1"),
    ]) {
      assertRefused(
        await ask(admin, "/try", { ...key, ...(origin !== undefined && { origin }) }, request),
        403,
        "origin_not_allowed",
      );
    }
    assert.equal(gw.access.length, 1, "the others never reached the public listener");
    const foreign = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
    assertRefused(await ask(admin, "/usage.csv?month=2026-01", foreign), 403, "origin_not_allowed");
    assert.equal(
      (await ask(admin, "/", { ...foreign, "sec-fetch-mode": "navigate" })).status,
      200,
      "a link to it is no harm",
    );
    assertRefused(
      await ask(admin, "/trace?request_id=x", { ...foreign, "sec-fetch-mode": "navigate" }),
      403,
      "origin_not_allowed",
    );
  });

  it("with a password it wants that, from everybody, and tells nobody what it is", async (t) => {
    const gw = await startGateway(
      t,
      demo({ admin: { port: 0, password: "$ADMIN_PASSWORD" } }),
      {},
      { ADMIN_PASSWORD: "correct:horse" },
    );
    const admin = adminOf(gw);
    const read = [
      "/",
      "/status",
      "/metrics",
      "/events",
      "/costs",
      "/usage",
      "/usage.csv",
      "/trace",
    ];
    for (const path of [...read, "/nothing"]) {
      const answer = await ask(admin, path);
      assertRefused(answer, 401, "invalid_password");
      assert.match(answer.headers["www-authenticate"]!, /^Basic realm=/);
    }
    for (const [headers, status] of [
      [basic("correct:horse"), 200],
      [basic("correct"), 401],
      [basic(""), 401],
      [{ authorization: "Bearer correct:horse" }, 401],
    ] as const) {
      assert.equal((await ask(admin, "/status", headers)).status, status);
    }
    assertRefused(
      await ask(admin, "/status", { ...basic("correct:horse"), host: "gateway.internal" }),
      403,
      "host_not_allowed",
    );
    assert.equal((await fetch(`${gw.url}/healthz`)).status, 200, "it is the admin's only");
    const told = JSON.stringify([
      gw.access,
      gw.diagnostics,
      (await ask(admin, "/status", basic("correct:horse"))).text,
    ]);
    assert.doesNotMatch(told, /correct/);
  });

  it("after ten wrong passwords an address has to wait, even with the right one", async (t) => {
    const admin = adminOf(await startGateway(t, demo({ admin: { port: 0, password: "right" } })));
    for (let n = 0; n < 5; n += 1)
      assertRefused(await ask(admin, "/status"), 401, "invalid_password"); // a browser's first question has none
    for (let n = 0; n < 10; n += 1)
      assertRefused(await ask(admin, "/status", basic(`wrong ${n}`)), 401, "invalid_password");
    for (const headers of [basic("right"), basic("wrong"), {}]) {
      const answer = await ask(admin, "/status", headers);
      assertRefused(answer, 429, "rate_limit_exceeded");
      assert.equal(answer.headers["retry-after"], "60");
    }
  });

  it("an address that others reach wants a password and a certificate, and has them", async (t) => {
    const tls = certificate();
    const faultsOf = (admin: object) => {
      try {
        checkConfig(demo({ admin }), {});
        return [];
      } catch (error) {
        return (error as ValidationError).issues.map(
          ({ path, message }) => `${path.join(".")}: ${message}`,
        );
      }
    };
    const fault = [
      "admin.host: must be a loopback address, unless there are admin.password and admin.tls; admin.plain: true allows the password without TLS",
    ];
    for (const admin of [
      { host: "0.0.0.0" },
      { host: "0.0.0.0", password: "secret" },
      { host: "::", tls },
      { host: "gateway.internal" },
    ])
      assert.deepEqual(faultsOf(admin), fault);
    assert.deepEqual(faultsOf({ host: "0.0.0.0", password: "secret", tls }), []);
    assert.match(
      faultsOf({ password: "$NOT_SET" }).join(),
      /admin\.password: the environment variable NOT_SET is not set/,
    );
    const admin = adminOf(
      await startGateway(t, demo({ admin: { host: "0.0.0.0", port: 0, password: "secret", tls } })),
    );
    assert.match(admin, /^https:/);
    const local = admin.replace("0.0.0.0", "127.0.0.1");
    assert.deepEqual(
      [(await ask(local, "/status")).status, (await ask(local, "/status", basic("secret"))).status],
      [401, 200],
    );
    assert.equal(
      (await ask(local, "/status", { ...basic("secret"), host: "gateway.internal" })).status,
      200,
      "by whatever name it is reached",
    );
    await assert.rejects(
      startGateway(t, demo({ admin: { tls: { ...tls, cert_file: join(folder(), "none.pem") } } })),
      /admin\.tls\.cert_file: .*none.pem cannot be read: ENOENT/,
    );
  });
});
