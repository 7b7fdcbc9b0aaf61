// Level `spec`: what every gateway of this contract must do (contract.md), as far as it can be seen
// from outside. What the contract leaves open is not asked for: a refusal may have any status from
// 400 to 499, an error any type and code.

import type { Exchange } from "../exchange.ts";
import {
  atMost,
  CHUNK,
  empty,
  ERROR,
  expect,
  expectField,
  expectFields,
  expectSame,
  first,
  isCount,
  isObject,
  isText,
  jsonText,
  list,
  object,
  REPLY,
  Shape,
  text,
} from "../shapes.ts";
import { chooseTool, question, TOOLS, WORD, type Ask, type Check, type Tester } from "../suite.ts";
import { allSame, choicesOf, idHeader, overLimit, sectionsOf, type Case } from "./kit.ts";

const section = sectionsOf("spec");
const endpoints = section('contract.md "Endpoints"');
const ids = section('contract.md "Request ids"');
const fields = section('contract.md "Request fields"');
const messages = section('contract.md "Messages"');
const replies = section('contract.md "Replies"');
const chunks = section('contract.md "Stream chunks"');
const routing = section('contract.md "Routing aliases"');

const ownId = ({ request }: Exchange) => request.headers?.["x-request-id"];
/** All values that the exchanges have at a place, each no more than once. */
const allDiffer = (values: readonly unknown[]) => {
  const repeated = values.filter((value, index) => values.indexOf(value) < index);
  expect(repeated.length === 0, "another one each time", repeated[0]);
};
const echo =
  (value: string, ask: Ask = {}) =>
  async (t: Tester) => {
    const exchange = await t.ask(ask, { headers: { "x-request-id": value } });
    expectSame(idHeader(exchange), value);
  };

const requestIds: Check[] = [
  ...ids.rules("response", {
    "request-id.present: every response carries X-Request-Id, once": ({ answer }) => {
      const names = answer.rawHeaders.filter((_, index) => index % 2 === 0);
      const own = names.filter((name) => name.toLowerCase() === "x-request-id");
      expect(own.length === 1, "one header X-Request-Id", own.length);
    },
    "request-id.format: a generated id is req_ and 32 hexadecimal characters": (exchange) => {
      const id = idHeader(exchange);
      if (ownId(exchange) !== undefined || id === undefined) return;
      expect(/^req_[0-9a-f]{32}$/i.test(String(id)), "req_ and 32 hexadecimal characters", id);
    },
  }),
  ...ids.rules("error", {
    "request-id.in-error: error.request_id is the same as X-Request-Id": (exchange) => {
      const [inBody, inHeader] = [first(exchange.error, "request_id"), idHeader(exchange)];
      if (isText(inBody) && inHeader !== undefined) expectSame(inBody, inHeader);
    },
  }),
  ...ids.checks({
    "request-id.unique [last]: each request without an id gets one of its own": ({ seen }) => {
      const ids = seen.filter((each) => ownId(each) === undefined).map(idHeader);
      allDiffer(ids.filter((id) => id !== undefined));
    },
    "request-id.echo: the client's value comes back with a whole reply": echo("conformance-whole"),
    "request-id.echo.stream: the client's value comes back with a stream": echo(
      "conformance-stream",
      { stream: true },
    ),
    "request-id.echo.error: the client's value comes back with an error": echo(
      "conformance-error",
      { messages: 7 },
    ),
    "request-id.echo.free-form: the client's value need not look like a generated one": echo(
      '7 {Any: value}/"of" the=client; it\'s 100%',
    ),
    async "request-id.echo.healthz: the client's value comes back from /healthz"(t) {
      const value = "conformance-healthz";
      expectSame(idHeader(await t.get("/healthz", { "x-request-id": value })), value);
    },
    async "request-id.echo.again: a value that was used before is used again"(t) {
      for (let i = 0; i < 2; i += 1) await echo("conformance-again")(t);
    },
    async "request-id.malformed: the answer to what is not even HTTP carries X-Request-Id"(t) {
      const [head = ""] = (await t.client.raw("this is not HTTP\r\n\r\n")).split("\r\n\r\n");
      expect(/^x-request-id: *\S/im.test(head), "a header X-Request-Id", head);
    },
  }),
];

