// The configuration rules beyond the type of each field: `check` and `serve` apply the same ones.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs, { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { vendorPreset } from "../../../../src/config/vendors.ts";
import { pathText } from "../../../../src/core/schema/checker.ts";
import { duplicateMembers } from "../../../../src/extensions/operations/config-checks/duplicates.ts";
import { configFile } from "../../../support/books.ts";
import { lines } from "../../../support/command.ts";
import { VENDORS } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { bundled } from "../../../support/program.ts";
import { runHere } from "../../../support/run-here.ts";
import { faultsOf } from "../faults-of.ts";

const faults = (over: object): string[] =>
  faultsOf({ providers: {}, models: {}, server: { port: 1 }, ...over });

/** Writes a configuration to a new file. Its data_dir is not created. */
function written(over: object = {}): { file: string; data: string } {
  const data = join(folder(), "data");
  return { file: configFile(demo({ data_dir: data, ...over })), data };
}

describe("a provider's key", () => {
  it("is required by every hosted vendor at its own address", () => {
    const hosted = [...VENDORS].filter(([, { needs_key }]) => needs_key).map(([name]) => name);
    assert.ok(hosted.includes("openai") && hosted.includes("anthropic"), String(hosted));
    // A cloud needs more than a key: its own tests cover those settings.
    for (const vendor of hosted.filter((name) => !["vertex", "bedrock"].includes(name))) {
      const [found, ...others] = faults({ providers: { p: { vendor } } });
      assert.match(found ?? "", /^providers\.p\.api_key: is required: /);
      assert.deepEqual(others, []);
      assert.deepEqual(faults({ providers: { p: { vendor, api_key: "k" } } }), []);
      const own = `${vendorPreset({ vendor })?.base_url}/`;
      assert.equal(faults({ providers: { p: { vendor, base_url: own } } }).length, 1);
    }
    const [ofDialect = ""] = faults({ providers: { p: { dialect: "gemini" } } });
    assert.match(ofDialect, /^providers\.p\.api/);
  });

  it("is not required for local servers, the demo, or another address", () => {
    for (const vendor of ["vllm", "sglang", "ollama", "demo"])
      assert.deepEqual(faults({ providers: { p: { vendor } } }), []);
    const base_url = "http://127.0.0.1:9";
    for (const vendor of ["generic", "llama.cpp", "openai", "anthropic"])
      assert.deepEqual(faults({ providers: { p: { vendor, base_url } } }), []);
  });
});

describe("base_url", () => {
  for (const [dialect, base_url, end] of [
    ["openai", "http://h/v1/chat/completions", "/chat/completions"],
    ["openai", "http://h/v1/chat/completions/", "/chat/completions"],
    ["openai", "http://h/v1/chat", "/chat"],
    ["anthropic", "http://h/v1/messages", "/v1/messages"],
    ["anthropic", "http://h/v1", "/v1"],
    ["gemini", "http://h/v1beta", "/v1beta"],
    ["gemini", "http://h/v1beta/models", "/v1beta/models"],
  ] as const) {
    it(`of the ${dialect} dialect must not end in ${end}, which is appended`, () => {
      const [found, ...others] = faults({ providers: { p: { dialect, base_url } } });
      assert.ok(found?.startsWith(`providers.p.base_url: must not end in ${end}: `), found);
      assert.deepEqual(others, []);
    });
  }

  it("may end in what only another dialect appends", () => {
    for (const [dialect, base_url] of [
      ["openai", "http://h/v1"],
      ["openai", "http://h/v1beta/openai"],
      ["anthropic", "http://h/anthropic"],
      ["gemini", "http://h/v1"],
    ])
      assert.deepEqual(faults({ providers: { p: { dialect, base_url } } }), []);
  });
});

describe("the two listeners", () => {
  const BEYOND = { password: "p", tls: { cert_file: "c", key_file: "k" } };
  for (const [host, port, adminHost, adminPort, isShared] of [
    ["127.0.0.1", 9000, "127.0.0.1", 9000, true],
    ["0.0.0.0", 9000, "127.0.0.1", 9000, true],
    ["::", 9000, "127.0.0.1", 9000, true],
    ["127.0.0.1", 9000, "0.0.0.0", 9000, true],
    ["localhost", 9000, "127.0.0.1", 9000, true],
    ["::1", 9000, "localhost", 9000, true],
    [undefined, 8081, undefined, undefined, true],
    ["127.0.0.2", 9000, "127.0.0.1", 9000, false],
    ["0.0.0.0", 9000, "::1", 9000, false],
    ["127.0.0.1", 0, "127.0.0.1", 0, false],
    ["127.0.0.1", 9000, "127.0.0.1", 9001, false],
  ] as const)
    it(`${isShared ? "cannot" : "can"} be ${host}:${port} and ${adminHost}:${adminPort}`, () => {
      const admin = { host: adminHost, port: adminPort, ...(adminHost === "0.0.0.0" && BEYOND) };
      const expected = isShared ? ["admin.port: is server.port too, on the same host"] : [];
      assert.deepEqual(faults({ server: { host, port }, admin }), expected);
    });
});

