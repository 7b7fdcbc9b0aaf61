// Level `responses`: OpenAI's Responses API at POST /v1/responses, as its clients need it.

import { parseJson } from "../client.ts";
import * as expect from "../expect.ts";
import * as is from "../forms.ts";
import { first, isObject, isText, list, type Fields, type Json } from "../shapes.ts";
import { PLACE, WORD } from "../tester.ts";
import { apiOf, expectNames, ofStream, type ApiKit } from "./kit.ts";

const SAY = `Say the word ${WORD} and nothing else.`;

const checks = apiOf(
  "responses",
  (t, fields) => JSON.stringify({ model: t.model, input: SAY, ...fields }),
  () => ({ path: "/v1/responses" }),
);

const itemsOf = (response: unknown): Json[] => list(first(response, "output")).filter(isObject);
const itemOf = (response: unknown, type: string): Json => {
  const item = itemsOf(response).find((each) => each["type"] === type);
  expect.that(item !== undefined, `an output item of type ${type}`, itemsOf(response));
  return item;
};
/** The text of all messages, joined. */
const textOf = (response: unknown): string =>
  itemsOf(response)
    .filter(({ type }) => type === "message")
    .flatMap(({ content }) => list(content))
    .map((part) => String(first(part, "text") ?? ""))
    .join("");
const expectWord = (response: unknown): void =>
  expect.that(textOf(response).includes(WORD), WORD, textOf(response));
const summaryOf = (response: unknown): string =>
  String(first(itemOf(response, "reasoning"), "summary[].text") ?? "");
const lastOf = (events: readonly Json[]): unknown => events.at(-1)?.["response"];
const ofType = (events: readonly Json[], type: string): Json[] =>
  events.filter((event) => event["type"] === `response.${type}`);
const joined = (events: readonly Json[], type: string): string =>
  ofType(events, type)
    .map(({ delta }) => String(delta))
    .join("");

/** The response must have these fields, or an item of it if a type is named. */
const gives =
  (asked: Json, fields: Fields, item?: string) =>
  async ({ whole }: ApiKit): Promise<void> => {
    const response = await whole(asked);
    expect.fields(item === undefined ? response : itemOf(response, item), fields);
  };
const refused =
  (fields: Json, param: RegExp) =>
  async ({ post }: ApiKit): Promise<void> =>
    expect.fields(await post(fields), { status: 400, "error.param": param });

const GET_TIME = { type: "function", name: "get_time", parameters: PLACE, strict: true };
const PATCH = { type: "custom", name: "patch", description: "Takes a text." };
const CLOCKS = { type: "namespace", name: "clocks", description: "Clocks.", tools: [GET_TIME] };
const forced = (...tools: object[]) => ({ tools, tool_choice: "required" });
const asked = { role: "user", content: [{ type: "input_text", text: SAY }] };
const CUT = { input: "Count from 1 to 200.", max_output_tokens: 16 };
const schema = { type: "json_schema", name: "place", schema: PLACE, strict: true };
const GIVEN = { instructions: "Be brief.", max_output_tokens: 4_000, metadata: { a: "b" } };

const output = { type: "function_call_output", call_id: "x", output: "1" };
const ENDS = ["response.created", "response.in_progress", "response.completed"];
const PARTS = ["content_part.added", "output_text.done", "content_part.done", "output_item.done"];
const include = ["reasoning.encrypted_content"];
const summarized = ({ t }: ApiKit) => ({
  model: t.reasoningModel,
  reasoning: { summary: "auto" },
});
const brief = ({ t }: ApiKit) => ({
  model: t.reasoningModel,
  reasoning: { effort: "low" },
  include,
});

