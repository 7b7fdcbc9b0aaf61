// Service tiers: what providers are asked for, and what is billed and held.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { settled } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import {
  chunk,
  completion,
  event,
  startProvider,
  status,
  stream,
} from "../../../support/provider.ts";
import type { Scope } from "../../../support/scope.ts";

const USAGE = { prompt_tokens: 1_000_000, completion_tokens: 1_000_000, total_tokens: 2_000_000 };
const PRICE = { input_cache_miss: 2, output: 10 };

/** A gateway whose provider states this tier in each reply. Undefined: none. */
async function start(t: Scope, stated: string | undefined, over: object = {}) {
  const tier = stated && { service_tier: stated };
  const body = { ...completion({ content: "Hi." }), usage: USAGE, ...tier };
  const provider = await startProvider(t, status(200, body));
  const data = folder();
  const config = configFor(provider.url, ["m", "plain"], {
    data_dir: data,
    models: {
      m: {
        price: PRICE,
        service_tiers: {
          flex: { input_cache_miss: 1, output: 5 },
          priority: { input_cache_miss: 4, output: 20 },
        },
      },
      plain: { price: PRICE },
    },
    aliases: { any: { models: ["m", "plain"] } },
    ...over,
  });
  const gateway = await startGateway(t, config);
  /** Asks for a tier; what the provider was asked for, and what was billed. */
  async function billed(model: string, service_tier?: unknown) {
    const answer = await gateway.chat({ model, messages: user("hi"), service_tier });
    assert.equal(answer.status, 200, await answer.text());
    const line = (await settled(data, provider.asked.length)).at(-1)!;
    return [provider.asked.at(-1)!.body["service_tier"], line["cost"]];
  }
  return { provider, billed, ...gateway };
}

describe("a service tier", () => {
  it("is asked for and billed where it has a price; nothing else changes", async (t) => {
    const { billed } = await start(t, undefined);
    assert.deepEqual(await billed("m"), [undefined, "12"]);
    assert.deepEqual(await billed("m", "flex"), ["flex", "6"]);
    assert.deepEqual(await billed("m", "priority"), ["priority", "24"]);
    assert.deepEqual(await billed("any", "flex"), ["flex", "6"]);
    assert.deepEqual(await billed("plain", "flex"), [undefined, "12"]);
    for (const other of ["auto", "scale", "", null, 7])
      assert.deepEqual(await billed("m", other), [undefined, "12"]);
  });

  it("is billed as the provider served it", async (t) => {
    const standard = await start(t, "default");
    assert.deepEqual(await standard.billed("m", "priority"), ["priority", "12"]);
    const flex = await start(t, "flex");
    assert.deepEqual(await flex.billed("m", "priority"), ["priority", "6"]);
    // Without a tier of the client's own, `price` is what the operator says.
    assert.deepEqual(await flex.billed("m"), [undefined, "12"]);
  });

  it("is billed by what a stream states", async (t) => {
    const data = folder();
    const tier = { service_tier: "default" };
    const events = [chunk({ content: "Hi." }), chunk({}, "stop"), { choices: [], usage: USAGE }];
    const provider = await startProvider(t, stream(events.map((each) => ({ ...each, ...tier }))));
    const config = configFor(provider.url, ["m"], {
      data_dir: data,
      models: { m: { price: PRICE, service_tiers: { flex: { input_cache_miss: 1, output: 5 } } } },
    });
    const { chat } = await startGateway(t, config);
    const ask = { model: "m", messages: user("hi"), stream: true, service_tier: "flex" };
    assert.match(await (await chat(ask)).text(), /\[DONE\]/);
    assert.equal((await settled(data))[0]!["cost"], "12");
  });

  it("is billed as a reply in Anthropic's format states it", async (t) => {
    const usage = { input_tokens: 1_000_000, output_tokens: 1_000_000, service_tier: "standard" };
    const content = [{ type: "text", text: "Hi." }];
    const reply = { type: "message", role: "assistant", content, stop_reason: "end_turn", usage };
    const provider = await startProvider(t, status(200, reply));
    const data = folder();
    const config = configFor(provider.url, [], {
      data_dir: data,
      providers: { claude: { dialect: "anthropic", base_url: provider.url } },
      models: {
        m: {
          provider: "claude",
          price: PRICE,
          service_tiers: { auto: { input_cache_miss: 4, output: 20 } },
        },
      },
    });
    const { chat } = await startGateway(t, config);
    const answer = await chat({ model: "m", messages: user("hi"), service_tier: "auto" });
    assert.equal(answer.status, 200, await answer.text());
    assert.equal(provider.asked[0]!.body["service_tier"], "auto");
    assert.equal((await settled(data))[0]!["cost"], "12");
  });

  it("is the asked one again for the attempt that continues a reply, and each attempt has its own price", async (t) => {
    const data = folder();
    const part = (content: string, tier?: string) => ({
      ...chunk({ content }),
      ...(tier && { service_tier: tier }),
    });
    const usage = { ...USAGE, completion_tokens: 0, total_tokens: 1_000_000 };
    const end = { ...chunk({}, "stop"), usage };
    let asked = 0;
    const provider = await startProvider(t, (call) => {
      asked += 1;
      if (asked > 1) return stream([part(" World."), end])(call);
      call.res.writeHead(200, { "content-type": "text/event-stream" });
      call.res.write(event(part("Hello.", "default")), () => call.socket.resetAndDestroy());
    });
    const config = configFor(provider.url, ["m"], {
      data_dir: data,
      models: {
        m: {
          price: PRICE,
          prefill: "plain",
          recovery: "continue",
          service_tiers: { flex: { input_cache_miss: 1, output: 5 } },
        },
      },
    });
    const { chat } = await startGateway(t, config);
    const ask = { model: "m", messages: user("hi"), stream: true, service_tier: "flex" };
    assert.match(await (await chat(ask)).text(), /\[DONE\]/);
    const [line] = await settled(data);
    const attempts = line!["attempts"] as readonly Record<string, any>[];
    assert.deepEqual(
      attempts.map(({ share }) => [share.prices.output, share.cost]),
      [
        [10, "0.000022"],
        [5, "1.00001"],
      ],
    );
  });

  it("is what a budget must have free, or the usual price if that is more", async (t) => {
    const { chat, provider } = await start(t, undefined, {
      accounts: { acme: { budget: { amount: "0.0015", period: "month" } } },
    });
    const ask = (service_tier?: string) =>
      chat({ model: "m", messages: user("hi"), max_tokens: 100, service_tier });
    const refused = await ask("priority");
    assert.deepEqual(
      [refused.status, (await json(refused)).error.code],
      [402, "insufficient_balance"],
    );
    assert.equal(provider.asked.length, 0);
    assert.equal((await ask("flex")).status, 200);
    // The reply may be of the usual tier, and then costs as much.
    const short = await start(t, "default", {
      accounts: { acme: { budget: { amount: "0.001", period: "month" } } },
    });
    const asked = { model: "m", messages: user("hi"), max_tokens: 100, service_tier: "flex" };
    assert.equal((await short.chat(asked)).status, 402);
  });
});
