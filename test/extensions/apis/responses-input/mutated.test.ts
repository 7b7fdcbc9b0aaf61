// Requests with one random thing wrong are read or refused with a place, and nothing else happens.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ValidationError } from "../../../../src/core/schema/checker.ts";
import { atOnce } from "../../../../src/core/turns.ts";
import { readRequest } from "../../../../src/extensions/apis/responses-input/index.ts";
import { LONG } from "../../../support/long.ts";
import { createRandom } from "../../../support/random.ts";

const TRIES = LONG ? 20_000 : 1_000;
const get_time = {
  type: "function",
  name: "get_time",
  parameters: { type: "object" },
  strict: true,
};
const patch = {
  type: "custom",
  name: "patch",
  format: { type: "grammar", syntax: "lark", definition: "x" },
};
const namespace = {
  type: "namespace",
  name: "fs",
  description: "Files.",
  tools: [get_time, patch],
};
const search = { type: "tool_search", execution: "client", parameters: { type: "object" } };
const text = { type: "input_text", text: "hi" };
const image = { type: "input_image", image_url: "https://example.org/a.png", detail: "high" };
const file = { type: "input_file", file_data: "data:text/plain;base64,aGk=", filename: "a.txt" };

/** Everything that a request may have. */
const REQUEST = {
  model: "m",
  instructions: "Be brief.",
  input: [
    { type: "additional_tools", role: "developer", tools: [namespace] },
    { type: "message", role: "developer", content: [text] },
    { role: "user", content: [text, image, file] },
    { type: "reasoning", summary: [{ type: "summary_text", text: "S" }], encrypted_content: "ok" },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "A" }] },
    { type: "function_call", call_id: "1", name: "get_time", namespace: "fs", arguments: "{}" },
    { type: "custom_tool_call", call_id: "2", name: "patch", input: "text" },
    { type: "tool_search_call", call_id: "3", execution: "client", arguments: { query: "x" } },
    { type: "function_call_output", call_id: "1", output: [text, image] },
    { type: "custom_tool_call_output", call_id: "2", output: "done" },
    { type: "tool_search_output", call_id: "3", execution: "client", tools: [namespace] },
    {
      type: "agent_message",
      author: "/root",
      content: [{ type: "encrypted_content", encrypted_content: "go" }],
    },
  ],
  tools: [get_time, patch, namespace, search, { type: "web_search" }],
  tool_choice: {
    type: "allowed_tools",
    mode: "auto",
    tools: [{ type: "function", name: "get_time" }],
  },
  reasoning: { effort: "low", summary: "auto" },
  text: {
    format: { type: "json_schema", name: "a", schema: { type: "object" }, strict: true },
    verbosity: "low",
  },
  include: ["reasoning.encrypted_content"],
  metadata: { a: "b" },
  max_output_tokens: 100,
  temperature: 1,
  stream: true,
  store: false,
};

const VALUES = [
  null,
  true,
  0,
  -1,
  1e300,
  "",
  "x",
  "__proto__",
  "message",
  [],
  [null],
  {},
  { type: "x" },
];

/** All members below a value, each with what it is a member of. */
function membersOf(value: unknown): [Record<string, unknown>, string][] {
  if (typeof value !== "object" || value === null) return [];
  const owner = value as Record<string, unknown>;
  return Object.keys(owner).flatMap(
    (key) => [[owner, key], ...membersOf(owner[key])] as [Record<string, unknown>, string][],
  );
}

describe("a mutated request of the Responses API", () => {
  it("is read, or refused with a place in itself", (t) => {
    const seed = Date.now() % 1_000_000;
    t.diagnostic(`seed ${seed}`);
    const { pick, between } = createRandom(seed);
    const open = (sealed: string) => (sealed === "ok" ? "thought" : undefined);
    const read = (json: unknown) => atOnce(readRequest({ json, large: false }, open));
    assert.equal(read(REQUEST).chat.messages.length, 9);
    let refused = 0;
    for (let index = 0; index < TRIES; index += 1) {
      const request = structuredClone(REQUEST);
      for (let changes = between(1, 2); changes > 0; changes -= 1) {
        const [owner, key] = pick(membersOf(request));
        if (between(0, 3) === 0) delete owner[key];
        else owner[key] = structuredClone(pick(VALUES));
      }
      try {
        read(request);
      } catch (error) {
        assert.ok(error instanceof ValidationError, `${String(error)}: ${JSON.stringify(request)}`);
        const [name = "model"] = error.issues[0]!.path;
        assert.ok(name in REQUEST, `${name} in ${JSON.stringify(request)}`);
        refused += 1;
      }
    }
    assert.ok(refused > TRIES / 10 && refused < TRIES, `${refused} of ${TRIES} refused`);
  });
});