const service: Check[] = endpoints.checks({
  "answers [last]: whatever is asked of it over HTTP, there is an answer": ({ unanswered }) =>
    expect(unanswered.length === 0, "an answer", unanswered.join("; ")),
  "healthz: 200 while the process is running, without a key and a version": async (t) =>
    expectFields(await t.get("/healthz"), { status: 200 }),
  "healthz.any-key: a key is not looked at": async (t) =>
    expectFields(await t.get("/healthz", { authorization: "Bearer none" }), { status: 200 }),
});

const unlike = (name: string) =>
  new Shape(`the name of a model behind ${name}`, (model) => isText(model) && model !== name);
const canonical =
  (stream: boolean) =>
  (t: Tester): Case => [{ stream }, { "parts[].model": t.model }];
const alias =
  (stream: boolean) =>
  (t: Tester): Case => [{ model: t.alias, stream }, { "parts[].model": unlike(t.alias) }];

const names: Check[] = [
  ...routing.cases({
    "model.canonical [model]: model in the reply is the canonical name that was asked for":
      canonical(false),
    "model.canonical.stream [model]: model in each chunk is the canonical name that was asked for":
      canonical(true),
    "alias.chat [alias]: auto/chat answers, and model is the name of the model that served":
      alias(false),
    "alias.stream [alias]: in a stream, too, model is the name of the model that served":
      alias(true),
    "alias.reasoning [alias reasoning]: auto/reasoning answers, and model is the one that served": [
      { model: "auto/reasoning" },
      { "json.model": unlike("auto/reasoning") },
    ],
    "alias.same-format [alias]: an alias takes many fields as a canonical name does": (t) => [
      { model: t.alias, ...MANY },
      {},
    ],
  }),
  ...routing.checks({
    async "alias.names-a-model [alias]: the name that an alias answers with can be asked for"(t) {
      const { json } = await t.answered({ model: t.alias, messages: question("Who is there?") });
      const model = first(json, "model");
      const second = await t.answered({ model, messages: question("Who are you?") });
      expectSame(first(second.json, "model"), model);
    },
  }),
  ...routing.refuses({
    "model.unknown: a name that is no model gets an error, not another model": {
      model: "no-such-model",
    },
    "alias.unknown: a name that looks like an alias and is none gets an error": {
      model: "auto/no-such-alias",
    },
  }),
];

/** Values within their ranges, none of them at an end. */
const MANY = {
  stream: false,
  temperature: 0.7,
  max_tokens: 500,
  top_p: 0.9,
  frequency_penalty: 0.1,
  presence_penalty: -0.1,
  stop: ["zebra"],
  tool_choice: "none",
  response_format: { type: "text" },
  logprobs: false,
};

export const RANGES = [
  ["temperature", 0, 2, 0.01],
  ["top_p", 0, 1, 0.01],
  ["frequency_penalty", -2, 2, 0.01],
  ["presence_penalty", -2, 2, 0.01],
  ["top_logprobs", 0, 20, 1],
] as const;
/** The ends of a range belong to it; what is beyond does not. */
const ranges: Check[] = RANGES.flatMap(([name, low, high, step]) => {
  const isTop = name === "top_logprobs";
  const need = isTop ? " [logprobs]" : "";
  const set = (value: unknown) => ({ [name]: value, ...(isTop && { logprobs: true }) });
  return [
    ...fields.accepts({
      [`${name}.lowest${need}: ${name} may be ${low}`]: set(low),
      [`${name}.highest${need}: ${name} may be ${high}`]: set(high),
    }),
    ...fields.refuses({
      [`${name}.below: ${name} may not be ${low - step}`]: set(low - step),
      [`${name}.above: ${name} may not be ${high + step}`]: set(high + step),
      [`${name}.type: ${name} is a number, not a string`]: set(String(high)),
    }),
  ];
});

const USAGE = { include_usage: true };
const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
const accepted: Check[] = [
  ...fields.accepts({
    "request.many-fields: a request may set many fields at once": MANY,
    "stream.false: stream may be false": { stream: false, messages: question("Whole?") },
    "max_tokens.accepted: max_tokens may be set": { max_tokens: 64 },
    "stop.four: stop may hold 4 sequences": { stop: ["ox", "yak", "zebra", "gnu"] },
    'tool_choice.auto [tools]: tool_choice may be "auto"': { ...TOOLS, tool_choice: "auto" },
    "response_format.text: response_format may be its default": {
      response_format: { type: "text" },
      messages: question("As text?"),
    },
    "stream_options.stream: stream_options may be set when stream is true": {
      stream: true,
      stream_options: USAGE,
    },
    ...Object.fromEntries(
      ["stop", "tools", "thinking", "top_logprobs", "stream_options"].map((name) => [
        `${name}.null: ${name} may be null, its default`,
        { [name]: null },
      ]),
    ),
  }),
  ...messages.accepts({
    "messages.system: a system message may come first": {
      messages: [{ role: "system", content: "Be brief." }, ...question("Are you there?")],
    },
    "messages.assistant: an assistant message carries an earlier reply": {
      messages: [...question("One."), { role: "assistant", content: "Two." }, ...question("Go on")],
    },
  }),
];

