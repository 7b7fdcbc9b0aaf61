// What a request requires of a model, and what the client reads where no model has it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { requirementsOf } from "../../../../src/extensions/routing/capabilities/requirements.ts";
import { catalogOf, chatOf, settingsFor, type TestModel } from "../../../support/routing.ts";

const tool = { type: "function", function: { name: "get_time" } };
const image = { type: "image_url", image_url: { url: "https://example.org/a.png" } };

/** The paths of the requirements that a model with these settings does not satisfy. */
function unmet(request: object, settings: TestModel): string[] {
  const model = catalogOf(settingsFor({ m: settings })).models.get("m")!;
  return requirementsOf(chatOf(request))
    .filter(({ lackOf }) => lackOf(model) !== undefined)
    .map(({ path }) => path.join("."));
}

describe("requirements of a request", () => {
  const CASES: readonly [
    name: string,
    request: object,
    lacking: TestModel,
    having: TestModel,
    path: string,
  ][] = [
    ["tools", { tools: [tool] }, { supports: [] }, { supports: ["tools"] }, "tools"],
    [
      "a forced tool",
      { tools: [tool], tool_choice: "required" },
      { supports: ["tools"], tool_choice: "auto" },
      { supports: ["tools"], tool_choice: "all" },
      "tool_choice",
    ],
    [
      "a JSON object",
      { response_format: { type: "json_object" } },
      { supports: ["json_schema"] },
      { supports: ["json_object"] },
      "response_format",
    ],
    [
      "log probabilities",
      { logprobs: true },
      { supports: [] },
      { supports: ["logprobs"] },
      "logprobs",
    ],
    [
      "log probabilities of a text without reasoning in it",
      { logprobs: true },
      { supports: ["logprobs"], think_tags: true },
      { supports: ["logprobs"], think_tags: false },
      "logprobs",
    ],
    ["stop", { stop: "END" }, { omit: ["stop"] }, { omit: [] }, "stop"],
    [
      "a penalty",
      { presence_penalty: 1 },
      { omit: ["presence_penalty"] },
      { omit: [] },
      "presence_penalty",
    ],
    [
      "images",
      { messages: [{ role: "user", content: [{ type: "text", text: "what?" }, image] }] },
      { supports: [] },
      { supports: ["images"] },
      "messages.0.content",
    ],
  ];
  for (const [name, request, lacking, having, path] of CASES)
    it(`include ${name}`, () => {
      assert.deepEqual(unmet(request, lacking), [path]);
      assert.deepEqual(unmet(request, having), []);
    });

  it("do not include what can be left out, such as a temperature or a penalty of 0", () => {
    assert.deepEqual(
      requirementsOf(chatOf({ temperature: 0.5, seed: 1, presence_penalty: 0 })),
      [],
    );
  });

  it("name the first message with each kind of media", () => {
    const content = [image];
    const messages = [
      { role: "user", content: "hi" },
      { role: "user", content },
      { role: "user", content },
    ];
    const paths = requirementsOf(chatOf({ messages })).map(({ path }) => path);
    assert.deepEqual(paths, [["messages", 1, "content"]]);
  });

  it("have messages for the client", () => {
    const settings = settingsFor({ m: { supports: [], tool_choice: "auto" } });
    const model = catalogOf(settings).models.get("m")!;
    const messages = requirementsOf(
      chatOf({ tools: [tool], tool_choice: "required", response_format: { type: "json_object" } }),
    ).map(({ lackOf }) => lackOf(model));
    assert.deepEqual(messages, [
      "this model does not support tools",
      "with this model a tool cannot be forced",
      "'response_format' of type 'json_object' is not supported with this model",
    ]);
  });

  it("lets what is stored at a provider pass only where that is allowed", () => {
    const file = (fields: object) => ({
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "x" },
            { type: "file", file: fields },
          ],
        },
      ],
    });
    const stored = requirementsOf(chatOf(file({ file_id: "f" }))).at(-1)!;
    assert.deepEqual(stored.path, ["messages", 0, "content", 1, "file", "file_id"]);
    const withPasses = (passes: string[]) =>
      stored.lackOf({ traits: { passes } } as unknown as Parameters<typeof stored.lackOf>[0]);
    assert.match(withPasses([])!, /does not pass on what is stored at the provider/);
    assert.equal(withPasses(["files"]), undefined);
    const sent = file({ file_data: "AA==", file_id: null });
    assert.equal(requirementsOf(chatOf(sent)).length, 1);
  });
});
