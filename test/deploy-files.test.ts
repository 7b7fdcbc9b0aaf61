// The configurations of scripts/deploy: `check` takes each of them as it stands, with the files
// of its secrets, and what is written beside it fits it. The schemas of the other files are checked
// in test/clients.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ended } from "./support/command.ts";
import { folder } from "./support/folder.ts";

const COMPOSE = "scripts/deploy/compose";
const KUBERNETES = "scripts/deploy/kubernetes";

/** What `check` needs of the optional packages. */
const PACKAGES: Readonly<Record<string, string>> = {
  redis: "module.exports = {};",
  pg: "module.exports = { Pool: class { on() {} async end() {} } };",
};

/** The names of the files of secrets that a configuration names, below their folder. */
const secretsIn = (text: string, secrets: string): string[] =>
  [...text.matchAll(/"\$file:([^"]+)"/g)].map(([, path]) => {
    assert.ok(path!.startsWith(`${secrets}/`), path);
    return path!.slice(secrets.length + 1);
  });

/** The configuration in a folder that has its secrets, data_dir and optional packages. */
function prepared(text: string, secrets: string) {
  const cwd = folder();
  mkdirSync(join(cwd, "secrets"));
  for (const name of secretsIn(text, secrets)) {
    const content = name === "postgres_url" ? "postgres://gateway:x@postgres/usage" : `for-${name}`;
    writeFileSync(join(cwd, "secrets", name), content);
  }
  for (const [name, source] of Object.entries(PACKAGES)) {
    mkdirSync(join(cwd, "node_modules", name), { recursive: true });
    writeFileSync(join(cwd, "node_modules", name, "index.js"), source);
  }
  const config = JSON.parse(text.replaceAll(secrets, join(cwd, "secrets"))) as object;
  writeFileSync(join(cwd, "gateway.json"), JSON.stringify({ ...config, data_dir: "data" }));
  return cwd;
}

describe("deploy files", () => {
  for (const [place, secrets, warnings] of [
    [COMPOSE, "/run/secrets", /^chat-gateway: warning: admin.plain [^\n]+\n$/],
    [KUBERNETES, "/run/secrets/chat-gateway", /^$/],
  ] as const) {
    const file = place === COMPOSE ? join(place, "gateway/gateway.json") : `${place}/gateway.json`;
    const text = readFileSync(file, "utf8");

    it(`check takes ${file}`, async (t) => {
      const cwd = prepared(text, secrets);
      const { code, stdout, stderr } = await ended(t, ["check", "--config", "gateway.json"], {
        cwd,
      });
      assert.match(stderr, warnings);
      assert.equal(code, 0);
      assert.match(stdout, /is valid/);
    });

    it(`the words beside ${file} say how each of its secrets is made`, () => {
      const names = secretsIn(text, secrets);
      assert.ok(names.length >= 2);
      const first = place === COMPOSE ? "compose.yaml" : "kustomization.yaml";
      const words = readFileSync(join(place, first), "utf8");
      const made = place === COMPOSE ? "> secrets/gateway/" : "--from-literal=";
      for (const name of names) assert.ok(words.includes(`${made}${name}`), name);
    });
  }

  it("what keeps files of secrets out of the repository lets the configurations in", () => {
    assert.match(readFileSync("scripts/deploy/.gitignore", "utf8"), /^secrets\/$/m);
    assert.match(readFileSync(".gitignore", "utf8"), /^!scripts\/deploy\/\*\*\/gateway\.json$/m);
  });
});
