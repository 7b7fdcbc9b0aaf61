// What a request requires of a model, and the error if no model has it. Images and files that a
// candidate's format does not take: another candidate is tried, and if there is none, no provider
// is called and the error names the message.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { pathText } from "../../../../src/core/schema/checker.ts";
import { capable, type FindLack } from "../../../../src/extensions/routing/capabilities/index.ts";
import { requirementsOf } from "../../../../src/extensions/routing/capabilities/requirements.ts";
import { configFor, json, startGateway } from "../../../support/gateway.ts";
import { speak, startProvider, status } from "../../../support/provider.ts";
import { catalogOf, chatOf, settingsFor, type TestModel } from "../../../support/routing.ts";
import { post } from "../../apis/post.ts";

/** A model with every capability. */
const ABLE: TestModel = {
  supports: ["tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"],
  tool_choice: "all",
  passes: ["files"],
};

/** The requirements of a request that fail for a model with these settings, with their paths. */
function unmet(request: object, settings: TestModel): string[] {
  const model = catalogOf(settingsFor({ m: { ...ABLE, ...settings } })).models.get("m")!;
  return requirementsOf(chatOf(request)).flatMap((lackOf) => {
    const lack = lackOf(model);
    return lack === undefined ? [] : [`${pathText(lack.path)}: ${lack.message}`];
  });
}

const tools = [{ type: "function", function: { name: "get_time" } }];
const says = (...content: object[]) => ({ role: "user", content });
const text = { type: "text", text: "what?" };
const imageAt = (url: string) => ({ type: "image_url", image_url: { url } });
const image = imageAt("https://example.org/a.png");
const file = (fields: object) => ({ messages: [says(text, { type: "file", file: fields })] });
const clip = (data: string) => ({
  messages: [says(text, { type: "input_audio", input_audio: { data, format: "wav" } })],
});
const stored = (member: string) =>
  `messages[0].content[1].${member}: this gateway does not pass on what is stored at the provider; ` +
  "send the data, or its operator can allow it: 'passes' with \"files\" in the provider's settings";
const noLogprobs = "logprobs: this model states no log probabilities";

describe("requirements of a request", () => {
  const [none, noPasses] = [{ supports: [] }, { passes: [] }];
  const object = { response_format: { type: "json_object" } };
  const noObject = "'response_format' of type 'json_object' is not supported with this model";
  const noPenalty = "presence_penalty: this model does not support presence_penalty";
  const images = { messages: [{ role: "user", content: "hi" }, says(text, image), says(image)] };
  const noImages = "messages[1].content: this model does not take images";
  const forced = { tools, tool_choice: "required" };
  const notForced = "tool_choice: with this model a tool cannot be forced";
  const storedImages = [
    "gs://bucket/a.png",
    " MS://file",
    "file:///a.png",
    "mm_file://1",
    "\x01fi\tle:///a.png",
    "https://generativelanguage.googleapis.com/v1beta/files/a",
    "HTTPS:\\\\me@generativelanguage.googleapis.com:443/v1beta/files/a",
    "\u0001https://generative\tlanguage.googleapis.com/v1beta/files/a",
  ].map((url) => [`leave for ${url}`, { messages: [says(text, imageAt(url))] }] as const);
  const CASES: [name: string, request: object, lacking: TestModel, lack: string][] = [
    ["tools", { tools }, none, "tools: this model does not support tools"],
    ["a forced tool", forced, { tool_choice: "auto" }, notForced],
    ["a JSON object", object, { supports: ["json_schema"] }, `response_format: ${noObject}`],
    ["log probabilities", { logprobs: true }, none, noLogprobs],
    ["a text without reasoning for these", { logprobs: true }, { think_tags: true }, noLogprobs],
    ["audio", clip("AA=="), none, "messages[0].content: this model does not take audio"],
    ["stop", { stop: "END" }, { omit: ["stop"] }, "stop: this model does not support stop"],
    ["a penalty", { presence_penalty: 1 }, { omit: ["presence_penalty"] }, noPenalty],
    ["images, at the first message that has one", images, none, noImages],
    ["a pass for a stored file", file({ file_id: "f" }), noPasses, stored("file.file_id")],
    ["a pass for a file at", file({ file_data: "gs://b/a" }), noPasses, stored("file.file_data")],
    ["a pass for a clip at", clip("oss://a.wav"), noPasses, stored("input_audio.data")],
  ];
  for (const [name, request] of storedImages)
    CASES.push([name, request, noPasses, stored("image_url.url")]);
  for (const [name, request, lacking, lack] of CASES)
    it(`include ${name}`, () => {
      assert.deepEqual(unmet(request, lacking), [lack]);
      assert.deepEqual(unmet(request, {}), []);
    });

  it("do not include what can be omitted or is absent", () => {
    const request = { temperature: 0.5, seed: 1, presence_penalty: 0 };
    assert.deepEqual(requirementsOf(chatOf(request)), []);
    assert.equal(requirementsOf(chatOf(file({ file_data: "AA==", file_id: null }))).length, 1);
    for (const url of [image.image_url.url, " data:image/png;base64,AA==", "HTTP://a/b:c", "a/b:c"])
      assert.equal(requirementsOf(chatOf({ messages: [says(imageAt(url))] })).length, 1, url);
  });
});

