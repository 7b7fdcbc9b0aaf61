// A password without TLS beyond loopback: refused, unless the operator says that it is meant, and
// then told in the log.

import { configMoments } from "../../../../src/config/extension.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pathText, ValidationError } from "../../../../src/core/schema/checker.ts";
import { installed, checkConfig } from "../../../support/config.ts";
import { demo, startGateway } from "../../../support/gateway.ts";
import { waitFor } from "../../../support/wait.ts";

const BEYOND = { host: "0.0.0.0", port: 0 };

function refusedPaths(admin: object): string[] {
  try {
    checkConfig(demo({ admin }));
    return [];
  } catch (error) {
    assert.ok(error instanceof ValidationError);
    return error.issues.map(({ path }) => pathText(path));
  }
}

describe("an admin password without TLS beyond loopback", () => {
  it("is refused, also with admin.plain: false", () => {
    assert.deepEqual(refusedPaths({ ...BEYOND, password: "letmein" }), ["admin.host"]);
    assert.deepEqual(refusedPaths({ ...BEYOND, password: "letmein", plain: false }), [
      "admin.host",
    ]);
  });

  it("is allowed with admin.plain: true, which does not make the password optional", () => {
    assert.deepEqual(refusedPaths({ ...BEYOND, password: "letmein", plain: true }), []);
    assert.deepEqual(refusedPaths({ ...BEYOND, plain: true }), ["admin.host"]);
  });

  it("is still asked for, and told in the log at the start", async (t) => {
    const admin = { ...BEYOND, password: "letmein", plain: true };
    const { gateway, diagnostics } = await startGateway(t, demo({ admin }));
    const told = await waitFor(() => diagnostics[0], "the line in the log");
    assert.deepEqual([told["event"], told["level"]], ["admin_plain", "warn"]);
    assert.match(String(told["detail"]), /admin\.plain allows admin\.password without TLS/);
    const { port } = new URL(gateway.adminAddress()!);
    const status = async (headers: Record<string, string>) => {
      const response = await fetch(`http://127.0.0.1:${port}/status`, { headers });
      await response.arrayBuffer();
      return response.status;
    };
    const authorization = `Basic ${Buffer.from("admin:letmein").toString("base64")}`;
    assert.deepEqual([await status({}), await status({ authorization })], [401, 200]);
  });

  it("is a warning of `check`", () => {
    const warnings = (admin: object) => {
      const config = checkConfig(demo({ admin }));
      return installed
        .listeners(configMoments.warnings)
        .flatMap(({ call }) => call(config))
        .filter(({ path }) => pathText(path) === "admin.plain").length;
    };
    assert.equal(warnings({ ...BEYOND, password: "letmein", plain: true }), 1);
    assert.equal(warnings({ password: "letmein", plain: true }), 0);
  });
});

describe("admin.plain on loopback", () => {
  it("changes nothing, and nothing is told", async (t) => {
    const { diagnostics } = await startGateway(t, demo({ admin: { port: 0, plain: true } }));
    assert.deepEqual(
      diagnostics.filter(({ event }) => event === "admin_plain"),
      [],
    );
  });
});
