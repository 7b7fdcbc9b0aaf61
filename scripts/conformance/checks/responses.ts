// Level `responses`: OpenAI's Responses API at POST /v1/responses, as its clients need it.

import { parseJson } from "../client.ts";
import type { Exchange } from "../exchange.ts";
import {
  count,
  expect,
  expectFields,
  expectSame,
  first,
  isObject,
  isText,
  jsonText,
  list,
  string,
  text,
  type Fields,
  type Json,
} from "../shapes.ts";
import { WORD, type Check, type Tester } from "../suite.ts";
import { lookingAt, scenesOf, type Stated } from "./kit.ts";

const SAY = `Say the word ${WORD} and nothing else.`;
const LONG = "Count from 1 to 200.";

/** What a check works with. */
interface Scene {
  readonly t: Tester;
  post(fields?: Json): Promise<Exchange>;
  /** The whole response, which must be one. */
  whole(fields?: Json): Promise<Json>;
  /** The events of a stream, which must be one. */
  stream(fields?: Json): Promise<Json[]>;
}

function sceneOf(t: Tester): Scene {
  const bodyOf = (fields?: Json) => JSON.stringify({ model: t.model, input: SAY, ...fields });
  const over = { path: "/v1/responses" };
  return {
    t,
    post: (fields) => t.ask(bodyOf(fields), over),
    async whole(fields) {
      const { json } = await t.answered(bodyOf(fields), over);
      expect(isObject(json), "a JSON object", json);
      return json;
    },
    async stream(fields) {
      const { events, rest } = await t.answered(bodyOf({ ...fields, stream: true }), over);
      expect(rest === "", "a blank line after the last event", rest);
      return events.flatMap(({ json }) => (isObject(json) ? [json] : []));
    },
  };
}

const responses = (entries: Stated<(scene: Scene) => unknown>): Check[] =>
  scenesOf("responses", sceneOf)("OpenAI API reference, Responses", entries);

const itemsOf = (response: unknown): Json[] => list(first(response, "output")).filter(isObject);
const itemOf = (response: unknown, type: string): Json => {
  const item = itemsOf(response).find((each) => each["type"] === type);
  expect(item !== undefined, `an output item of type ${type}`, itemsOf(response));
  return item;
};
/** The texts of all messages. */
const textOf = (response: unknown): string =>
  itemsOf(response)
    .filter(({ type }) => type === "message")
    .flatMap(({ content }) => list(content))
    .map((part) => String(first(part, "text") ?? ""))
    .join("");
const expectWord = (response: unknown): void =>
  expect(textOf(response).includes(WORD), WORD, textOf(response));
const summaryOf = (response: unknown): string =>
  String(first(itemOf(response, "reasoning"), "summary[].text") ?? "");
const lastOf = (events: readonly Json[]): unknown => events.at(-1)?.["response"];
const ofType = (events: readonly Json[], type: string): Json[] =>
  events.filter((event) => event["type"] === `response.${type}`);
const joined = (events: readonly Json[], type: string): string =>
  ofType(events, type)
    .map(({ delta }) => String(delta))
    .join("");

const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const GET_TIME = { type: "function", name: "get_time", parameters, strict: true };
const PATCH = { type: "custom", name: "patch", description: "Takes a text." };
const CLOCKS = { type: "namespace", name: "clocks", description: "Clocks.", tools: [GET_TIME] };
const forced = (...tools: object[]) => ({ tools, tool_choice: "required" });
const asked = { role: "user", content: [{ type: "input_text", text: SAY }] };
const CUT = { input: LONG, max_output_tokens: 16 };
const schema = { type: "json_schema", name: "place", schema: parameters, strict: true };
const GIVEN = { instructions: "Be brief.", max_output_tokens: 4_000, metadata: { a: "b" } };

