// Tokens that a command prints: real processes, a real provider.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { folder } from "../../../support/folder.ts";
import { configFor, startGateway, user, type RunningGateway } from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import { completion, startProvider, status, type Provider } from "../../../support/provider.ts";

/** A gateway whose provider wants what this program prints, and another provider that wants nothing. */
async function startWith(
  t: TestContext,
  program: string,
): Promise<RunningGateway & { readonly provider: Provider }> {
  const file = join(folder(), "token.mjs");
  writeFileSync(file, program);
  const provider = await startProvider(t, status(200, completion({ content: "Hi." })));
  const credentials = { type: "command", run: [process.execPath, file, "a b"], ttl_s: 3000 };
  const config = configFor(provider.url, ["spare"], {
    providers: { tokens: { dialect: "openai", base_url: provider.url, credentials } },
    models: { m: { provider: "tokens", reasoning: false } },
    aliases: { any: { models: ["m", "spare"] } },
  });
  return { ...(await startGateway(t, config)), provider };
}

const PRINTS = `console.log("token-of-" + process.argv[2].replace(" ", "-"));`;

describe("a command that prints a token", () => {
  it("is run without a shell, once for many requests", async (t) => {
    const { chat, provider } = await startWith(t, PRINTS);
    const ask = () => chat({ model: "m", messages: user("hello") });
    for (const { status } of [...(await Promise.all([ask(), ask()])), await ask()])
      assert.equal(status, 200);
    const keys = new Set(provider.asked.map(({ headers }) => headers.authorization));
    assert.deepEqual([...keys], ["Bearer token-of-a-b"]);
  });

  const hangs = `process.on("SIGTERM", () => {}); setInterval(() => {}, 1e6);`;
  for (const [name, program, detail] of [
    ...(LONG ? [["hangs", hangs, /was stopped, after 30 seconds/] as const] : []),
    ["fails", `console.error("secret"); process.exit(3);`, /failed: exit code 3/],
    ["prints nothing", "", /printed no token/],
    ["prints a sentence", `console.log("please log in");`, /printed no token/],
  ] as const) {
    it(`that ${name} is a refused key, and another candidate serves`, async (t) => {
      const { chat, diagnostics } = await startWith(t, program);
      assert.equal((await chat({ model: "any", messages: user("hello") })).status, 200);
      const failed = diagnostics.find(({ event }) => event === "credentials_failed");
      assert.match(String(failed?.["detail"]), detail);
      assert.doesNotMatch(JSON.stringify(diagnostics), /secret|log in/);
    });
  }
});