checks("OpenAI API reference, Responses", {
  async "reply.object [model]: a reply is a completed response of the asked model"({ t, whole }) {
    expect.fields(await whole(), {
      id: /^resp_\w+$/,
      object: "response",
      status: "completed",
      model: t.model,
      created_at: is.count,
      error: null,
    });
  },
  async "reply.message: the model says a message of the assistant with output_text"({ whole }) {
    const response = await whole();
    const message = { role: "assistant", status: "completed", "content[].type": "output_text" };
    expect.fields(itemOf(response, "message"), message);
    expectWord(response);
  },
  async "reply.usage: the tokens of input and output, their sum and their details"({ whole }) {
    const { usage } = await whole();
    const [input, output] = ["input_tokens", "output_tokens"].map((name) => first(usage, name));
    expect.fields(usage, {
      input_tokens: is.count,
      output_tokens: is.count,
      total_tokens: Number(input) + Number(output),
      "input_tokens_details.cached_tokens": is.count,
      "output_tokens_details.reasoning_tokens": is.count,
    });
  },
  "reply.repeats [tools]: a response repeats instructions, limit, metadata and tools": gives(
    { ...GIVEN, tools: [GET_TIME], tool_choice: "none" },
    { ...GIVEN, "tools[].name": "get_time" },
  ),
  async "input.items: input may be items: messages of developer, user and assistant"({ whole }) {
    const developer = { role: "developer", content: "Do as the user says." };
    const content = [{ type: "output_text", text: "Yes?" }];
    const earlier = { type: "message", role: "assistant", content };
    const input = [developer, { role: "user", content: "Hi" }, earlier, asked];
    expectWord(await whole({ input }));
  },
  "incomplete.whole: a reply that max_output_tokens cut is incomplete, and says why": gives(CUT, {
    status: "incomplete",
    "incomplete_details.reason": "max_output_tokens",
  }),
  "incomplete.stream: a stream that max_output_tokens cut ends incomplete": async ({ stream }) =>
    expect.same((await stream(CUT)).at(-1)?.["type"], "response.incomplete"),
  async "format.schema [json]: text.format json_schema gives JSON of that schema"({ whole }) {
    const said = textOf(await whole({ input: "Name a city.", text: { format: schema } }));
    expect.fields({ said: parseJson(said) }, { "said.city": is.string });
  },

  "stream.names: each event of a stream has its type also in its line `event:`": async (kit) =>
    expectNames(await kit.post({ stream: true })),
  ...ofStream({
    "stream.numbers: the events of a stream are numbered from 0 without a gap": (events) => {
      const numbers = events.map((event) => event["sequence_number"]);
      expect.same(numbers, [...numbers.keys()]);
    },
    "stream.order: a stream begins created and in_progress, and ends completed": (events) => {
      const types = events.map(({ type }) => type);
      expect.same([types[0], types[1], types.at(-1)], ENDS);
    },
    "stream.items: each output item begins and ends once, with the same id, in order": (events) => {
      const idsOf = (step: string) =>
        ofType(events, `output_item.${step}`).map(
          ({ output_index, item }) => `${output_index} ${first(item, "id")}`,
        );
      const added = idsOf("added");
      expect.that(added.length > 0, "an item", "none");
      expect.same(idsOf("done").sort(), added);
      const output = itemsOf(lastOf(events)).map(({ id }, index) => `${index} ${id}`);
      expect.same(output, added);
    },
    "stream.text: the deltas of a stream are the text that its last event has": (events) => {
      expectWord(lastOf(events));
      expect.same(joined(events, "output_text.delta"), textOf(lastOf(events)));
    },
    "stream.parts: a streamed text is marked as complete before its item ends": (events) => {
      const types = events.map(({ type }) => type);
      const at = PARTS.map((type) => types.indexOf(`response.${type}`));
      const isInOrder = at.every((index, i) => index > (at[i - 1] ?? 0));
      expect.that(isInOrder, PARTS.join(", "), at);
      expect.same(ofType(events, "output_text.done")[0]!["text"], textOf(lastOf(events)));
    },
    "stream.usage: the last event of a stream has the usage": (events) =>
      expect.fields(lastOf(events), { "usage.total_tokens": is.count }),
  }),

  "tools.call [tools]: a call of a function is an item with call_id, name and arguments": gives(
    { tools: [GET_TIME], tool_choice: { type: "function", name: "get_time" } },
    { name: "get_time", call_id: is.text, arguments: is.jsonText },
    "function_call",
  ),
  async "tools.stream [tools]: argument deltas add up to those in the last event"({ stream }) {
    const events = await stream(forced(GET_TIME));
    const whole = itemOf(lastOf(events), "function_call")["arguments"];
    expect.same(joined(events, "function_call_arguments.delta"), whole);
  },
  async "tools.result [tools]: a call and its result go back, and the model continues"({ whole }) {
    const response = await whole(forced(GET_TIME));
    const { call_id } = itemOf(response, "function_call");
    const result = { type: "function_call_output", call_id, output: "14:05" };
    const input = [asked, ...itemsOf(response), result];
    const second = await whole({ tools: [GET_TIME], input });
    expect.that(textOf(second) !== "", "a text", second["output"]);
  },
  "tools.custom [tools]: a free-form tool is called with a text": gives(
    forced(PATCH),
    { name: "patch", input: is.string },
    "custom_tool_call",
  ),
  "tools.namespace [tools]: a call of a namespace's function names the namespace": gives(
    forced(CLOCKS),
    { name: "get_time", namespace: "clocks" },
    "function_call",
  ),
  "tools.additional [tools]: tools may stand among the items of input": gives(
    {
      input: [{ type: "additional_tools", role: "developer", tools: [CLOCKS] }, asked],
      tool_choice: "required",
    },
    { name: "get_time" },
    "function_call",
  ),
  "tools.hosted: a tool of the vendor's service does not make a request fail": async ({ whole }) =>
    expectWord(await whole({ tools: [{ type: "web_search" }] })),
  "tools.forced: a tool_choice that forces a tool of the vendor's service is rejected": refused(
    {
      tools: [{ type: "file_search", vector_store_ids: ["v"] }],
      tool_choice: { type: "file_search" },
    },
    /^tool_choice/,
  ),

  async "reasoning.summary [reasoning]: reasoning.summary shows what the model thought"(kit) {
    const response = await kit.whole(summarized(kit));
    expect.that(summaryOf(response) !== "", "a summary", response["output"]);
  },
  async "reasoning.stream [reasoning]: the deltas of a summary add up to the last event's"(kit) {
    const events = await kit.stream(summarized(kit));
    const summary = summaryOf(lastOf(events));
    expect.that(summary !== "", "a summary", lastOf(events));
    expect.same(joined(events, "reasoning_summary_text.delta"), summary);
  },
  "reasoning.hidden [reasoning]: without reasoning.summary none is shown": async (kit) =>
    expect.same(summaryOf(await kit.whole(brief(kit))), ""),
  async "reasoning.sealed [reasoning]: sealed reasoning is not readable, and is taken back"(kit) {
    const request = { ...summarized(kit), include };
    const response = await kit.whole(request);
    const sealed = itemOf(response, "reasoning")["encrypted_content"];
    const isSealed = isText(sealed) && !sealed.includes(summaryOf(response));
    expect.that(isSealed, "a sealed text", sealed);
    await kit.whole({ ...request, input: [asked, ...itemsOf(response), asked] });
  },
  async "reasoning.changed [reasoning]: sealed reasoning that does not open is left out"(kit) {
    const request = brief(kit);
    const items = itemsOf(await kit.whole(request)).map((item) => {
      const sealed = String(item["encrypted_content"]).slice(0, -8);
      const isSealed = item["type"] === "reasoning";
      return isSealed ? { ...item, encrypted_content: `${sealed}AAAAAAAA` } : item;
    });
    await kit.whole({ ...request, input: [asked, ...items, asked] });
  },

  "refused.store: store: true is rejected": refused({ store: true }, /^store$/),
  "refused.previous: previous_response_id is rejected, because nothing is stored": refused(
    { previous_response_id: "resp_1" },
    /^previous_response_id$/,
  ),
  "refused.reference: a reference to an item is rejected, because nothing is stored": refused(
    { input: [{ type: "item_reference", id: "msg_1" }, asked] },
    /^input/,
  ),
  "refused.item: an item of an unknown type is rejected and named": refused(
    { input: [asked, { type: "no_such_item" }] },
    /^input(\[1\]|\.1)/,
  ),
  "refused.answer: a result without its call is rejected": refused(
    { input: [asked, output] },
    /^input/,
  ),
});