const refused: Check[] = [
  ...endpoints.refuses({
    "body.not-json: the body is JSON": '{"model": ',
    "body.empty: there is a body": "",
    "body.not-an-object: the body is an object": "[]",
  }),
  ...fields.refuses({
    "model.missing: model is required": { model: undefined },
    "model.type: model is a string": { model: 7 },
    "messages.missing: messages is required": { messages: undefined },
    "messages.type: messages is an array": { messages: "Say hello." },
    "messages.element: messages is an array of objects": { messages: ["Say hello."] },
    "stream.type: stream is a boolean": { stream: "yes" },
    "max_tokens.type: max_tokens is a number, not a string": { max_tokens: "64" },
    "max_tokens.integer: max_tokens is an integer": { max_tokens: 1.5 },
    "stop.five: stop holds at most 4 sequences": { stop: ["ox", "yak", "zebra", "gnu", "emu"] },
    "stop.type: stop is an array, a string or null": { stop: 7 },
    "stop.element: stop is an array of strings": { stop: [7] },
    "tools.type: tools is an array": { tools: "get_time" },
    "tool_choice.type: tool_choice is a string or an object": { ...TOOLS, tool_choice: 7 },
    "response_format.type: response_format is an object": { response_format: "json_object" },
    "thinking.type: thinking is an object": { thinking: "enabled" },
    "logprobs.type: logprobs is a boolean": { logprobs: "yes" },
    "top_logprobs.integer: top_logprobs is an integer": { logprobs: true, top_logprobs: 1.5 },
    "stream_options.alone: stream_options may not be set when stream is omitted": {
      stream_options: USAGE,
    },
    "stream_options.whole: stream_options may not be set when stream is false": {
      stream: false,
      stream_options: USAGE,
    },
    "stream_options.type: stream_options is an object": {
      stream: true,
      stream_options: "include_usage",
    },
  }),
  ...messages.refuses({
    "role.missing: role is required": { messages: [{ content: "Say hello." }] },
    "role.unknown: role is none but those that are listed": {
      messages: [{ role: "narrator", content: "Say hello." }],
    },
    "role.type: role is a string": { messages: [{ role: 7, content: "Say hello." }] },
    "content.missing: content is required": user(undefined),
    "content.type: content is not a number": user(7),
  }),
];

const COUNTING = { max_tokens: 5, messages: question("Count from one to twenty, in words.") };
const THINKING = { thinking: { type: "enabled" }, messages: question("What is 6 times 7?") };
const asksFor = (name: string, content: string) => ({
  ...TOOLS,
  tool_choice: chooseTool(name),
  messages: question(content),
});
const theWord = new Shape(`a reply with the word "${WORD}", which was asked for`, (content) =>
  String(content).toLowerCase().includes(WORD),
);
const cut = new Shape(
  `a reply that ends before "${WORD}"`,
  (content) => !String(content).includes(WORD),
);
const CALL = "json.choices[].message.tool_calls";
const noCall = new Shape("no call", (value) => list(value).length === 0);
const REASONING = "json.choices[].message.reasoning_content";

