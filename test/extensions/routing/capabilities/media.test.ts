// Images and files that a candidate's format does not take: another candidate is asked, and where
// there is none, no provider is, and the client reads which message has them.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, startGateway } from "../../../support/gateway.ts";
import { speak, startProvider, status } from "../../../support/provider.ts";
import { post } from "../../apis/post.ts";

const image = (url: string) => ({ type: "image_url", image_url: { url } });
const file = (file_data: string) => ({ type: "file", file: { file_data } });

/** A format, a part that it does not take, and what the client reads. */
const REFUSED = [
  ["anthropic", file("data:text/csv;base64,YQ=="), /files of the types .*, got text\/csv/],
  ["anthropic", file(`data:a/${"b".repeat(1_000)};base64,QQ==`), /got a\/b{1,78}[^b]*$/],
  ["anthropic", file("YQ=="), /takes file_data as in 'data:TYPE;base64,DATA'/],
  ["anthropic", image("data:image/svg+xml,<svg/>"), /takes an address, or data, as in/],
  ["gemini", image("data:image/svg+xml,<svg/>"), /takes an address, or data, as in/],
  ["ollama", image("https://example.org/a.png"), /takes images as data, not by address/],
  ["converse", image("https://example.org/a.png"), /takes data of .*, got the address https/],
  ["converse", file("data:application/zip;base64,YQ=="), /takes data of .*, got application\/zip/],
] as const;

async function site(t: TestContext, dialect: string) {
  const provider = await startProvider(t, { strict: status(500), open: speak("Fine.") });
  const supports = dialect === "ollama" ? ["images"] : ["images", "files"];
  const own = dialect === "converse" ? { vendor: "bedrock" } : { dialect };
  const native = { base_url: provider.url, api_key: "sk-native", thinking: "none", ...own };
  const config = configFor(provider.url, ["open"], {
    apis: ["messages", "responses"],
    providers: { lab: { supports }, native },
    models: { strict: { provider: "native", dialect, supports } },
    aliases: { "auto/any": { models: ["strict", "open"] } },
  });
  const gateway = await startGateway(t, config);
  const ask = (path: string, body: object) => post(gateway.url + path, body);
  return { provider, gateway, ask };
}

const content = (part: object) => [{ type: "text", text: "What is it?" }, part];

describe("media that a format does not take", () => {
  for (const [dialect, part, message] of REFUSED)
    it(`${dialect}: ${JSON.stringify(part).slice(0, 80)}`, async (t) => {
      const { provider, gateway } = await site(t, dialect);
      const messages = [
        { role: "system", content: "Look." },
        { role: "user", content: content(part) },
      ];
      const reply = await json(await gateway.chat({ model: "auto/any", messages }));
      assert.equal(reply.choices[0].message.content, "Fine.");
      assert.equal(provider.asked.length, 1, "only the second candidate");

      const refused = await gateway.chat({ model: "strict", messages });
      assert.equal(refused.status, 400);
      const { error } = await json(refused);
      assert.deepEqual([error.code, error.param], ["unsupported_value", "messages[1].content"]);
      assert.match(error.message, message);
      assert.equal(provider.asked.length, 1);
    });

  it("of the Responses API are named by their place there", async (t) => {
    const { ask } = await site(t, "anthropic");
    const file_data = "data:text/csv;base64,YQ==";
    const content = [{ type: "input_file", filename: "a.csv", file_data }];
    const body = { model: "strict", store: false, input: [{ role: "user", content }] };
    const { error } = await json(await ask("/v1/responses", body));
    assert.deepEqual([error.code, error.param], ["unsupported_value", "input[0].content"]);
  });

  it("pass where the client speaks the provider's own format", async (t) => {
    const { provider, ask } = await site(t, "anthropic");
    const source = { type: "url", url: "https://example.org/a.pdf" };
    const messages = [{ role: "user", content: [{ type: "document", source }] }];
    await (await ask("/v1/messages", { model: "strict", max_tokens: 10, messages })).text();
    assert.equal(provider.asked.length, 1, "the provider decides");
  });
});
