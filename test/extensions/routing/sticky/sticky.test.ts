// aliases.A.sticky: a conversation stays with the model that served it while that model is healthy,
// separately for each account; how a conversation is recognized; limits; explain.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import { prefixHashes } from "../../../../src/extensions/routing/sticky/prefixes.ts";
import { createMemory } from "../../../../src/extensions/routing/sticky/index.ts";
import { configFile } from "../../../support/books.ts";
import { configFor, json, KEY, startWith } from "../../../support/gateway.ts";
import { speak, status, type Behaviour } from "../../../support/provider.ts";
import { broken, inTurn, REST, sayText, SHOWN, texts, WHOLE } from "../../../support/recovered.ts";
import { runHere } from "../../../support/run-here.ts";
import { post } from "../../apis/post.ts";

type Json = Record<string, any>;

const OTHER_KEY = "sk-test-other-account";

/** Two sticky aliases, one of which continues broken streams, and one that is not sticky. */
async function start(t: TestContext, over: object = {}) {
  const behaviours: Record<string, Behaviour> = { a: speak("A."), b: speak("B.") };
  const models = Object.keys(behaviours);
  const { provider, ...gateway } = await startWith(t, behaviours, {
    apis: ["messages"],
    models: { a: { prefill: "plain" }, b: { prefill: "plain" } },
    aliases: {
      sticky: { models, sticky: true },
      plain: { models },
      continued: { models, sticky: true, recovery: "continue" },
    },
    keys: [
      { account: "acme", key: KEY },
      { account: "other", key: OTHER_KEY },
    ],
    ...over,
  });
  const ask = async (messages: Json[], model = "sticky", key = KEY): Promise<string> => {
    const headers = { authorization: `Bearer ${key}` };
    return (await json(await gateway.chat({ model, messages }, headers))).model;
  };
  /** The text of a request whose broken streams are continued, and the models that were called. */
  async function streamed(messages: Json[]): Promise<readonly [text: string, asked: string[]]> {
    const before = provider.asked.length;
    const answer = await gateway.chat({ model: "continued", messages, stream: true });
    const text = await answer.text();
    return [text, provider.asked.slice(before).map(({ body }) => body["model"])];
  }
  return { ...gateway, behaviours, ask, streamed };
}

const user = (content: string): Json => ({ role: "user", content });
const says = (content: string): Json => ({ role: "assistant", content });

