// Level `responses`: OpenAI's Responses API at POST /v1/responses, as its clients need it. Each
// check sends its own id as the request's, so that a fault can be about one check alone.

import { parseJson } from "../client.ts";
import { first, isCount, isObject } from "../shapes.ts";
import { expect, WORD, type Check, type Exchange, type Tester } from "../suite.ts";
import { kit } from "./kit.ts";

const { check } = kit("responses");
const SOURCE = "OpenAI API reference, Responses";
const RESPONSES = "/v1/responses";
const SAY = `Say the word ${WORD} and nothing else.`;
const LONG = "Count from 1 to 200.";

type Fields = Readonly<Record<string, unknown>>;
type Item = Readonly<Record<string, unknown>>;

/** What a check works with: its requests, which have its id. */
interface Asker {
  readonly t: Tester;
  post(fields?: Fields): Promise<Exchange>;
  /** The whole response, which must be one. */
  whole(fields?: Fields): Promise<Item>;
  /** The events of a stream, which must be one. */
  stream(fields?: Fields): Promise<Item[]>;
  /** The refusal as the client's fault, with this `param`. */
  refused(fields: Fields, param?: RegExp): Promise<void>;
}

interface Stated extends Pick<Check, "id" | "title" | "needs"> {
  run(asker: Asker): Promise<void>;
}

const responses = ({ id, title, needs = [], run }: Stated): Check =>
  check({
    id,
    title,
    needs: ["responses", ...needs],
    source: SOURCE,
    run: (t) => run(askerFor(t, `responses.${id}`)),
  });

function askerFor(t: Tester, id: string): Asker {
  const post = (fields: Fields = {}) =>
    t.ask(JSON.stringify({ model: t.model, input: SAY, ...fields }), {
      path: RESPONSES,
      headers: { "x-request-id": id },
    });
  const answered = async (fields?: Fields): Promise<Exchange> => {
    const exchange = await post(fields);
    const { status, text } = exchange.answer;
    expect(status === 200, "status 200", `${status} ${text}`);
    return exchange;
  };
  return {
    t,
    post,
    async whole(fields) {
      const { json } = await answered(fields);
      expect(isObject(json), "a JSON object", json);
      return json;
    },
    async stream(fields) {
      const { events, rest } = await answered({ ...fields, stream: true });
      expect(rest === "", "a blank line after the last event", rest);
      return events.flatMap(({ json }) => (isObject(json) ? [json] : []));
    },
    async refused(fields, param = /./) {
      const { answer, json } = await post(fields);
      expect(answer.status === 400, "status 400", `${answer.status} ${answer.text}`);
      const named = String(first(json, "error.param"));
      expect(param.test(named), `a param like ${param}`, named);
    },
  };
}

const itemsOf = (response: unknown): Item[] => {
  const output = isObject(response) ? response["output"] : undefined;
  return Array.isArray(output) ? output.filter(isObject) : [];
};
const itemOf = (response: unknown, type: string): Item => {
  const item = itemsOf(response).find((each) => each["type"] === type);
  expect(item !== undefined, `an output item of type ${type}`, itemsOf(response));
  return item;
};
/** The texts of all messages. */
const textOf = (response: unknown): string =>
  itemsOf(response)
    .filter(({ type }) => type === "message")
    .flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .map((part) => String(first(part, "text") ?? ""))
    .join("");
const summaryOf = (response: unknown): string =>
  String(first(itemOf(response, "reasoning"), "summary[].text") ?? "");
const last = (events: readonly Item[]): Item => {
  const event = events.at(-1);
  expect(event !== undefined, "at least one event", "none");
  return event;
};
const responseOf = (event: Item): unknown => event["response"];
const ofType = (events: readonly Item[], type: string): Item[] =>
  events.filter((event) => event["type"] === type);
const joined = (events: readonly Item[]): string =>
  events.map(({ delta }) => String(delta)).join("");

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
const SEALED = ["reasoning.encrypted_content"];

