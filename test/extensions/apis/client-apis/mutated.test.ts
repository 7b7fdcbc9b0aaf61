// Requests of the two APIs with something wrong in them, wherever and whatever it is: each is read,
// or refused at its place, and nothing else happens. The seed is printed; SEED takes another.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ValidationError } from "../../../../src/core/schema/checker.ts";
import { runSync } from "../../../../src/core/turns.ts";
import { readRequest as readMessages } from "../../../../src/extensions/apis/messages-input/index.ts";
import { readRequest as readResponses } from "../../../../src/extensions/apis/responses-input/index.ts";
import { LONG } from "../../../support/long.ts";
import { createRandom } from "../../../support/random.ts";

const SEED = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);

const media = { type: "image", source: { type: "base64", media_type: "image/png", data: "x" } };
const words = { type: "text", text: "x" };
const paper = {
  type: "document",
  source: { type: "content", content: [words] },
  citations: { enabled: false },
};
const thought = { type: "thinking", thinking: "a", signature: "chat-gateway" };
const use = { type: "tool_use", id: "t", name: "f", input: { a: [1] } };
const result = { type: "tool_result", tool_use_id: "t", content: [words], is_error: true };

/** Everything that a request of the Messages API may have. */
const MESSAGES = {
  model: "m",
  max_tokens: 10,
  system: [{ ...words, cache_control: { type: "ephemeral" } }],
  thinking: { type: "enabled", budget_tokens: 2_000 },
  tools: [
    { name: "f", input_schema: {} },
    { type: "web_search_1", name: "w" },
  ],
  tool_choice: { type: "tool", name: "f" },
  output_config: { effort: "high", format: { type: "json_schema", schema: {} } },
  context_management: { edits: [{ type: "clear_x" }] },
  metadata: { user_id: "u" },
  stop_sequences: ["a"],
  messages: [
    { role: "user", content: [media, paper] },
    { role: "assistant", content: [thought, use] },
    { role: "user", content: [result] },
    { role: "system", content: "s" },
  ],
};

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

/** Everything that a request of the Responses API may have. */
const RESPONSES = {
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

/** JSON texts that take the place of any value. */
const VALUES = (
  'null 0 -1 1e300 1e400 "" "x" "__proto__" "message" true [] [null] [[]] {} {"type":"x"} ' +
  '{"type":null} {"type":"toString"} {"role":"constructor"} [{"type":"text","text":"q"}]'
).split(" ");

/** Every place in a JSON value: its container, and its name there. */
function placesIn(value: unknown): (readonly [Record<string, unknown>, string])[] {
  if (typeof value !== "object" || value === null) return [];
  const container = value as Record<string, unknown>;
  return Object.keys(container).flatMap((name) => [
    [container, name] as const,
    ...placesIn(container[name]),
  ]);
}

const open = (sealed: string) => (sealed === "ok" ? "thought" : undefined);
const readMessage = (json: unknown) => runSync(readMessages({ json, large: false }, {}));
const readResponse = (json: unknown) => runSync(readResponses({ json, large: false }, open));
const APIS: [name: string, whole: object, read: (json: unknown) => unknown, rounds: number][] = [
  ["Messages", MESSAGES, readMessage, LONG ? 20_000 : 1_000],
  ["Responses", RESPONSES, readResponse, LONG ? 20_000 : 1_000],
];

const { random, between, pick } = createRandom(SEED);

/** A copy with one to three places changed. */
function mutated(whole: object): object {
  const request = structuredClone(whole);
  for (let changes = between(1, 3); changes > 0; changes -= 1) {
    const [container, name] = pick(placesIn(request));
    if (random() < 0.3) delete container[name];
    else container[name] = JSON.parse(pick(VALUES));
  }
  return request;
}

describe("a mutated request", () => {
  it("is read with all of its parts before that", () =>
    assert.equal(readResponse(RESPONSES).chat.messages.length, 9));

  for (const [name, whole, read, rounds] of APIS)
    it(`of the ${name} API is read or refused, seed ${SEED}`, () => {
      read(whole);
      let refused = 0;
      for (let round = 0; round < rounds; round += 1) {
        const request = mutated(whole);
        try {
          assert.ok(JSON.stringify(read(request)).length > 0);
        } catch (error) {
          const json = JSON.stringify(request);
          assert.ok(error instanceof ValidationError, `${json}: ${String(error)}`);
          const [place] = error.issues[0]!.path;
          assert.ok(place !== undefined && place in whole, `${place} in ${json}`);
          refused += 1;
        }
      }
      assert.ok(refused > rounds / 10 && refused < rounds, `${refused} of ${rounds} refused`);
    });
});