const replies = responses({
  "reply.object [model]: a whole reply is a completed response of the model that was asked":
    async ({ t, whole }) =>
      expectFields(await whole(), {
        id: /^resp_\w+$/,
        object: "response",
        status: "completed",
        model: t.model,
        created_at: count,
        error: null,
      }),
  ...lookingAt(({ whole }: Scene) => whole(), {
    "reply.message: what the model says is a message of the assistant with output_text": (
      response,
    ) => {
      const message: Fields = { role: "assistant", status: "completed" };
      expectFields(itemOf(response, "message"), { ...message, "content[].type": "output_text" });
      expectWord(response);
    },
    "reply.usage: usage has the tokens of input and output, their sum and their details": ({
      usage,
    }) =>
      expectFields(usage, {
        input_tokens: count,
        output_tokens: count,
        total_tokens: Number(first(usage, "input_tokens")) + Number(first(usage, "output_tokens")),
        "input_tokens_details.cached_tokens": count,
        "output_tokens_details.reasoning_tokens": count,
      }),
  }),
  "reply.repeats [tools]: a response repeats instructions, limit, metadata and tools": async ({
    whole,
  }) =>
    expectFields(await whole({ ...GIVEN, tools: [GET_TIME], tool_choice: "none" }), {
      ...GIVEN,
      "tools[].name": "get_time",
    }),
  async "input.items: input may be items: messages of developer, user and assistant"({ whole }) {
    const developer = { role: "developer", content: "Do as the user says." };
    const content = [{ type: "output_text", text: "Yes?" }];
    const earlier = { type: "message", role: "assistant", content };
    expectWord(
      await whole({ input: [developer, { role: "user", content: "Hi" }, earlier, asked] }),
    );
  },
  "incomplete.whole: a reply that was cut by max_output_tokens is incomplete, and says why":
    async ({ whole }) =>
      expectFields(await whole(CUT), {
        status: "incomplete",
        "incomplete_details.reason": "max_output_tokens",
      }),
  "incomplete.stream: a stream that was cut by max_output_tokens ends incomplete": async ({
    stream,
  }) => expectSame((await stream(CUT)).at(-1)?.["type"], "response.incomplete"),
  async "format.schema [json]: text.format json_schema gives a text that is JSON of that schema"({
    whole,
  }) {
    const said = textOf(await whole({ input: "Name a city.", text: { format: schema } }));
    expectFields({ said: parseJson(said) }, { "said.city": string });
  },
});

const ENDS = ["response.created", "response.in_progress", "response.completed"];
const PARTS = ["content_part.added", "output_text.done", "content_part.done", "output_item.done"];

const streams = responses({
  async "stream.names: each event of a stream has its type also in its line `event:`"({ post }) {
    const { events } = await post({ stream: true });
    const named = events.filter(({ data }) => data !== undefined);
    expect(named.length > 0, "events", events.length);
    for (const { lines, json: event } of named)
      expect(lines.includes(`event: ${first(event, "type")}`), "the same name twice", lines[0]);
  },
  ...lookingAt(({ stream }: Scene) => stream(), {
    "stream.numbers: the events of a stream are numbered from 0 without a gap": (events) => {
      const numbers = events.map((event) => event["sequence_number"]);
      expectSame(numbers, [...numbers.keys()]);
    },
    "stream.order: a stream begins created and in_progress, and ends completed": (events) => {
      const types = events.map(({ type }) => type);
      expectSame([types[0], types[1], types.at(-1)], ENDS);
    },
    "stream.items: each output item begins and ends once, with the same id, in order": (events) => {
      const idsOf = (step: string) =>
        ofType(events, `output_item.${step}`).map(
          ({ output_index, item }) => `${output_index} ${first(item, "id")}`,
        );
      const added = idsOf("added");
      expect(added.length > 0, "an item", "none");
      expectSame(idsOf("done").sort(), added);
      const output = itemsOf(lastOf(events)).map(({ id }, index) => `${index} ${id}`);
      expectSame(output, added);
    },
    "stream.text: the deltas of a stream are the text that its last event has": (events) => {
      expectWord(lastOf(events));
      expectSame(joined(events, "output_text.delta"), textOf(lastOf(events)));
    },
    "stream.parts: a text of a stream is told as complete before its item ends": (events) => {
      const at = PARTS.map((type) =>
        events.findIndex((event) => event["type"] === `response.${type}`),
      );
      const isInOrder = at.every((index, i) => index > (at[i - 1] ?? 0));
      expect(isInOrder, PARTS.join(", "), at);
      expectSame(ofType(events, "output_text.done")[0]!["text"], textOf(lastOf(events)));
    },
    "stream.usage: the last event of a stream has the usage": (events) =>
      expectFields(lastOf(events), { "usage.total_tokens": count }),
  }),
});

/** A call that is forced, with its name and arguments. */
const isCalled =
  (tools: Json, type: string, fields: Fields) =>
  async ({ whole }: Scene): Promise<void> =>
    expectFields(itemOf(await whole(tools), type), fields);
const refused =
  (fields: Json, param: RegExp) =>
  async ({ post }: Scene): Promise<void> =>
    expectFields(await post(fields), { status: 400, "error.param": param });
const search = { type: "file_search", vector_store_ids: ["v"] };