it("candidates that each lack something else are all skipped, and the error says what an able one's format rejects", () => {
  const { models } = catalogOf(settingsFor({ blind: { ...ABLE, supports: [] }, able: ABLE }));
  const lack = { path: ["messages", 0, "content"], message: "takes no such image" };
  const ofAble: FindLack = ({ traits }) => (traits.supports.length > 0 ? lack : undefined);
  const request = chatOf({ messages: [says(image)] });
  assert.throws(() => capable([...models.values()], request, [ofAble]), {
    message: "messages[0].content: takes no such image",
  });
});

const fileOf = (file_data: string) => ({ type: "file", file: { file_data } });

/** A format, a part that it does not take, and the client's error. */
const REFUSED = [
  ["anthropic", fileOf("data:text/csv;base64,YQ=="), /files of the types .*, got text\/csv/],
  ["anthropic", fileOf(`data:a/${"b".repeat(1_000)};base64,QQ==`), /got a\/b{1,78}[^b]*$/],
  ["anthropic", fileOf("YQ=="), /takes file_data as in 'data:TYPE;base64,DATA'/],
  ["anthropic", imageAt("data:image/svg+xml,<svg/>"), /takes an address, or data, as in/],
  ["gemini", imageAt("data:image/svg+xml,<svg/>"), /takes an address, or data, as in/],
  ["ollama", imageAt("https://example.org/a.png"), /takes images as data, not by address/],
  ["converse", imageAt("https://example.org/a.png"), /takes data of .*, got the address https/],
  [
    "converse",
    fileOf("data:application/zip;base64,YQ=="),
    /takes data of .*, got application\/zip/,
  ],
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

describe("media that a format does not take", () => {
  for (const [dialect, part, message] of REFUSED)
    it(`${dialect}: ${JSON.stringify(part).slice(0, 80)}`, async (t) => {
      const { provider, gateway } = await site(t, dialect);
      const messages = [{ role: "system", content: "Look." }, says(text, part)];
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

  it("of the Responses API are named by their path in it", async (t) => {
    const { ask } = await site(t, "anthropic");
    const file_data = "data:text/csv;base64,YQ==";
    const content = [{ type: "input_file", filename: "a.csv", file_data }];
    const body = { model: "strict", store: false, input: [{ role: "user", content }] };
    const { error } = await json(await ask("/v1/responses", body));
    assert.deepEqual([error.code, error.param], ["unsupported_value", "input[0].content"]);
  });

  it("pass if the client uses the provider's own format", async (t) => {
    const { provider, ask } = await site(t, "anthropic");
    const source = { type: "url", url: "https://example.org/a.pdf" };
    const messages = [{ role: "user", content: [{ type: "document", source }] }];
    await (await ask("/v1/messages", { model: "strict", max_tokens: 10, messages })).text();
    assert.equal(provider.asked.length, 1, "the provider decides");
  });
});
