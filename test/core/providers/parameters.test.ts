// What a request means where it is silent, and what its reasoning_effort means without `thinking`:
// the defaults that the contract states, as they are published and as they reach providers;
// thinking that is asked for and not shown.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { assemble, configFor, json, readStream, user } from "../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../support/memory.ts";
import { chunk, completion, speak, status, stream } from "../../support/provider.ts";

type Json = Record<string, any>;

describe("temperature and top_p", () => {
  /** A gateway whose model "m" has these traits, and what its provider was asked of the two. */
  function sampling(t: TestContext, traits: object) {
    const provider = memoryProvider(t, { m: speak("Hi.") });
    const models = { m: { thinking: "none", ...traits } };
    const gw = createMemoryGateway(configFor(provider.url, ["m"], { models }));
    return async (fields: object): Promise<Json> => {
      assert.equal((await gw.chat({ model: "m", messages: user("hi"), ...fields })).status, 200);
      const { temperature, top_p } = provider.asked.at(-1)!.body;
      return JSON.parse(JSON.stringify({ temperature, top_p }));
    };
  }

  const ones = { temperature: 1, top_p: 1 };
  const halves = { temperature: 0.5, top_p: 0.5 };
  const [hot, likely] = [{ temperature: 0.5 }, { top_p: 0.5 }];
  const CASES: [title: string, traits: object, asked: [fields: object, sent: object][]][] = [
    [
      "are sent as 1 where the client is silent or says null",
      {},
      [
        [{}, ones],
        [{ temperature: null, top_p: null }, ones],
        [{ temperature: 0 }, { temperature: 0, top_p: 1 }],
        [{ top_p: 0 }, { temperature: 1, top_p: 0 }],
      ],
    ],
    [
      "are left to the provider whose own default is 1, and sent where the client says them",
      { defaults_to_one: ["temperature", "top_p"] },
      [
        [{}, {}],
        [ones, ones],
        [hot, hot],
      ],
    ],
    [
      "are not sent to a provider that refuses them",
      { omit: ["temperature", "top_p"] },
      [
        [{}, {}],
        [halves, {}],
      ],
    ],
    [
      "are not sent together to a provider that refuses both together",
      { temperature_or_top_p: true },
      [
        [{}, { temperature: 1 }],
        [likely, likely],
        [halves, hot],
        [{ temperature: 0, top_p: 0.5 }, { temperature: 0 }],
      ],
    ],
    [
      "are not sent together where the provider also refuses temperature",
      { temperature_or_top_p: true, omit: ["temperature"] },
      [
        [halves, likely],
        [{}, {}],
      ],
    ],
    [
      "go out as 1 where 1 is the highest temperature",
      { max_temperature: 1 },
      [
        [{}, ones],
        [{ temperature: 1.5 }, ones],
      ],
    ],
  ];
  for (const [title, traits, asked] of CASES) {
    it(title, async (t) => {
      const sent = sampling(t, traits);
      for (const [fields, expected] of asked)
        assert.deepEqual(await sent(fields), expected, JSON.stringify(fields));
    });
  }
});

describe("reasoning_effort without thinking", () => {
  it("drops the log probabilities of the hidden thinking, wherever the provider lists them", async (t) => {
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
    assert.deepEqual(tokens(shown.choices[0].logprobs.reasoning_content), [
      "Se",
      "cret",
      "</think>",
    ]);
  });
});
