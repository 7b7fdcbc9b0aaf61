// The reference edition, built: it answers whole and streamed for a key that it has made, keeps
// books, and bills.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { build } from "esbuild";
import { REFERENCE_EDITION } from "../scripts/build.ts";
import { run } from "./support/command.ts";
import { folder } from "./support/folder.ts";
import { runToEnd } from "./support/program.ts";
import { speak, startProvider } from "./support/provider.ts";

it("the reference edition serves, makes keys, keeps books and bills", async (t) => {
  const place = folder();
  const outfile = join(place, "core.mjs");
  const { "chat-gateway-core": entry } = REFERENCE_EDITION.entryPoints;
  await build({ ...REFERENCE_EDITION, entryPoints: [entry], outfile });
  const provider = await startProvider(t, { m: speak("Hello there.") });
  const config = join(place, "gateway.json");
  const price = { input_cache_miss: 1, input_cache_hit: 0.5, output: 10 };
  writeFileSync(
    config,
    JSON.stringify({
      server: { port: 0 },
      data_dir: join(place, "data"),
      providers: { lab: { dialect: "openai", base_url: provider.url } },
      models: { m: { provider: "lab", price } },
    }),
  );
  const program = { args: [outfile], cwd: place };
  const command = async (...words: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runToEnd(program, [...words, "--config", config]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const key = (await command("keys", "create", "--account", "acme")).trim();

  const gateway = run(t, ["serve", "--config", config], { program, cwd: place });
  const address = await gateway.address();
  const ask = (stream: boolean): Promise<Response> =>
    fetch(`${address}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "m", stream, messages: [{ role: "user", content: "Hi" }] }),
    });
  const whole = await ask(false);
  const { choices } = (await whole.json()) as { choices: { message: { content: string } }[] };
  assert.equal(choices[0]?.message.content, "Hello there.");
  assert.match(await (await ask(true)).text(), /"Hello"[\s\S]* there\.[\s\S]*data: \[DONE\]\n\n$/);

  await command("usage", "sync", "--once");
  const month = new Date().toISOString().slice(0, 7);
  const bill = ["billing", "statement", "--account", "acme", "--month", month, "--json"];
  const { lines } = JSON.parse(await command(...bill));
  // Of 20 prompt tokens 8 were cached: (12 * 1 + 8 * 0.5 + 7 * 10) / 1e6 a request.
  assert.deepEqual([lines[0].model, lines[0].requests, lines[0].cost], ["m", 2, "0.000172"]);
  const id = whole.headers.get("x-request-id")!;
  const trace = JSON.parse(await command("billing", "trace", id, "--json"));
  const [record] = trace.records;
  assert.deepEqual([record.account, record.cost], ["acme", "0.000086"]);
});
