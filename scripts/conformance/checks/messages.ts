// Level `messages`: Anthropic's Messages API, as its clients count on it. Every request carries the
// id of its check as X-Request-Id: a gateway's log tells them apart. The requests are not among
// those that the rules about every answer of chat completions look at.

import { parseEvents, parseJson, type Answer } from "../client.ts";
import { find, first, isCount, isObject, isText, list, type Field } from "../shapes.ts";
import { expect, question, TOOLS, WORD, type Check, type Need, type Tester } from "../suite.ts";

const PATH = "/v1/messages";
/** Waits for the limit of the suite's own key, at the most. */
const MAX_WAITS = 10;

type Json = Readonly<Record<string, unknown>>;

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly fields?: Json;
  /** A header that is undefined is left out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

interface Reply extends Answer {
  readonly json: unknown;
}

/** What a check of this level works with. */
interface Scene {
  readonly t: Tester;
  /** A short question to the model, with these fields. */
  send(sent?: Sent): Promise<Reply>;
  /** The same, which must be answered with 200. */
  answered(fields?: Json): Promise<Reply>;
  /** The events of a stream that must be answered with 200. */
  streamed(fields?: Json): Promise<readonly Json[]>;
}

const usual = (t: Tester): Json => ({
  model: t.model,
  max_tokens: 1_000,
  messages: question(`Say the word ${WORD} and nothing else.`),
});

function sceneOf(t: Tester, id: string): Scene {
  const { options, client } = t;

  async function send({ method = "POST", path = PATH, fields, headers }: Sent = {}) {
    const given = {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      "x-api-key": options.key,
      "x-request-id": id,
      ...headers,
    };
    const kept = Object.entries(given).filter(([, value]) => value !== undefined);
    const body = method === "GET" ? undefined : JSON.stringify({ ...usual(t), ...fields });
    const request = {
      method,
      path,
      headers: Object.fromEntries(kept) as Record<string, string>,
      body,
    };
    for (let waits = 0; ; waits += 1) {
      const answer = await client.send(request);
      const seconds = Number(answer.headers["retry-after"]);
      const mayWait = answer.status === 429 && seconds >= 1 && seconds <= 60;
      if (!mayWait || !options.pause || waits === MAX_WAITS)
        return { ...answer, json: parseJson(answer.text) };
      await options.pause(seconds);
    }
  }

  async function answered(fields: Json = {}): Promise<Reply> {
    const reply = await send({ fields });
    expect(reply.status === 200, "status 200", `${reply.status} ${reply.text}`);
    return reply;
  }

  return {
    t,
    send,
    answered,
    async streamed(fields = {}) {
      const { text } = await answered({ ...fields, stream: true });
      const { events } = parseEvents(text ?? "");
      return events.map(({ lines, json }) => {
        expect(isObject(json), "data that is a JSON object", lines.join(" "));
        return {
          ...json,
          "": lines
            .find((line) => line.startsWith("event:"))
            ?.slice(6)
            .trim(),
        };
      });
    },
  };
}

interface Stated {
  readonly id: string;
  /** The section of wire.md that has the form. */
  readonly section: string;
  readonly title: string;
  readonly needs?: readonly Need[];
  readonly run: (scene: Scene) => Promise<void>;
}

const check = ({ id, section, title, needs = [], run }: Stated): Check => ({
  id: `messages.${id}`,
  source: `wire.md "${section}"`,
  title,
  needs: ["messages", ...needs],
  run: (t) => run(sceneOf(t, `messages.${id}`)),
});

const exactly = (text: string) =>
  [JSON.stringify(text), (value: unknown) => value === text] as const;

const REPLY: readonly Field[] = [
  ["id", "a non-empty string", isText],
  ["type", ...exactly("message")],
  ["role", ...exactly("assistant")],
  ["model", "a non-empty string", isText],
  ["content", "an array of at least one block", (value) => list(value).length > 0],
  ["content[].type", ...exactly("text")],
  ["content[].text", "a non-empty string", isText],
  ["stop_reason", ...exactly("end_turn")],
  ["stop_sequence", "null", (value) => value === null],
  ["usage.input_tokens", "a count", isCount],
  ["usage.output_tokens", "a count", isCount],
];

const replyFields = REPLY.map(([path, expected, holds]) =>
  check({
    id: `reply.${path.replaceAll("[]", "")}`,
    section: "Anthropic replies",
    title: `${path} of a whole reply is ${expected}`,
    async run({ answered }) {
      const { json } = await answered();
      for (const found of find(json, path))
        expect(holds(found.value, found), `${path} to be ${expected}`, found.value);
    },
  }),
);

const typesOf = (events: readonly Json[]): unknown[] => events.map(({ type }) => type);

/** The events that are no pings. */
const told = (events: readonly Json[]): readonly Json[] =>
  events.filter(({ type }) => type !== "ping");