const replies: Check[] = [
  responses({
    id: "reply.object",
    title: "a whole reply is a completed response of the model that was asked",
    needs: ["model"],
    async run({ t, whole }) {
      const { id, object, status, model, created_at, error } = await whole();
      expect(/^resp_\w+$/.test(String(id)), "an id that begins with resp_", id);
      expect(object === "response" && status === "completed", "a completed response", [
        object,
        status,
      ]);
      expect(model === t.model, t.model, model);
      expect(isCount(created_at), "a time in created_at", created_at);
      expect(error === null, "error null", error);
    },
  }),
  responses({
    id: "reply.message",
    title: "what the model says is a message of the assistant with output_text",
    async run({ whole }) {
      const response = await whole();
      const { role, status } = itemOf(response, "message");
      expect(role === "assistant" && status === "completed", "the assistant's", [role, status]);
      expect(first(response, "output[].content[].type") === "output_text", "output_text", response);
      expect(textOf(response).includes(WORD), WORD, textOf(response));
    },
  }),
  responses({
    id: "reply.usage",
    title: "usage has the tokens of input and output, their sum and their details",
    async run({ whole }) {
      const { usage } = await whole();
      const counts = ["input_tokens", "output_tokens", "total_tokens"].map((name) =>
        first(usage, name),
      );
      expect(counts.every(isCount), "three counts", usage);
      expect(Number(counts[0]) + Number(counts[1]) === counts[2], "their sum", counts);
      const details = [
        "input_tokens_details.cached_tokens",
        "output_tokens_details.reasoning_tokens",
      ];
      expect(
        details.every((path) => isCount(first(usage, path))),
        "their details",
        usage,
      );
    },
  }),
  responses({
    id: "reply.repeats",
    title: "a response repeats instructions, limit, metadata and tools of its request",
    needs: ["tools"],
    async run({ whole }) {
      const given = { instructions: "Be brief.", max_output_tokens: 4_000, metadata: { a: "b" } };
      const response = await whole({ ...given, tools: [GET_TIME], tool_choice: "none" });
      for (const [name, value] of Object.entries(given))
        expect(
          JSON.stringify(response[name]) === JSON.stringify(value),
          `${name} as given`,
          response[name],
        );
      expect(
        first(response, "tools[].name") === "get_time",
        "the tools as given",
        response["tools"],
      );
    },
  }),
  responses({
    id: "input.items",
    title: "input may be items: messages of developer, user and assistant",
    async run({ whole }) {
      const earlier = {
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "Yes?" }],
      };
      const developer = { role: "developer", content: "Do as the user says." };
      const response = await whole({
        input: [developer, { role: "user", content: "Hi" }, earlier, asked],
      });
      expect(textOf(response).includes(WORD), WORD, textOf(response));
    },
  }),
  responses({
    id: "incomplete.whole",
    title: "a reply that was cut by max_output_tokens is incomplete, and says why",
    async run({ whole }) {
      const response = await whole({ input: LONG, max_output_tokens: 16 });
      const why = [response["status"], first(response, "incomplete_details.reason")];
      expect(why.join() === "incomplete,max_output_tokens", "incomplete by max_output_tokens", why);
    },
  }),
  responses({
    id: "incomplete.stream",
    title: "a stream that was cut by max_output_tokens ends with response.incomplete",
    async run({ stream }) {
      const { type } = last(await stream({ input: LONG, max_output_tokens: 16 }));
      expect(type === "response.incomplete", "response.incomplete", type);
    },
  }),
  responses({
    id: "format.schema",
    title: "text.format json_schema gives a text that is JSON of that schema",
    needs: ["json"],
    async run({ whole }) {
      const format = { type: "json_schema", name: "place", schema: parameters, strict: true };
      const text = textOf(await whole({ input: "Name a city.", text: { format } }));
      expect(typeof first(parseJson(text), "city") === "string", "JSON with a city", text);
    },
  }),
];

