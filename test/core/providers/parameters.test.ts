// Thinking that is asked for by reasoning_effort alone, and not shown. Temperature and top_p where the
// client says nothing: compatible/vendors.test.ts and anthropic/request.test.ts.

import assert from "node:assert/strict";
import { it } from "node:test";
import { assemble, configFor, json, readStream, user } from "../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../support/memory.ts";
import { chunk, completion, status, stream } from "../../support/provider.ts";

type Json = Record<string, any>;

it("reasoning_effort without thinking drops the log probabilities of the hidden thinking, wherever the provider lists them", async (t) => {
  const token = (text: string) => ({ token: text, logprob: -1, bytes: [...Buffer.from(text)] });
  const all = ["Se", "cret", "</think>", "Sun", "ny."].map(token);
  const [a, b, , c, d] = all;
  const message = { role: "assistant", reasoning: "Secret", content: "Sunny." };
  const whole = { ...completion(message), logprobs: undefined } as Json;
  whole["choices"][0].logprobs = { content: all };
  const said = (delta: object, ...tokens: unknown[]) => {
    const event = chunk(delta) as Json;
    event["choices"][0].logprobs = { content: tokens };
    return event;
  };
  const provider = memoryProvider(t, {
    m: (asked) =>
      asked.body["stream"]
        ? stream([
            said({ reasoning: "Se" }, a),
            said({ reasoning: "cret" }, b),
            said({ reasoning: "", content: "Sun" }, c),
            said({ content: "ny." }, d),
            chunk({}, "stop"),
          ])(asked)
        : status(200, whole)(asked),
  });
  const gw = createMemoryGateway(configFor(provider.url, ["m"]));
  const request = { model: "m", messages: user("hi"), logprobs: true, reasoning_effort: "high" };
  const tokens = (list: readonly Json[]) => list.map(({ token }) => token);
  const reply = await (await gw.chat(request)).text();
  assert.doesNotMatch(reply, /cret/);
  assert.deepEqual(tokens(JSON.parse(reply).choices[0].logprobs.content), ["Sun", "ny."]);
  const streamed = await readStream(await gw.chat({ ...request, stream: true }));
  assert.doesNotMatch(streamed.text, /cret/);
  assert.deepEqual(tokens(assemble(streamed.chunks).logprobs), ["Sun", "ny."]);
  const shown = await json(await gw.chat({ ...request, thinking: { type: "enabled" } }));
  assert.deepEqual(tokens(shown.choices[0].logprobs.reasoning_content), ["Se", "cret", "</think>"]);
});
