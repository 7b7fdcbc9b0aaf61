// Requests of the Messages API with something wrong in them, wherever and whatever it is: each is
// read, or refused at its place, and nothing else happens. The seed is printed; SEED takes another.

import assert from "node:assert/strict";
import { it } from "node:test";
import { ValidationError } from "../../../../src/core/schema/checker.ts";
import { atOnce } from "../../../../src/core/turns.ts";
import { readRequest } from "../../../../src/extensions/apis/messages-input/index.ts";
import { createRandom } from "../../../support/random.ts";

const readJson = (json: unknown) => atOnce(readRequest({ json, large: false }, {}));

const ROUNDS = 20_000;
const SEED = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);

/** A request with something of everything. */
const REQUEST = {
  model: "m",
  max_tokens: 10,
  system: [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }],
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
    {
      role: "user",
      content: [
        { type: "image", source: { type: "base64", media_type: "image/png", data: "x" } },
        {
          type: "document",
          source: { type: "content", content: [{ type: "text", text: "x" }] },
          citations: { enabled: false },
        },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "a", signature: "chat-gateway" },
        { type: "tool_use", id: "t", name: "f", input: { a: [1] } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "t",
          content: [{ type: "text", text: "r" }],
          is_error: true,
        },
      ],
    },
    { role: "system", content: "s" },
  ],
};

/** JSON texts that take the place of any value. */
const VALUES = [
  "null",
  "0",
  "-1",
  "1e400",
  '""',
  '"x"',
  '"__proto__"',
  "true",
  "[]",
  "[null]",
  "[[]]",
  "{}",
  '{"type":"x"}',
  '{"type":null}',
  '{"type":"toString"}',
  '{"role":"constructor"}',
  '[{"type":"text","text":"q"}]',
];

/** Every place in a JSON value: its container, and its name there. */
function placesIn(value: unknown): (readonly [Record<string, unknown>, string])[] {
  if (typeof value !== "object" || value === null) return [];
  const container = value as Record<string, unknown>;
  return Object.keys(container).flatMap((name) => [
    [container, name] as const,
    ...placesIn(container[name]),
  ]);
}

it(`is read or refused, seed ${SEED}`, () => {
  const { random, between, pick } = createRandom(SEED);
  let read = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const request = structuredClone(REQUEST);
    for (let changes = between(1, 3); changes > 0; changes -= 1) {
      const [container, name] = pick(placesIn(request));
      if (random() < 0.3) delete container[name];
      else container[name] = JSON.parse(pick(VALUES));
    }
    try {
      assert.ok(JSON.stringify(readJson(request)).length > 0);
      read += 1;
    } catch (error) {
      if (!(error instanceof ValidationError))
        assert.fail(`${JSON.stringify(request)}: ${String(error)}`);
      assert.ok(error.issues[0]!.path.length > 0, error.message);
    }
  }
  assert.ok(read > 0 && read < ROUNDS, `${read} of ${ROUNDS} were read`);
});