const streams: Check[] = [
  responses({
    id: "stream.names",
    title: "each event of a stream has its type also in its line `event:`",
    async run({ post }) {
      const { events } = await post({ stream: true });
      expect(
        events.some(({ json }) => isObject(json)),
        "events",
        events.length,
      );
      for (const { lines, json } of events.filter(({ data }) => data !== undefined))
        expect(lines.includes(`event: ${first(json, "type")}`), "the same name twice", lines[0]);
    },
  }),
  responses({
    id: "stream.numbers",
    title: "the events of a stream are numbered from 0 without a gap",
    async run({ stream }) {
      const numbers = (await stream()).map((event) => event["sequence_number"]);
      expect(
        numbers.every((number, index) => number === index),
        "0, 1, 2 and so on",
        numbers,
      );
    },
  }),
  responses({
    id: "stream.order",
    title: "a stream begins with response.created and response.in_progress, and ends completed",
    async run({ stream }) {
      const types = (await stream()).map(({ type }) => String(type));
      const ends = [types[0], types[1], types.at(-1)].join(" ");
      const due = "response.created response.in_progress response.completed";
      expect(ends === due, due, ends);
    },
  }),
  responses({
    id: "stream.items",
    title: "each output item begins and ends once, with the same id, in the order of its index",
    async run({ stream }) {
      const events = await stream();
      const idsOf = (step: string) =>
        ofType(events, `response.output_item.${step}`).map(
          ({ output_index, item }) => `${output_index} ${first(item, "id")}`,
        );
      const [added, done] = [idsOf("added"), idsOf("done")];
      expect(added.length > 0, "an item", "none");
      expect(added.join() === done.sort().join(), "the same items", [added, done]);
      const output = itemsOf(responseOf(last(events))).map(({ id }, index) => `${index} ${id}`);
      expect(added.join() === output.join(), "the items of the last event", [added, output]);
    },
  }),
  responses({
    id: "stream.text",
    title: "the deltas of a stream are the text that its last event has",
    async run({ stream }) {
      const events = await stream();
      const deltas = joined(ofType(events, "response.output_text.delta"));
      const whole = textOf(responseOf(last(events)));
      expect(deltas === whole && whole.includes(WORD), whole, deltas);
    },
  }),
  responses({
    id: "stream.parts",
    title: "a text of a stream is told as complete before its item ends",
    async run({ stream }) {
      const events = await stream();
      const types = events.map(({ type }) => type);
      const order = [
        "content_part.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
      ];
      const at = order.map((type) => types.indexOf(`response.${type}`));
      expect(
        at.every((index, i) => index > (at[i - 1] ?? 0)),
        order.join(", "),
        at,
      );
      const [done] = ofType(events, "response.output_text.done");
      expect(done!["text"] === textOf(responseOf(last(events))), "the whole text", done!["text"]);
    },
  }),
  responses({
    id: "stream.usage",
    title: "the last event of a stream has the usage",
    async run({ stream }) {
      const total = first(responseOf(last(await stream())), "usage.total_tokens");
      expect(isCount(total), "a count of tokens", total);
    },
  }),
];

const tools: Check[] = [
  responses({
    id: "tools.call",
    title: "a call of a function is an item with call_id, name and arguments",
    needs: ["tools"],
    async run({ whole }) {
      const tool_choice = { type: "function", name: "get_time" };
      const item = itemOf(await whole({ tools: [GET_TIME], tool_choice }), "function_call");
      expect(item["name"] === "get_time" && item["call_id"] !== "", "get_time", item);
      expect(isObject(parseJson(String(item["arguments"]))), "arguments in JSON", item);
    },
  }),
  responses({
    id: "tools.stream",
    title: "the deltas of a call's arguments are the arguments that its last event has",
    needs: ["tools"],
    async run({ stream }) {
      const events = await stream(forced(GET_TIME));
      const deltas = joined(ofType(events, "response.function_call_arguments.delta"));
      const whole = itemOf(responseOf(last(events)), "function_call")["arguments"];
      expect(deltas === whole, String(whole), deltas);
    },
  }),
  responses({
    id: "tools.result",
    title: "a call and its result go back as input, and the model goes on",
    needs: ["tools"],
    async run({ whole }) {
      const first = await whole(forced(GET_TIME));
      const { call_id } = itemOf(first, "function_call");
      const result = { type: "function_call_output", call_id, output: "14:05" };
      const second = await whole({ tools: [GET_TIME], input: [asked, ...itemsOf(first), result] });
      expect(textOf(second) !== "", "a text", second["output"]);
    },
  }),
  responses({
    id: "tools.custom",
    title: "a free-form tool is called with a text",
    needs: ["tools"],
    async run({ whole }) {
      const item = itemOf(await whole(forced(PATCH)), "custom_tool_call");
      expect(
        item["name"] === "patch" && typeof item["input"] === "string",
        "patch, with a text",
        item,
      );
    },
  }),
  responses({
    id: "tools.namespace",
    title: "a call of a namespace's function names the namespace",
    needs: ["tools"],
    async run({ whole }) {
      const { name, namespace } = itemOf(await whole(forced(CLOCKS)), "function_call");
      expect(`${namespace}.${name}` === "clocks.get_time", "get_time of clocks", [namespace, name]);
    },
  }),
  responses({
    id: "tools.additional",
    title: "tools may stand among the items of input",
    needs: ["tools"],
    async run({ whole }) {
      const additional = { type: "additional_tools", role: "developer", tools: [CLOCKS] };
      const response = await whole({ input: [additional, asked], tool_choice: "required" });
      expect(
        itemOf(response, "function_call")["name"] === "get_time",
        "get_time",
        response["output"],
      );
    },
  }),
  responses({
    id: "tools.hosted",
    title: "a tool that the vendor's service runs does not make a request fail",
    async run({ whole }) {
      const response = await whole({ tools: [{ type: "web_search" }] });
      expect(textOf(response).includes(WORD), WORD, textOf(response));
    },
  }),
  responses({
    id: "tools.forced",
    title: "a tool_choice that forces a tool of the vendor's service is refused",
    run: ({ refused }) =>
      refused(
        {
          tools: [{ type: "file_search", vector_store_ids: ["v"] }],
          tool_choice: { type: "file_search" },
        },
        /^tool_choice/,
      ),
  }),
];