/** The blocks of a stream, each with what its deltas add up to. */
function blocksOf(events: readonly Json[]): Json[] {
  const blocks: Record<string, unknown>[] = [];
  for (const { type, content_block, delta } of told(events)) {
    if (type === "content_block_start" && isObject(content_block))
      blocks.push({ ...content_block });
    if (type !== "content_block_delta" || !isObject(delta)) continue;
    const block = blocks.at(-1) ?? {};
    for (const name of ["text", "thinking", "signature", "partial_json"])
      if (typeof delta[name] === "string") block[name] = `${block[name] ?? ""}${delta[name]}`;
  }
  return blocks;
}

/** Throws if blocks overlap, have no end, or are numbered otherwise than from 0. */
function expectOrder(events: readonly Json[]): void {
  const [start, ...rest] = told(events);
  expect(start?.["type"] === "message_start", "message_start first", start);
  expect(rest.at(-1)?.["type"] === "message_stop", "message_stop last", rest.at(-1));
  expect(rest.at(-2)?.["type"] === "message_delta", "message_delta before it", rest.at(-2));
  let [open, next] = [-1, 0];
  for (const { type, index } of rest.slice(0, -2)) {
    const isStart = type === "content_block_start";
    const expected = isStart ? next : open;
    expect(open === -1 ? isStart : !isStart, "one block after the other", typesOf(events));
    expect(index === expected, `the index ${expected} at ${type}`, index);
    if (isStart) next += 1;
    if (isStart) open = expected;
    if (type === "content_block_stop") open = -1;
  }
  expect(open === -1, "an end of each block", typesOf(events));
}

const stream: Check[] = [
  check({
    id: "stream.names",
    section: "Anthropic replies",
    title: "each event has the type of its data as its name",
    async run({ streamed }) {
      for (const { type, "": name } of await streamed())
        expect(name === type, `the name ${type}`, name);
    },
  }),
  check({
    id: "stream.order",
    section: "Anthropic replies",
    title:
      "the message begins, each block begins, grows and ends before the next, the message ends",
    run: async ({ streamed }) => expectOrder(await streamed()),
  }),
  check({
    id: "stream.text",
    section: "Anthropic replies",
    title: "the deltas of a stream add up to the text of the whole reply",
    async run({ streamed, answered }) {
      const whole = first((await answered({ temperature: 0 })).json, "content[].text");
      const [block] = blocksOf(await streamed({ temperature: 0 }));
      expect(block?.["text"] === whole, JSON.stringify(whole), block?.["text"]);
    },
  }),
  check({
    id: "stream.start",
    section: "Anthropic replies",
    title: "message_start has an empty message with the tokens of the prompt",
    async run({ streamed }) {
      const message = first((await streamed())[0], "message");
      expect(list(first(message, "content")).length === 0, "no content", message);
      expect(first(message, "stop_reason") === null, "no stop_reason", message);
      const tokens = first(message, "usage.input_tokens");
      expect(isCount(tokens), "usage.input_tokens to be a count", tokens);
    },
  }),
  check({
    id: "stream.end",
    section: "Anthropic replies",
    title: "message_delta says why the message ends, and the tokens of the reply",
    async run({ streamed }) {
      const delta = (await streamed()).find(({ type }) => type === "message_delta");
      const reason = first(delta, "delta.stop_reason");
      expect(reason === "end_turn", '"end_turn"', reason);
      const tokens = first(delta, "usage.output_tokens");
      expect(isCount(tokens) && tokens > 0, "usage.output_tokens above 0", tokens);
    },
  }),
];

const tools = TOOLS.tools.map(({ function: { name, parameters } }) => ({
  name,
  input_schema: parameters,
}));
const MAIL = { tools, tool_choice: { type: "tool", name: "send_mail" } };
const called = { type: "tool_use", id: "toolu_0123456789", name: "get_time", input: { city: "x" } };
const result = { type: "tool_result", tool_use_id: called.id, content: "14:05" };

function expectCall(block: unknown): void {
  expect(first(block, "type") === "tool_use", "a tool_use block", block);
  expect(isText(first(block, "id")), "an id", block);
  expect(first(block, "name") === "send_mail", "the tool that was chosen", block);
}

const toolChecks: Check[] = [
  check({
    id: "tools.whole",
    section: "Anthropic replies",
    title: "a call is a block with its arguments as an object, and ends the turn",
    needs: ["tools"],
    async run({ answered }) {
      const { json } = await answered(MAIL);
      const block = list(first(json, "content")).at(-1);
      expectCall(block);
      expect(isObject(first(block, "input")), "input to be an object", block);
      const reason = first(json, "stop_reason");
      expect(reason === "tool_use", '"tool_use"', reason);
    },
  }),
  check({
    id: "tools.stream",
    section: "Anthropic replies",
    title: "the arguments of a call stream as the text of a JSON object",
    needs: ["tools"],
    async run({ streamed }) {
      const block = blocksOf(await streamed(MAIL)).at(-1);
      expectCall(block);
      const json = first(block, "partial_json");
      expect(isObject(parseJson(String(json))), "the text of an object", json);
    },
  }),
  check({
    id: "tools.loop",
    section: "Anthropic requests",
    title: "the result of a call is taken, with marks for the cache",
    needs: ["tools"],
    async run({ answered }) {
      const cache_control = { type: "ephemeral" };
      const messages = [
        ...question("Hi."),
        { role: "assistant", content: [called] },
        { role: "user", content: [{ ...result, cache_control }] },
      ];
      await answered({ tools, messages });
    },
  }),
];

