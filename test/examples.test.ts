// The example configurations of scripts/examples: `check` takes each of them as it stands, in a
// folder that has the files and the optional packages that it names, with its secrets in the
// environment.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";
import { certificate } from "./support/certificate.ts";
import { ended } from "./support/command.ts";
import { folder } from "./support/folder.ts";

const EXAMPLES = resolve("scripts/examples");
/** Addresses of stores stand for secrets too; any other secret may be any text. */
const STORES: Readonly<Record<string, string>> = {
  REDIS_URL: "redis://127.0.0.1:6379",
  POSTGRES_URL: "postgres://127.0.0.1/usage",
};
/**
 * What `check` needs of the optional packages: that they are installed, and a pool that has not
 * connected yet.
 */
const PACKAGES: Readonly<Record<string, string>> = {
  redis: "module.exports = {};",
  pg: "module.exports = { Pool: class { on() {} async end() {} } };",
};

/** A value for each `"$NAME"`. */
function secretsOf(text: string): Record<string, string> {
  const names = [...text.matchAll(/"\$([A-Z_]+)"/g)].map(([, name]) => name!);
  return Object.fromEntries(names.map((name) => [name, STORES[name] ?? `sk-for-${name}`]));
}

/** A folder as a gateway would be started in. */
function preparedFolder(): string {
  const cwd = folder();
  const { cert_file, key_file } = certificate();
  copyFileSync(cert_file, join(cwd, "cert.pem"));
  copyFileSync(key_file, join(cwd, "key.pem"));
  for (const [name, source] of Object.entries(PACKAGES)) {
    mkdirSync(join(cwd, "node_modules", name), { recursive: true });
    writeFileSync(join(cwd, "node_modules", name, "index.js"), source);
  }
  return cwd;
}

describe("example configurations", () => {
  const examples = readdirSync(EXAMPLES).filter((name) => name.endsWith(".json"));

  it("there are some", () => {
    assert.ok(examples.length >= 4, examples.join());
  });

  for (const example of examples) {
    it(`check takes ${example}, and warns of nothing`, async (t) => {
      const file = join(EXAMPLES, example);
      const env = secretsOf(readFileSync(file, "utf8"));
      const { code, stdout, stderr } = await ended(t, ["check", "--config", file], {
        cwd: preparedFolder(),
        env,
      });
      assert.equal(stderr, "");
      assert.equal(code, 0);
      assert.match(stdout, /is valid/);
    });
  }
});
