// system_fingerprint is a keyed hash: stable for a data_dir, different for every other, and of no
// use to somebody who guesses names.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { folder } from "../../support/folder.ts";
import { fingerprintKey } from "../../../src/extensions/apis/fingerprint/index.ts";
import { configFor, json, startGateway, user } from "../../support/gateway.ts";
import { speak, startProvider, type Provider } from "../../support/provider.ts";

/** The fingerprint of a reply of a gateway over this data_dir. */
async function fingerprintIn(t: TestContext, { url }: Provider, dir: string): Promise<string> {
  const gw = await startGateway(t, configFor(url, ["m"], { data_dir: dir }));
  const reply = await json(await gw.chat({ model: "m", messages: user("hi") }));
  await gw.gateway.close(0);
  return reply.system_fingerprint;
}

describe("system_fingerprint", () => {
  it("is the same after a restart, another one with another data_dir, and not to be guessed", async (t) => {
    const provider = await startProvider(t, { m: speak("Hi.") });
    const [one, other] = [folder(), folder()];
    const first = await fingerprintIn(t, provider, one);
    assert.match(first, /^fp_[0-9a-f]{12}$/);
    assert.equal(await fingerprintIn(t, provider, one), first);
    assert.notEqual(await fingerprintIn(t, provider, other), first);
    for (let version = 0; version < 10; version += 1) {
      const guess = createHash("sha256").update(JSON.stringify(["lab", "m", version]));
      assert.notEqual(`fp_${guess.digest("hex").slice(0, 12)}`, first);
    }
    const secret = join(one, "fingerprint-secret");
    assert.match(readFileSync(secret, "utf8"), /^[0-9a-f]{64}$/);
    assert.equal(statSync(secret).mode & 0o777, 0o600, "only the owner can read it");
    const files = readdirSync(one).filter((name) => name.startsWith("fingerprint"));
    assert.deepEqual(files, ["fingerprint-secret"]);
  });

  it("will change at the next start where the secret cannot be made, which is told", () => {
    const told: unknown[] = [];
    fingerprintKey(join(folder(), "missing"), ({ event }) => told.push(event));
    assert.deepEqual(told, ["fingerprint_secret_unavailable"]);
  });
});
