// Hints for the caches of providers: which providers get one, where, and which requests share one.

import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { folder } from "../../../support/folder.ts";
import { configFor, KEY, startGateway } from "../../../support/gateway.ts";
import { speak, startProvider, type Asked } from "../../../support/provider.ts";

const OTHER = "sk-test-other-account";
const system = { role: "system", content: "Be brief." };
const first = { role: "user", content: "What is it?" };
const turns = [
  [system, first],
  [system, first, { role: "assistant", content: "It is." }, { role: "user", content: "Why?" }],
];

async function start(t: TestContext, vendor: string, data_dir = folder()) {
  const provider = await startProvider(t, speak("Hi."));
  const config = configFor(provider.url, [], {
    data_dir,
    providers: { p: { vendor, base_url: provider.url, api_key: "k" } },
    models: { m: { provider: "p", reasoning: false } },
    keys: [
      { account: "acme", key: KEY },
      { account: "other", key: OTHER },
    ],
  });
  const { chat } = await startGateway(t, config);
  return async (messages: object[], more: object = {}, key = KEY): Promise<Asked> => {
    const authorization = `Bearer ${key}`;
    const answer = await chat({ model: "m", messages, ...more }, { authorization });
    assert.equal(answer.status, 200);
    return provider.asked.at(-1)!;
  };
}

it("a hint for the provider's cache is the same in each turn and process, and differs by conversation and account", async (t) => {
  const data = folder();
  const ask = await start(t, "openai", data);
  const hints: unknown[] = [];
  for (const messages of turns) hints.push((await ask(messages)).body["prompt_cache_key"]);
  const again = await start(t, "openai", data);
  hints.push((await again(turns[1]!)).body["prompt_cache_key"]);
  assert.match(String(hints[0]), /^[0-9a-f]{32}$/);
  assert.equal(new Set(hints).size, 1);
  for (const { body } of [
    await ask([system, { role: "user", content: "Something else?" }]),
    await ask([{ ...system, content: "Be long." }, first]),
    await ask(turns[0]!, {}, OTHER),
  ])
    hints.push(body["prompt_cache_key"]);
  assert.equal(new Set(hints).size, 4);
  const { body } = await ask(turns[0]!, { prompt_cache_key: "mine" });
  assert.equal(body["prompt_cache_key"], "mine", "the client's own is left alone");
});

it("a hint for xAI's cache is a header, even if the client sends its own", async (t) => {
  const ask = await start(t, "xai");
  const derived = await ask(turns[0]!);
  assert.match(String(derived.headers["x-grok-conv-id"]), /^[0-9a-f]{32}$/);
  assert.equal("prompt_cache_key" in derived.body, false);
  const own = await ask(turns[0]!, { prompt_cache_key: "mine" });
  assert.equal(own.headers["x-grok-conv-id"], "mine");
  const unsendable = await ask(turns[0]!, { prompt_cache_key: "a\r\nb: \u65e5" });
  assert.match(String(unsendable.headers["x-grok-conv-id"]), /^[0-9a-f]{32}$/);
});
