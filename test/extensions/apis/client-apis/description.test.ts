// The setting `apis`, and what /openapi.json says of the two further APIs: the enforced schemas,
// and the replies as sent.

import assert from "node:assert/strict";
import { it } from "node:test";
import { checkConfig } from "../../../support/config.ts";
import { demo, json, startGateway, user } from "../../../support/gateway.ts";
import { post } from "../post.ts";

const KEY = { authorization: "Bearer sk-demo" };

/** All schemas that the document refers to. */
function named(value: unknown): string[] {
  const references = JSON.stringify(value).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g);
  return [...new Set([...references].map(([, name]) => name!))];
}

/** Asserts that the value has all members that the schema requires, at every level. */
function assertHas(value: any, schema: any, path: string): void {
  for (const name of schema.required ?? []) assert.ok(name in value, `${path}.${name}`);
  for (const [name, inner] of Object.entries<any>(schema.properties ?? {})) {
    if (inner.const !== undefined) assert.equal(value[name], inner.const, `${path}.${name}`);
    if (inner.type === "object") assertHas(value[name], inner, `${path}.${name}`);
    if (inner.type === "array")
      for (const item of value[name]) assertHas(item, inner.items, `${path}.${name}[]`);
  }
}

it("apis is optional, and an unknown name is rejected with its position", () => {
  for (const apis of [undefined, null, []]) checkConfig({ ...demo(), apis });
  const expected = /apis\[1\]: expected one of "messages", "responses", got "completions"/;
  assert.throws(() => checkConfig({ ...demo(), apis: ["messages", "completions"] }), expected);
});

it("/openapi.json has the paths and schemas of further APIs only if they are enabled", async (t) => {
  for (const apis of [[], ["messages"], ["responses"], ["messages", "responses"]]) {
    // The demo configuration enables both.
    const gateway = await startGateway(t, demo(apis.length === 2 ? {} : { apis }));
    const document = await json(await fetch(`${gateway.url}/openapi.json`));
    const paths = ["/v1/messages", "/v1/messages/count_tokens", "/v1/responses"];
    const messages = apis.includes("messages");
    const expected = [messages, messages, apis.includes("responses")];
    const found = paths.map((path) => path in document.paths);
    assert.deepEqual(found, expected);
    for (const [at, path] of paths.entries()) {
      const { status } = await post(gateway.url + path, "{}", { authorization: "" });
      assert.equal(status, expected[at] ? 401 : 404, path);
    }
    const names = named(document);
    assert.ok(names.includes("ChatCompletionRequest"));
    for (const name of names) assert.ok(name in document.components.schemas, name);
  }
});

it("/openapi.json describes requests of further APIs as checked, and replies and errors as sent", async (t) => {
  const gateway = await startGateway(t, demo({ apis: ["messages", "responses"] }));
  const { paths, components } = await json(await fetch(`${gateway.url}/openapi.json`));
  const { schemas } = components;
  const bodies: Record<string, object> = {
    "/v1/messages": { model: "demo-chat", max_tokens: 20, messages: user("hi") },
    "/v1/messages/count_tokens": { model: "demo-chat", messages: user("hi") },
    "/v1/responses": { model: "demo-chat", input: "hi" },
  };
  for (const [path, body] of Object.entries(bodies)) {
    const { post: described } = paths[path];
    const ask = (given: object) => post(gateway.url + path, given, KEY);
    const [request] = named(described.requestBody);
    const { required } = schemas[request!];
    assert.deepEqual([...required].sort(), Object.keys(body).sort(), path);
    const whole = await ask(body);
    assert.equal(whole.status, 200, path);
    const [reply] = named(described.responses["200"].content["application/json"]);
    assertHas(await json(whole), schemas[reply!], path);
    for (const name of required) {
      const refused = await ask({ ...body, [name]: undefined });
      assert.equal(refused.status, 400, `${path} without ${name}`);
      const [error] = named(described.responses["400"]);
      assertHas(await json(refused), schemas[error!], path);
    }
  }
});