const reasoning: Check[] = [
  responses({
    id: "reasoning.summary",
    title: "reasoning.summary shows what the model thought",
    needs: ["reasoning"],
    async run({ t, whole }) {
      const response = await whole({ model: t.reasoningModel, reasoning: { summary: "auto" } });
      expect(summaryOf(response) !== "", "a summary", response["output"]);
    },
  }),
  responses({
    id: "reasoning.stream",
    title: "the deltas of a summary are the summary that the last event has",
    needs: ["reasoning"],
    async run({ t, stream }) {
      const events = await stream({ model: t.reasoningModel, reasoning: { summary: "auto" } });
      const deltas = joined(ofType(events, "response.reasoning_summary_text.delta"));
      const whole = summaryOf(responseOf(last(events)));
      expect(deltas === whole && whole !== "", whole, deltas);
    },
  }),
  responses({
    id: "reasoning.hidden",
    title: "without reasoning.summary no reasoning is shown",
    needs: ["reasoning"],
    async run({ t, whole }) {
      const request = { model: t.reasoningModel, reasoning: { effort: "low" }, include: SEALED };
      expect(summaryOf(await whole(request)) === "", "no summary", "one");
    },
  }),
  responses({
    id: "reasoning.sealed",
    title: "sealed reasoning is sent on request, is not readable, and is taken back",
    needs: ["reasoning"],
    async run({ t, whole }) {
      const request = { model: t.reasoningModel, reasoning: { summary: "auto" }, include: SEALED };
      const response = await whole(request);
      const sealed = String(itemOf(response, "reasoning")["encrypted_content"] ?? "");
      expect(sealed !== "" && !sealed.includes(summaryOf(response)), "a sealed text", sealed);
      await whole({ ...request, input: [asked, ...itemsOf(response), asked] });
    },
  }),
  responses({
    id: "reasoning.changed",
    title: "sealed reasoning that cannot be opened is left out, and the conversation goes on",
    needs: ["reasoning"],
    async run({ t, whole }) {
      const request = { model: t.reasoningModel, reasoning: { effort: "low" }, include: SEALED };
      const items = itemsOf(await whole(request)).map((item) =>
        item["type"] === "reasoning"
          ? {
              ...item,
              encrypted_content: `${String(item["encrypted_content"]).slice(0, -8)}AAAAAAAA`,
            }
          : item,
      );
      await whole({ ...request, input: [asked, ...items, asked] });
    },
  }),
];

const refusals: Check[] = [
  responses({
    id: "refused.store",
    title: "store: true is refused where nothing is stored",
    run: ({ refused }) => refused({ store: true }, /^store$/),
  }),
  responses({
    id: "refused.previous",
    title: "previous_response_id is refused where nothing is stored",
    run: ({ refused }) => refused({ previous_response_id: "resp_1" }, /^previous_response_id$/),
  }),
  responses({
    id: "refused.reference",
    title: "a reference to an item is refused where nothing is stored",
    run: ({ refused }) =>
      refused({ input: [{ type: "item_reference", id: "msg_1" }, asked] }, /^input/),
  }),
  responses({
    id: "refused.item",
    title: "an item of an unknown type is refused, and named",
    run: ({ refused }) =>
      refused({ input: [asked, { type: "no_such_item" }] }, /^input(\[1\]|\.1)/),
  }),
  responses({
    id: "refused.answer",
    title: "a result that answers no call is refused",
    run: ({ refused }) =>
      refused(
        { input: [asked, { type: "function_call_output", call_id: "x", output: "1" }] },
        /^input/,
      ),
  }),
];

export const responsesChecks: readonly Check[] = [
  ...replies,
  ...streams,
  ...tools,
  ...reasoning,
  ...refusals,
];