const obeyed: Check[] = [
  ...fields.cases({
    'max_tokens.obeyed: no more than max_tokens are generated, and a cut reply says "length"': [
      COUNTING,
      { "usage.completion_tokens": atMost(5), finish: "length" },
    ],
    "stop.string: generation stops at a sequence given as a string": [
      { stop: WORD },
      { content: cut },
    ],
    "stop.array: generation stops at any of several sequences": [
      { stop: ["zebra", WORD] },
      { content: cut },
    ],
    "tool_choice.default [tools]: without tool_choice no tool is called": [
      { ...TOOLS, messages: question("Which time is it in Oslo?") },
      { [CALL]: noCall },
    ],
    'tool_choice.none [tools]: tool_choice "none": no tool is called': [
      { ...TOOLS, tool_choice: "none" },
      { [CALL]: noCall },
    ],
    "tool_choice.named [tools]: an object names a specific tool, which is then called": [
      asksFor("send_mail", "Write to ada@example.com."),
      { [`${CALL}[].function.name`]: "send_mail" },
    ],
    "response_format.json_object [json]: json_object: the content is a JSON object": [
      {
        response_format: { type: "json_object" },
        messages: question("6 times 7? Answer as JSON."),
      },
      { content: jsonText },
    ],
    "logprobs.true [logprobs]: logprobs true returns log probabilities with the choice": [
      { logprobs: true, messages: question("How likely is that?") },
      { "json.choices[].logprobs": object },
    ],
  }),
  ...chunks.cases({
    'max_tokens.obeyed.stream: a stream that was cut short ends with "length"': [
      { ...COUNTING, stream: true },
      { finish: "length" },
    ],
    "stream.content: concatenated, delta.content gives the full reply": [
      { stream: true },
      { content: theWord },
    ],
  }),
  ...replies.cases({
    "reply.content: the reply answers the messages": [{}, { content: theWord }],
    'finish_reason.tool_calls [tools]: a reply that calls a tool ends with "tool_calls"': [
      asksFor("get_time", "Which time is it in Rome?"),
      { finish: "tool_calls" },
    ],
    "thinking.plain-model [plain]: reasoning_content is present on reasoning models only": [
      THINKING,
      { [REASONING]: empty },
    ],
  }),
  ...endpoints.cases({
    "thinking.whole [reasoning]: a reasoning model that is to think has reasoning_content": (t) => [
      { ...THINKING, model: t.reasoningModel },
      { [REASONING]: text },
    ],
    "thinking.stream [reasoning]: its deltas have reasoning_content": (t) => [
      { ...THINKING, model: t.reasoningModel, stream: true },
      { thoughts: text },
    ],
  }),
];

/** Where the numbers are none, that is the fault of another rule. */
const sum =
  (whole: string, ...parts: readonly string[]) =>
  ({ usage }: Exchange): void => {
    const [total, one, other] = [whole, ...parts].map((name) => first(usage, name));
    if (isCount(total) && isCount(one) && isCount(other))
      expect(one + other === total, `${whole} to be ${parts.join(" + ")}`, usage);
  };
const noThoughts = ({ asked, thoughts }: Exchange) =>
  first(asked, "thinking.type") === "enabled" || expectSame(thoughts, "");

const wholeReplies: Check[] = [
  ...endpoints.rules("reply", {
    "reply.json: a reply that is not streamed is a JSON object": ({ json, answer }) =>
      expect(isObject(json), "a JSON object", answer.text),
  }),
  ...replies.fields("reply", "reply", REPLY),
  ...replies.rules("reply", {
    "usage.sum: total_tokens is prompt_tokens plus completion_tokens": sum(
      "total_tokens",
      "prompt_tokens",
      "completion_tokens",
    ),
    "usage.cache-sum: prompt tokens were served from cache or not": sum(
      "prompt_tokens",
      "prompt_cache_hit_tokens",
      "prompt_cache_miss_tokens",
    ),
    "thinking.not-asked-for: without thinking enabled a message has no reasoning_content":
      noThoughts,
  }),
  ...replies.checks({
    "reply.id.unique [last]: id is a unique identifier of the completion": ({ seen }) =>
      allDiffer(seen.map(({ parts }) => first(parts[0], "id")).filter(isText)),
  }),
];

// An event of a comment or of other fields is none by itself; another rule is about them.
const isHarmless = (line: string) => /^(:|(event|id|retry)\b)/.test(line);

