// The configurations of scripts/examples and scripts/deploy: `check` accepts each of them
// unchanged, in a folder with the files and optional packages that it names, and with its secrets
// in the environment or in files. test/clients checks the schemas of the other deploy files.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { certificate } from "./support/certificate.ts";
import { ended } from "./support/command.ts";
import { folder } from "./support/folder.ts";
import { secretOf } from "./support/readme.ts";

/**
 * Stand-ins for the optional packages. `check` only needs them to be installed, and a pool that has
 * not connected yet.
 */
const PACKAGES: Readonly<Record<string, string>> = {
  redis: "module.exports = {};",
  pg: "module.exports = { Pool: class { on() {} async end() {} } };",
};

/** The names of secrets that the pattern's group captures. */
const namesIn = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, name]) => name!);

/** A folder with this configuration and its secrets in files, as a gateway is started in it. */
function prepared(text: string, secrets: string): string {
  const cwd = folder();
  const { cert_file, key_file } = certificate();
  copyFileSync(cert_file, join(cwd, "cert.pem"));
  copyFileSync(key_file, join(cwd, "key.pem"));
  mkdirSync(join(cwd, "secrets"));
  for (const name of namesIn(text, new RegExp(`"\\$file:${secrets}/([^"]+)"`, "g")))
    writeFileSync(join(cwd, "secrets", name), secretOf(name));
  for (const [name, source] of Object.entries(PACKAGES)) {
    mkdirSync(join(cwd, "node_modules", name), { recursive: true });
    writeFileSync(join(cwd, "node_modules", name, "index.js"), source);
  }
  const config = JSON.parse(text.replaceAll(secrets, join(cwd, "secrets"))) as object;
  writeFileSync(join(cwd, "gateway.json"), JSON.stringify({ ...config, data_dir: "data" }));
  return cwd;
}

const EXAMPLES = readdirSync("scripts/examples").filter((name) => name.endsWith(".json"));
const COMPOSE = "scripts/deploy/compose";
const KUBERNETES = "scripts/deploy/kubernetes";

describe("configurations beside the program", () => {
  it("exist", () => assert.ok(EXAMPLES.length >= 4, EXAMPLES.join()));

  for (const [file, secrets, warnings] of [
    ...EXAMPLES.map((name) => [join("scripts/examples", name), "/run/secrets", /^$/] as const),
    [`${COMPOSE}/gateway/gateway.json`, "/run/secrets", /^[^\n]*warning: admin.plain [^\n]+\n$/],
    [`${KUBERNETES}/gateway.json`, "/run/secrets/chat-gateway", /^$/],
  ] as const)
    it(`are valid: check accepts ${file}`, async (t) => {
      const text = readFileSync(file, "utf8");
      const names = namesIn(text, /"\$([A-Z_]+)"/g);
      const env = Object.fromEntries(names.map((name) => [name, secretOf(name)]));
      const here = { cwd: prepared(text, secrets), env };
      const { code, stdout, stderr } = await ended(t, ["check", "--config", "gateway.json"], here);
      assert.match(stderr, warnings);
      assert.equal(code, 0);
      assert.match(stdout, /is valid/);
    });

  for (const [place, file, words, made] of [
    [COMPOSE, "gateway/gateway.json", "compose.yaml", "> secrets/gateway/"],
    [KUBERNETES, "gateway.json", "kustomization.yaml", "--from-literal="],
  ] as const)
    it(`say how to create each secret: ${place}/${words}`, () => {
      const config = readFileSync(join(place, file), "utf8");
      const names = namesIn(config, /"\$file:\/run\/secrets\/(?:chat-gateway\/)?([^"]+)"/g);
      assert.ok(names.length >= 2);
      const text = readFileSync(join(place, words), "utf8");
      for (const name of names) assert.ok(text.includes(`${made}${name}`), name);
    });

  it("are not ignored by the patterns that keep secret files out of the repository", () => {
    assert.match(readFileSync("scripts/deploy/.gitignore", "utf8"), /^secrets\/$/m);
    assert.match(readFileSync(".gitignore", "utf8"), /^!scripts\/deploy\/\*\*\/gateway\.json$/m);
  });
});