const tools = responses({
  "tools.call [tools]: a call of a function is an item with call_id, name and arguments": isCalled(
    { tools: [GET_TIME], tool_choice: { type: "function", name: "get_time" } },
    "function_call",
    { name: "get_time", call_id: text, arguments: jsonText },
  ),
  async "tools.stream [tools]: the deltas of a call's arguments are what its last event has"({
    stream,
  }) {
    const events = await stream(forced(GET_TIME));
    const whole = itemOf(lastOf(events), "function_call")["arguments"];
    expectSame(joined(events, "function_call_arguments.delta"), whole);
  },
  async "tools.result [tools]: a call and its result go back as input, and the model goes on"({
    whole,
  }) {
    const response = await whole(forced(GET_TIME));
    const { call_id } = itemOf(response, "function_call");
    const result = { type: "function_call_output", call_id, output: "14:05" };
    const input = [asked, ...itemsOf(response), result];
    const second = await whole({ tools: [GET_TIME], input });
    expect(textOf(second) !== "", "a text", second["output"]);
  },
  "tools.custom [tools]: a free-form tool is called with a text": isCalled(
    forced(PATCH),
    "custom_tool_call",
    { name: "patch", input: string },
  ),
  "tools.namespace [tools]: a call of a namespace's function names the namespace": isCalled(
    forced(CLOCKS),
    "function_call",
    { name: "get_time", namespace: "clocks" },
  ),
  "tools.additional [tools]: tools may stand among the items of input": isCalled(
    {
      input: [{ type: "additional_tools", role: "developer", tools: [CLOCKS] }, asked],
      tool_choice: "required",
    },
    "function_call",
    { name: "get_time" },
  ),
  "tools.hosted: a tool that the vendor's service runs does not make a request fail": async ({
    whole,
  }) => expectWord(await whole({ tools: [{ type: "web_search" }] })),
  "tools.forced: a tool_choice that forces a tool of the vendor's service is refused": refused(
    { tools: [search], tool_choice: { type: "file_search" } },
    /^tool_choice/,
  ),
});

const include = ["reasoning.encrypted_content"];
const summarized = ({ reasoningModel: model }: Tester) => ({
  model,
  reasoning: { summary: "auto" },
});
const brief = ({ reasoningModel: model }: Tester) => ({
  model,
  reasoning: { effort: "low" },
  include,
});

const reasoning = responses({
  async "reasoning.summary [reasoning]: reasoning.summary shows what the model thought"({
    t,
    whole,
  }) {
    const response = await whole(summarized(t));
    expect(summaryOf(response) !== "", "a summary", response["output"]);
  },
  async "reasoning.stream [reasoning]: the deltas of a summary are what the last event has"({
    t,
    stream,
  }) {
    const events = await stream(summarized(t));
    const summary = summaryOf(lastOf(events));
    expect(summary !== "", "a summary", lastOf(events));
    expectSame(joined(events, "reasoning_summary_text.delta"), summary);
  },
  "reasoning.hidden [reasoning]: without reasoning.summary no reasoning is shown": async ({
    t,
    whole,
  }) => expectSame(summaryOf(await whole(brief(t))), ""),
  async "reasoning.sealed [reasoning]: sealed reasoning is not readable, and is taken back"({
    t,
    whole,
  }) {
    const request = { ...summarized(t), include };
    const response = await whole(request);
    const sealed = itemOf(response, "reasoning")["encrypted_content"];
    const isSealed = isText(sealed) && !sealed.includes(summaryOf(response));
    expect(isSealed, "a sealed text", sealed);
    await whole({ ...request, input: [asked, ...itemsOf(response), asked] });
  },
  async "reasoning.changed [reasoning]: sealed reasoning that cannot be opened is left out"({
    t,
    whole,
  }) {
    const items = itemsOf(await whole(brief(t))).map((item) => ({
      ...item,
      ...(item["type"] === "reasoning" && {
        encrypted_content: `${String(item["encrypted_content"]).slice(0, -8)}AAAAAAAA`,
      }),
    }));
    await whole({ ...brief(t), input: [asked, ...items, asked] });
  },
});

const output = { type: "function_call_output", call_id: "x", output: "1" };
const refusals = responses({
  "refused.store: store: true is refused where nothing is stored": refused(
    { store: true },
    /^store$/,
  ),
  "refused.previous: previous_response_id is refused where nothing is stored": refused(
    { previous_response_id: "resp_1" },
    /^previous_response_id$/,
  ),
  "refused.reference: a reference to an item is refused where nothing is stored": refused(
    { input: [{ type: "item_reference", id: "msg_1" }, asked] },
    /^input/,
  ),
  "refused.item: an item of an unknown type is refused, and named": refused(
    { input: [asked, { type: "no_such_item" }] },
    /^input(\[1\]|\.1)/,
  ),
  "refused.answer: a result that answers no call is refused": refused(
    { input: [asked, output] },
    /^input/,
  ),
});

export const responsesChecks: readonly Check[] = [
  ...replies,
  ...streams,
  ...tools,
  ...reasoning,
  ...refusals,
];