/** [id, title, fields]: each is answered with 200. */
const ACCEPTED: readonly (readonly [id: string, title: string, fields: Json])[] = [
  [
    "system.blocks",
    "the system's text may be blocks with marks for the cache",
    { system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }] },
  ],
  [
    "system.message",
    "an instruction may stand among the messages",
    { messages: [...question("Hi."), { role: "system", content: "Be brief." }] },
  ],
  [
    "content.blocks",
    "content may be blocks",
    { messages: [{ role: "user", content: [{ type: "text", text: "Hi." }] }] },
  ],
  ["thinking.disabled", "thinking may be disabled", { thinking: { type: "disabled" } }],
  [
    "unknown-field",
    "what coding agents send beside the message is taken",
    {
      metadata: { user_id: "u" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    },
  ],
];
const accepted = ACCEPTED.map(([id, title, fields]) =>
  check({
    id,
    section: "Anthropic requests",
    title,
    run: async ({ answered }) => {
      await answered(fields);
    },
  }),
);

const thinking = check({
  id: "thinking.block",
  section: "Anthropic replies",
  title: "thoughts are a block with a signature before the text",
  needs: ["reasoning"],
  async run({ t, answered }) {
    const { json } = await answered({
      model: t.reasoningModel,
      max_tokens: 3_000,
      thinking: { type: "enabled", budget_tokens: 1_024 },
    });
    const [block] = list(first(json, "content"));
    expect(first(block, "type") === "thinking", "a thinking block first", block);
    expect(isText(first(block, "thinking")), "thoughts", block);
    expect(typeof first(block, "signature") === "string", "a signature", block);
  },
});

const authorization = check({
  id: "key.bearer",
  section: "Anthropic requests",
  title: "the key may stand in Authorization too",
  async run({ t, send }) {
    const headers = { "x-api-key": undefined, authorization: `Bearer ${t.options.key}` };
    const { status } = await send({ headers });
    expect(status === 200, "status 200", status);
  },
});

/** [id, what is wrong, status, type, what is sent]. */
const ERRORS: readonly (readonly [string, string, number, string, Sent])[] = [
  [
    "invalid",
    "a body without messages",
    400,
    "invalid_request_error",
    { fields: { messages: [] } },
  ],
  [
    "max_tokens",
    "a body without max_tokens",
    400,
    "invalid_request_error",
    { fields: { max_tokens: null } },
  ],
  [
    "key",
    "a wrong key",
    401,
    "authentication_error",
    { headers: { "x-api-key": "sk-no-such-key-0123456789" } },
  ],
  ["model", "an unknown model", 404, "not_found_error", { fields: { model: "no-such-model" } }],
];
const errors = ERRORS.map(([id, what, status, type, sent]) =>
  check({
    id: `error.${id}`,
    section: "Anthropic errors",
    title: `${what} is refused with ${status} and ${type}, in the vendor's form`,
    async run({ send }) {
      const reply = await send(sent);
      expect(reply.status === status, `status ${status}`, reply.status);
      const { json } = reply;
      expect(first(json, "type") === "error", '"error" as type', json);
      expect(first(json, "error.type") === type, `${type} as error.type`, json);
      expect(isText(first(json, "error.message")), "a message", json);
      const id = first(json, "request_id");
      expect(id === reply.headers["x-request-id"], "the id of the header as request_id", id);
    },
  }),
);

const around: Check[] = [
  check({
    id: "count",
    section: "Anthropic requests",
    title: "count_tokens gives the tokens of a prompt",
    async run({ send }) {
      const { status, json } = await send({
        path: `${PATH}/count_tokens`,
        fields: { max_tokens: undefined },
      });
      expect(status === 200, "status 200", status);
      const tokens = first(json, "input_tokens");
      expect(isCount(tokens) && tokens > 0, "input_tokens above 0", tokens);
    },
  }),
  check({
    id: "models",
    section: "Anthropic requests",
    title: "the list of models has the vendor's form",
    async run({ send }) {
      const { status, json } = await send({ method: "GET", path: "/v1/models" });
      expect(status === 200, "status 200", status);
      const models = list(first(json, "data"));
      expect(models.length > 0, "at least one model", json);
      for (const model of models) {
        expect(first(model, "type") === "model", '"model" as type', model);
        expect(isText(first(model, "display_name")), "a display_name", model);
      }
      expect(first(json, "has_more") === false, "has_more to be false", json);
      expect(first(json, "last_id") === first(models.at(-1), "id"), "the last id", json);
    },
  }),
];

export const messagesChecks: readonly Check[] = [
  ...replyFields,
  ...stream,
  ...toolChecks,
  ...accepted,
  thinking,
  authorization,
  ...errors,
  ...around,
];
