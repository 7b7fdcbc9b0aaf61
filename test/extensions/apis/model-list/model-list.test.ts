// GET /v1/models and /v1/models/{id}: the models of a key, and what a client can expect of each.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { demo, json, startGateway } from "../../../support/gateway.ts";

const model = (over: object) => ({ provider: "lab", ...over });
const config = demo({
  providers: { lab: { dialect: "openai", base_url: "http://127.0.0.1:9/v1" } },
  models: {
    small: model({ context_tokens: 8_000, max_output_tokens: 1_000, supports: ["tools"] }),
    large: model({
      context_tokens: 64_000,
      reasoning: true,
      supports: ["json_object", "logprobs"],
    }),
    unknown: model({ supports: [] }),
    unsure: model({ supports: ["logprobs"], think_tags: true }),
  },
  aliases: {
    "team/both": { models: ["large", "small", "unknown"] },
    "team/off": { models: ["small"], enabled: false },
  },
  keys: [
    { account: "demo", key: "sk-demo" },
    { account: "demo", key: "sk-narrow", models: ["team/both", "large"] },
  ],
});

describe("GET /v1/models/{id}", () => {
  /** A gateway, and its responses to paths below /v1/models. */
  async function start(t: TestContext) {
    const { url, gateway } = await startGateway(t, config);
    const get = (path: string, key = "sk-demo", method = "GET") =>
      fetch(`${url}/v1/models${path}`, { method, headers: { authorization: `Bearer ${key}` } });
    return { url, admin: gateway.adminAddress()!, get };
  }

  it("shows what the list shows: context, longest reply, capabilities, and for an alias the guaranteed ones", async (t) => {
    const { get } = await start(t);
    const abilities: Record<string, [number | null, number | null, string[]]> = {
      small: [8_000, 1_000, ["tools"]],
      large: [64_000, null, ["json_object", "logprobs", "reasoning"]],
      unknown: [null, null, []],
      unsure: [null, null, []],
      "team/both": [8_000, 1_000, ["json_object", "logprobs", "reasoning", "tools"]],
    };
    const { data } = await json(await get(""));
    for (const [id, expected] of Object.entries(abilities)) {
      const [context_length, max_output_tokens, capabilities] = expected;
      const entry = await json(await get(`/${id}`));
      const own = { id, object: "model", created: entry.created, owned_by: "chat-gateway" };
      assert.deepEqual(entry, { ...own, context_length, max_output_tokens, capabilities });
      const listed = data.find((each: { id: string }) => each.id === id);
      assert.deepEqual(listed, entry);
    }
    // For this key the alias has one model, because the key names only that one.
    const narrow = await json(await get("/team/both", "sk-narrow"));
    assert.deepEqual([narrow.context_length, narrow.max_output_tokens], [64_000, null]);
  });

  it("accepts names with slashes, plain or percent-encoded, and ignores a query", async (t) => {
    const { get, admin } = await start(t);
    for (const path of ["team/both", "team%2Fboth", "%74eam/both?x=1"])
      assert.equal((await json(await get(`/${path}`))).id, "team/both", path);
    const metrics = await (await fetch(`${admin}/metrics`)).text();
    const counted = 'requests_total{path="/v1/models/{id}",status="200",model=""} 3\n';
    assert.ok(metrics.includes(counted), metrics);
  });

  it("404 for an unknown, disabled or forbidden model; 401 without a key; 405 except for GET and HEAD", async (t) => {
    const { url, get } = await start(t);
    for (const path of ["nowhere", "team/off", "__proto__", "{id}", "%zz", "small/", "small"]) {
      const response = await get(`/${path}`, path === "small" ? "sk-narrow" : "sk-demo");
      const { type, code, param } = (await json(response)).error;
      assert.deepEqual([response.status, code, param], [404, "model_not_found", "model"], path);
      assert.equal(type, "invalid_request_error");
    }
    assert.equal((await fetch(`${url}/v1/models/small`)).status, 401);
    const head = await get("/team/both", "sk-demo", "HEAD");
    assert.deepEqual([head.status, await head.text()], [200, ""]);
    const deleted = await get("/small", "sk-demo", "DELETE");
    assert.deepEqual([deleted.status, deleted.headers.get("allow")], [405, "GET, HEAD"]);
  });

  it("is in the published document, with a schema that its responses meet", async (t) => {
    const { url, admin, get } = await start(t);
    const published = await (await fetch(`${url}/openapi.json`)).text();
    assert.equal(await (await fetch(`${admin}/openapi.json`)).text(), published);
    const { paths, components } = JSON.parse(published);
    assert.deepEqual(Object.keys(paths["/v1/models/{id}"].get.responses), ["200", "401", "404"]);
    const { required, properties } = components.schemas.Model;
    for (const entry of (await json(await get(""))).data)
      for (const names of [required, Object.keys(properties)])
        assert.deepEqual(Object.keys(entry), names);
  });
});