describe("a sticky alias", () => {
  it("stays with the model that served the conversation", async (t) => {
    const { ask, behaviours, url } = await start(t);
    behaviours["a"] = status(500);
    for (const alias of ["sticky", "plain"]) assert.equal(await ask([user("Hi")], alias), "b");
    behaviours["a"] = speak("A.");
    const grown = [user("Hi"), says("B."), user("And now?")];
    assert.equal(await ask(grown), "b");
    const other = { model: "sticky", max_tokens: 9, messages: grown };
    assert.equal((await json(await post(`${url}/v1/messages`, other))).model, "b", "by any API");
    assert.equal(await ask([...grown, says("B."), user("And then?")]), "b");
    assert.equal(await ask([user("Another one")]), "a", "another conversation starts over");
    assert.equal(await ask(grown, "sticky", OTHER_KEY), "a", "another account starts over");
    assert.equal(await ask(grown, "plain"), "a", "it is not sticky");
  });

  it("notes in the receipt that the conversation stayed", async (t) => {
    const { ask, chat, url } = await start(t);
    await ask([user("Hi")]);
    const headers = { authorization: `Bearer ${KEY}`, "x-request-id": "second-turn" };
    const messages = [user("Hi"), says("A."), user("And now?")];
    await (await chat({ model: "sticky", messages }, headers)).text();
    const { data } = await json(await fetch(`${url}/v1/requests/second-turn`, { headers }));
    assert.deepEqual(data[0].notes, ["sticky: stayed with a"]);
  });

  it("leaves a model whose breaker is open, and stays with the next", async (t) => {
    const { ask, behaviours } = await start(t, { breaker: { failures: 1, cooldown_ms: 600_000 } });
    assert.equal(await ask([user("Hi")]), "a");
    behaviours["a"] = status(500);
    const grown = [user("Hi"), says("A."), user("And now?")];
    assert.equal(await ask(grown), "b");
    behaviours["a"] = speak("A.");
    assert.equal(await ask([...grown, says("B."), user("Then?")]), "b");
    assert.equal(await ask([user("Hi")]), "b", "model a has failed");
  });

  it("continues a broken stream at the model that broke, whatever it remembers", async (t) => {
    const { streamed, behaviours } = await start(t);
    behaviours["a"] = status(500);
    behaviours["b"] = sayText(WHOLE);
    await streamed([user("Hi")]);
    behaviours["a"] = inTurn(broken(texts(SHOWN)), sayText(REST));
    behaviours["b"] = status(500);
    const [text, asked] = await streamed([user("Hi"), says(WHOLE), user("And now?")]);
    assert.match(text, /: recovered/);
    assert.deepEqual(asked, ["b", "a", "a"]);
  });

  it("remembers the model that finished a reply begun by another", async (t) => {
    const { streamed, behaviours } = await start(t);
    behaviours["a"] = inTurn(broken(texts(SHOWN)), status(500), sayText(WHOLE));
    behaviours["b"] = inTurn(sayText(REST), sayText(WHOLE));
    const [text, asked] = await streamed([user("Hi")]);
    assert.match(text, /: recovered/);
    assert.deepEqual(asked, ["a", "a", "b"]);
    const [, later] = await streamed([user("Hi"), says(WHOLE), user("And now?")]);
    assert.deepEqual(later, ["b"]);
  });
});

describe("the beginnings of a request", () => {
  const of = (messages: Json[], over: Json = {}, account = "acme") =>
    prefixHashes(chatRequest({ model: "m", messages, ...over }), account);

  it("are those of the turn before, and further ones", () => {
    const before = of([user("Hi"), says("Yes?")]);
    const now = of([user("Hi"), says("Yes?"), user("So.")]);
    assert.equal(before.length, 2);
    assert.deepEqual(now.slice(1), before);
  });

  it("differ by account, model, tools and text", () => {
    const tools = [{ type: "function", function: { name: "f" } }];
    const all = [
      of([user("Hi")]),
      of([user("Ho")]),
      of([says("Hi")]),
      of([user("Hi")], { model: "n" }),
      of([user("Hi")], { tools }),
      of([user("Hi")], {}, "other"),
    ].flat();
    assert.equal(new Set(all).size, all.length);
  });

  it("end after 4,096 bytes or 32 messages", () => {
    const long = "ü".repeat(5_000);
    assert.deepEqual(of([user(`${long}a`)]), of([user(`${long}b`)]));
    assert.deepEqual(of([user(long), user("a")]), of([user(long)]));
    assert.notDeepEqual(of([user("x".repeat(4_000))]), of([user(`${"x".repeat(4_000)}y`)]));
    assert.equal(of(Array.from({ length: 100 }, () => user(""))).length, 32);
  });
});

it("the memory forgets the least recently used entries", () => {
  const memory = createMemory(2);
  memory.set("a", "1");
  memory.set("b", "2");
  assert.equal(memory.get("a"), "1");
  memory.set("c", "3");
  assert.deepEqual(["a", "b", "c"].map(memory.get), ["1", undefined, "3"]);
});

it("explain says which aliases are sticky", async () => {
  const aliases = { yes: { models: ["a"], sticky: true }, no: { models: ["a"], sticky: false } };
  const file = configFile(configFor("http://127.0.0.1:9", ["a"], { aliases }));
  const explained = async (...words: string[]) =>
    (await runHere(["explain", ...words, "--config", file])).stdout;
  assert.match(await explained("yes"), /Sticky: a conversation stays with/);
  assert.doesNotMatch(await explained("no"), /Sticky: a conv/);
  assert.match(JSON.parse(await explained("yes", "--json")).notes[0], /^Sticky: a conv/);
});