describe("a duplicate member", () => {
  const found = (text: string) => {
    JSON.parse(text);
    return duplicateMembers(text).map(({ path }) => pathText(path));
  };

  it("is found at any depth, with its path", () => {
    const twice = found('{"a": 1, "b": {"c": [0, {"d": 1, "e": 2, "d": 3}]}, "a": 2}');
    assert.deepEqual(twice, ["b.c[1].d", "a"]);
    assert.deepEqual(found('[{"x":1},{"x":1,"x":2}]'), ["[1].x"]);
    assert.deepEqual(found('{"a":1,"a":2,"a":3}'), ["a", "a"]);
  });

  it("is found however its name is escaped", () => {
    assert.deepEqual(found('{"ab": 1, "\\u0061b": 2}'), ["ab"]);
    assert.deepEqual(found('{"\\"": 1, "\\"": 2, "__proto__": 1, "__proto__": 2}').length, 2);
  });

  it("is not reported across different objects, or inside a string", () => {
    assert.deepEqual(found('{"a": {"a": 1}, "b": {"a": 1}, "c": "{\\"a\\":1,\\"a\\":2}"}'), []);
    assert.deepEqual(found('["a","a",{"a":"a"},[],{}]'), []);
  });

  it("is found in linear time, without recursion", () => {
    assert.deepEqual(found("[".repeat(100_000) + "]".repeat(100_000)), []);
    assert.deepEqual(found(JSON.stringify({ long: '\\"'.repeat(4_000_000) })), []);
  });

  it("is reported by check together with all other faults", async () => {
    const { file } = written();
    writeFileSync(
      file,
      '{"providers": {"p": {"dialect": "demo", "dialect": "demo"}}, "models": {}, "models": {"m": {"provider": "p"}}, "limits": {"rpm": -1}}',
    );
    const { code, stderr } = await runHere(["check", "--config", file]);
    assert.equal(code, 1);
    assert.deepEqual(lines(stderr), [
      "chat-gateway: limits.rpm: expected an integer from 0 to 1000000, got -1",
      "chat-gateway: providers.p.dialect: is set twice: only the last one would count",
      "chat-gateway: models: is set twice: only the last one would count",
    ]);
  });
});

const NOBODY = { uid: 65_534, gid: 65_534 };
const canActAs = (user: typeof NOBODY): boolean =>
  process.getuid?.() === 0 && spawnSync(process.execPath, ["--version"], user).status === 0;

describe("a data_dir that cannot be created", () => {
  async function assertFault(data_dir: string, fault: RegExp | string): Promise<void> {
    const { file } = written({ data_dir });
    const { code, stdout, stderr } = await runHere(["check", "--config", file]);
    assert.deepEqual([code, stdout], [1, ""]);
    if (typeof fault === "string") assert.equal(stderr, `chat-gateway: data_dir: ${fault}\n`);
    else assert.match(stderr, fault);
  }

  for (const [what, obstacle, path] of [
    ["a file in its place", "data", "data"],
    ["a file in the place of a folder above it", "above", "above/there/data"],
    ["a file in the place of its spend folder", "data/spend", "data"],
  ] as const)
    it(what, async () => {
      const dir = folder();
      if (obstacle.includes("/")) mkdirSync(join(dir, "data"));
      writeFileSync(join(dir, obstacle), "in the way");
      await assertFault(join(dir, path), `${join(dir, obstacle)} is not a folder`);
    });

  const skip =
    !canActAs(NOBODY) &&
    "this takes root, to become another user, who must be able to run this Node";
  it("without permission is reported", { skip }, async (t) => {
    const place = fs.mkdtempSync(join(tmpdir(), "chat-gateway-"));
    t.after(() => fs.rmSync(place, { recursive: true }));
    fs.chmodSync(place, 0o755);
    const program = bundled(place);
    const file = join(place, "gateway.json");
    writeFileSync(file, JSON.stringify(demo({ data_dir: join(place, "data") })));
    for (const command of ["check", "serve"]) {
      const child = spawn(process.execPath, [...program.args, command, "--config", file], {
        cwd: place,
        ...NOBODY,
        stdio: ["ignore", "ignore", "pipe"],
        // That user cannot write to the folder of these tests' coverage.
        env: { PATH: process.env["PATH"], NODE_V8_COVERAGE: "" },
      });
      t.after(() => child.kill("SIGKILL"));
      let stderr = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
      const [code] = await once(child, "close");
      const fault = `chat-gateway: data_dir: cannot be made in ${place}: EACCES\n`;
      assert.deepEqual([code, stderr], [1, fault]);
    }
  });

  it("whose sockets would have too long paths is reported", async () => {
    const path = join(folder(), "x".repeat(100));
    await assertFault(path, /data_dir: is \d+ bytes too long for the sockets/);
  });

  it("at or below a dangling link is reported", async () => {
    const link = join(folder(), "link");
    fs.symlinkSync(`${link}-unmounted`, link);
    for (const path of [link, join(link, "data")])
      await assertFault(path, `${link} is a link to something that is not there`);
  });

  const noProc = !existsSync("/proc/self") && "this takes Linux's /proc";
  it("inside a folder that the system manages is reported", { skip: noProc }, async () => {
    for (const path of ["/proc/nope", "/proc/nope/data"])
      await assertFault(path, /^chat-gateway: data_dir: cannot be made in \/proc: E[A-Z]+\n$/);
  });

  it("a data_dir that can be created is created by serve, not by check", async () => {
    const { file, data } = written();
    const { code, stderr } = await runHere(["check", "--config", file]);
    assert.deepEqual([code, stderr, existsSync(data)], [0, "", false]);
  });
});