const streams: Check[] = [
  ...endpoints.rules("stream", {
    "stream.media-type: a stream is text/event-stream": (stream) =>
      expectFields(stream.headers, { "content-type": /^text\/event-stream\b/ }),
    "stream.lines: each event is one line of the form `data: ...`, then a blank line"({
      events,
      rest,
    }) {
      for (const { lines, data } of events) {
        const isOne = lines.length === 1 && lines[0]!.startsWith("data: ");
        const holds = data === undefined ? lines.every(isHarmless) : isOne;
        expect(holds, "one line `data: ...`", lines.join("\n"));
      }
      expect(rest === "", "a blank line at the end", rest);
    },
    "stream.json: each event but the last is a JSON object"({ events }) {
      for (const { data, json } of events)
        if (data !== undefined && data.trim() !== "[DONE]")
          expect(isObject(json), "a JSON object", data);
    },
    "stream.done: a stream ends with the line `data: [DONE]`, once"({ events }) {
      const terminators = events.filter(({ data }) => data?.trim() === "[DONE]").length;
      const last = events.at(-1)?.lines.join("\n");
      const isLast = terminators === 1 && last === "data: [DONE]";
      expect(isLast, "`data: [DONE]` as the last event", last);
    },
  }),
  ...chunks.fields("stream", "chunk", CHUNK),
  ...chunks.rules("stream", {
    "thinking.not-asked-for.stream: without thinking enabled no delta has reasoning_content":
      noThoughts,
    "chunk.id.same: id is the same in all chunks of a completion": ({ parts }) =>
      allSame(parts.map((chunk) => first(chunk, "id")).filter(isText)),
    "chunk.role.first: delta.role is in the first chunk": ({ parts }) => {
      const role = first(parts[0], "choices[].delta.role");
      expect(role !== undefined, "a role in the first chunk", parts[0]);
    },
    "chunk.role.once: delta.role is present only in the first chunk": ({ parts }) => {
      for (const chunk of parts.slice(1)) expectField(chunk, "choices[].delta.role", undefined);
    },
    "chunk.finish_reason.null: finish_reason is null in every chunk except the last": (stream) => {
      for (const choice of choicesOf(stream).slice(0, -1))
        expect(!isText(first(choice, "finish_reason")), "null before the last chunk", choice);
    },
    "chunk.finish_reason.last: the final chunk carries a finish_reason": (stream) => {
      const reason = first(choicesOf(stream).at(-1), "finish_reason");
      expect(reason !== null, "a finish_reason in the last chunk with a choice", reason);
    },
  }),
];

const key = (authorization?: string) => async (t: Tester) => {
  const { status } = await t.ask({}, { headers: { authorization } });
  expect(status >= 400 && status < 500, "a refusal, status 400 to 499", status);
};
const auth: Check[] = section('contract.md "Authentication"').checks({
  "auth.missing: a chat request without Authorization is refused": key(),
  "auth.unknown: a key that was never issued is refused": key("Bearer no-such-key"),
  "auth.empty: an empty key is refused": key("Bearer "),
  "auth.scheme: another scheme than Bearer is refused": key("Basic bm86c3VjaGtleQ=="),
});

const errors = section('contract.md "Errors"');
const failures: Check[] = [
  ...errors.rules("error", {
    "error.json: an error's body is JSON with one top-level object, `error`": ({ json, answer }) =>
      expect(
        isObject(json) && isObject(json["error"]) && Object.keys(json).length === 1,
        'a body {"error": {...}}',
        answer.text,
      ),
  }),
  ...errors.fields("error", "error", ERROR, "error."),
  ...errors.rules("response", {
    "error.status: 500 and 503 are the server-side failures: no other from 500 on": ({ status }) =>
      expect(status < 500 || status === 500 || status === 503, "500 or 503", status),
    "error.any-status: a success has no other status than 200": ({ status }) =>
      expect(status === 200 || status >= 400, "200, or a status from 400 on", status),
  }),
];

const isExceeded = (name: string, expected: RegExp | string) => async (t: Tester) =>
  expectFields((await overLimit(t)).error, { [name]: expected });
const limit: Check[] = section('contract.md "Limits"').checks({
  async "limit.exists [limited]: one request more than the limit in a minute is not answered"(t) {
    const statuses = (await t.overLimit()).map(({ status }) => status);
    expect(statuses.at(-1) !== 200, `a refusal after ${t.options.limited!.rpm}`, statuses.join());
  },
  async "limit.status [limited]: exceeding the limit returns 429"(t) {
    const statuses = (await t.overLimit()).map(({ status }) => status);
    const others = statuses.filter((status) => status !== 200 && status !== 429);
    expect(others.length === 0, "429", statuses.join());
  },
  "limit.type [limited]: its type is rate_limit_error": isExceeded("type", "rate_limit_error"),
  "limit.code [limited]: its code is rate_limit_exceeded": isExceeded(
    "code",
    "rate_limit_exceeded",
  ),
  "limit.message [limited]: its message names the minute's limit and the seconds to wait":
    isExceeded("message", /minute.*\b\d+ ?s(ec(ond)?s?)?\b|\b\d+ ?s(ec(ond)?s?)?\b.*minute/i),
});

export const specChecks: readonly Check[] = [
  ...service,
  ...requestIds,
  ...names,
  ...ranges,
  ...accepted,
  ...refused,
  ...obeyed,
  ...wholeReplies,
  ...streams,
  ...auth,
  ...failures,
  ...limit,
];
