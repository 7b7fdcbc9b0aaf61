// Level `compatible`: what unmodified clients of other gateways need, which the contract leaves
// open and wire.md fills.

import { parseJson, parseRaw } from "../client.ts";
import type { Exchange } from "../exchange.ts";
import {
  array,
  atMost,
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
  members,
  REPLY,
  Shape,
  string,
  text,
  type Expected,
  type Fields,
} from "../shapes.ts";
import {
  CHAT,
  chooseTool,
  question,
  TOOLS,
  WORD,
  type Ask,
  type Check,
  type Headers,
  type Tester,
} from "../suite.ts";
import {
  allSame,
  choicesOf,
  headingOf,
  idHeader,
  overLimit,
  sectionsOf,
  valuesAt,
  type Case,
} from "./kit.ts";

const section = sectionsOf("compatible");
const envelope = section('wire.md "Request envelope"');
const fields = section('wire.md "Request fields"');
const messages = section('wire.md "Messages"');
const errors = section('contract.md "Errors"');
const framing = section('wire.md "Framing"');
const replies = section('wire.md "Whole replies"');
const logprobs = section('wire.md "Log probabilities"');
const ids = section('contract.md "Request ids"');
const plain = section('wire.md "Responses without a handler"');
const usage = section('wire.md "Usage in streams"');

const HI = question("Hi.");
const call = {
  id: "call_1",
  type: "function",
  function: { name: "get_time", arguments: '{"city":"Oslo"}' },
};
const badCall = { ...call, function: { name: "get_time", arguments: '{"city":' } };
const result = { role: "tool", tool_call_id: "call_1", content: "14:05" };
const loop = (assistant: object, of: object = result) => ({
  ...TOOLS,
  messages: [...HI, { role: "assistant", tool_calls: [call], ...assistant }, of],
});
const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
const withHeaders = (headers: Headers): Case => [{}, {}, { headers }];
const NULLABLE = [
  ...["stream", "temperature", "max_tokens", "max_completion_tokens", "top_p", "stop", "tools"],
  ...["frequency_penalty", "presence_penalty", "tool_choice", "response_format", "thinking"],
  ...["logprobs", "top_logprobs", "stream_options", "n", "seed", "user", "parallel_tool_calls"],
  "reasoning_effort",
];

const accepted: Check[] = [
  ...envelope.cases({
    "headers.sdk: headers that SDKs add are ignored": withHeaders({
      "x-stainless-lang": "js",
      "openai-organization": "org",
      "openai-project": "p",
      accept: "application/json",
    }),
    "headers.charset: Content-Type may have parameters": withHeaders({
      "content-type": "application/json; charset=utf-8",
    }),
    "body.bom: a byte order mark before the JSON is no fault": (t) => [
      `\uFEFF${JSON.stringify({ model: t.model, messages: HI })}`,
      {},
    ],
  }),
  ...envelope.accepts({
    "body.nulls: null is the same as absent, for every optional field": Object.fromEntries(
      NULLABLE.map((name) => [name, null]),
    ),
  }),
  ...section('contract.md "Authentication"').cases({
    "bearer.case: the scheme's name may be in any case": (t) =>
      withHeaders({ authorization: `bearer ${t.options.key}` }),
  }),
  ...fields.accepts({
    "body.unknown-field: a field that nobody knows is ignored": { provider_options: { a: 1 } },
    "message.unknown-field: a field of a message that nobody knows is ignored": {
      messages: [{ role: "user", content: "Hi.", cache_control: { type: "ephemeral" } }],
    },
    "body.ignored-fields: fields that other services know are never an error": {
      seed: 7,
      user: "ada",
      parallel_tool_calls: true,
      reasoning_effort: "low",
      logit_bias: { "50256": -100 },
      metadata: { a: "b" },
      store: false,
      service_tier: "auto",
      prompt_cache_key: "k",
      safety_identifier: "s",
      verbosity: "low",
      modalities: ["text"],
    },
    "n.one: n may be 1": { n: 1 },
    "stop.empty-array: stop may be an empty array": { stop: [] },
    "tools.empty-array: tools may be an empty array": { tools: [] },
    "top_logprobs.alone: top_logprobs without logprobs is inert": { top_logprobs: 3 },
    "thinking.disabled: thinking may be disabled explicitly": { thinking: { type: "disabled" } },
    "thinking.adaptive: thinking may be adaptive": { thinking: { type: "adaptive" } },
    "thinking.budget: other keys of thinking are ignored": {
      thinking: { type: "enabled", budget_tokens: 1024 },
    },
    "stream_options.empty: stream_options may be empty": { stream: true, stream_options: {} },
    "stream_options.unknown: other keys of stream_options are ignored": {
      stream: true,
      stream_options: { include_obfuscation: false },
    },
  }),
  ...section('wire.md "Tools"').accepts({
    "tools.bare [tools]: description, parameters and strict of a tool may be missing": {
      tools: [{ type: "function", function: { name: "f" } }],
    },
    'tool_choice.none-without-tools: tool_choice "none" needs no tools': { tool_choice: "none" },
  }),
  ...messages.accepts({
    "message.name: a message may have a name": {
      messages: [{ role: "user", name: "ada", content: "Hi." }],
    },
    "role.developer: role developer is taken for system": {
      messages: [{ role: "developer", content: "Be brief." }, ...HI],
    },
    "content.empty: an empty string is content": user(""),
    "content.refusal-part: an assistant's refusal may come back as a part": {
      messages: [
        ...HI,
        { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
        ...HI,
      ],
    },
    "assistant.reasoning: reasoning_content of an earlier reply may come back": {
      messages: [...HI, { role: "assistant", content: "Yes.", reasoning_content: "Hm." }, ...HI],
    },
    "tool-loop.null [tools]: a tool's result is taken; content is null beside tool_calls": loop({
      content: null,
    }),
    "tool-loop.absent [tools]: content may be missing beside tool_calls": loop({}),
    "tool-loop.empty [tools]: content may be empty beside tool_calls": loop({ content: "" }),
    "tool-loop.bad-arguments [tools]: arguments that a model wrote need not be JSON": loop({
      tool_calls: [badCall],
    }),
    "tool-loop.parts [tools]: a tool's result may be text parts, and have a name": loop(
      { content: null },
      { ...result, name: "get_time", content: [{ type: "text", text: "14:05" }] },
    ),
  }),
];

const isError = (exchange: Exchange, title: string): void => {
  const [status, code, param = null] = title.split(" ");
  const got = {
    status: exchange.status,
    code: first(exchange.json, "error.code"),
    param: first(exchange.json, "error.param") ?? null,
  };
  expectSame(got, { status: Number(status), code, param });
};

/** By what each is refused with: status, code and, where there is one, param. */
const REFUSED: Readonly<Record<string, Ask | readonly [Headers]>> = {
  "no-key: 401 missing_api_key": [{ authorization: undefined }],
  "bad-key: 401 invalid_api_key": [{ authorization: "Bearer no-such-key" }],
  "media-type-sent: 415 unsupported_media_type": [{ "content-type": "text/plain" }],
  "encoding-sent: 415 unsupported_media_type": [{ "content-encoding": "gzip" }],
  "not-json: 400 invalid_json": '{"model": "m",',
  "no-body: 400 invalid_json": "",
  "not-an-object: 400 invalid_type": "[]",
  "no-model: 400 missing_required_parameter model": { model: undefined },
  "no-messages: 400 missing_required_parameter messages": { messages: undefined },
  "empty-messages: 400 invalid_value messages": { messages: [] },
  "no-role: 400 missing_required_parameter messages[1].role": {
    messages: [...HI, { content: "Hi." }],
  },
  "bad-role: 400 invalid_value messages[0].role": {
    messages: [{ role: "narrator", content: "Hi." }],
  },
  "function-role: 400 invalid_value messages[1].role": {
    messages: [...HI, { role: "function", name: "f", content: "1" }],
  },
  "no-content: 400 missing_required_parameter messages[0].content": user(undefined),
  "assistant-without-content: 400 missing_required_parameter messages[0].content": {
    messages: [{ role: "assistant" }],
  },
  "image [plain]: 400 unsupported_value messages[0].content": user([
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
  ]),
  "no-tool-call-id: 400 missing_required_parameter messages[1].tool_call_id": {
    messages: [...HI, { role: "tool", content: "1" }],
  },
  "unmatched-tool-call-id: 400 invalid_value messages[1].tool_call_id": {
    messages: [...HI, { role: "tool", tool_call_id: "call_9", content: "1" }],
  },
  "type: 400 invalid_type temperature": { temperature: "1" },
  "boolean-number: 400 invalid_type temperature": { temperature: true },
  "range: 400 invalid_value top_p": { top_p: 1.5 },
  "infinity: 400 invalid_value temperature":
    '{"model":"m","messages":[{"role":"user","content":"Hi."}],"temperature":1e400}',
  "max_tokens: 400 invalid_value max_tokens": { max_tokens: 0 },
  "max_completion_tokens: 400 invalid_value max_completion_tokens": { max_completion_tokens: 0 },
  "five-stops: 400 invalid_value stop": { stop: ["a", "b", "c", "d", "e"] },
  "empty-stop: 400 invalid_value stop": { stop: "" },
  "n: 400 unsupported_value n": { n: 2 },
  "custom-tool: 400 unsupported_value tools[0].type": {
    tools: [{ type: "custom", custom: { name: "f" } }],
  },
  "tool-name: 400 invalid_value tools[0].function.name": {
    tools: [{ type: "function", function: { name: "no spaces" } }],
  },
  "choice-without-tools: 400 invalid_parameter_combination tool_choice": { tool_choice: "auto" },
  "bad-choice: 400 invalid_value tool_choice": { ...TOOLS, tool_choice: "sometimes" },
  "unlisted-choice: 400 invalid_value tool_choice": { ...TOOLS, tool_choice: chooseTool("absent") },
  "bad-format: 400 invalid_value response_format.type": { response_format: { type: "poem" } },
  "bad-thinking: 400 invalid_value thinking.type": { thinking: { type: "loudly" } },
  "stream_options: 400 invalid_parameter_combination stream_options": { stream_options: {} },
  "include_usage: 400 invalid_type stream_options.include_usage": {
    stream: true,
    stream_options: { include_usage: "yes" },
  },
  "unknown-model: 404 model_not_found model": { model: "no-such-model" },
  "unknown-alias: 404 model_not_found model": { model: "auto/no-such-alias" },
  "stream: 404 model_not_found model": { model: "no-such-model", stream: true },
};
const isHeaders = (entry: Ask | readonly [Headers]): entry is readonly [Headers] =>
  Array.isArray(entry);
const refused = errors.checks(
  Object.fromEntries(
    Object.entries(REFUSED).map(([heading, entry]) => [
      `error.${heading}`,
      async (t: Tester) =>
        isError(
          await (isHeaders(entry) ? t.ask({}, { headers: entry[0] }) : t.ask(entry)),
          headingOf(heading).title,
        ),
    ]),
  ),
);

const json: Expected = /^application\/json\b/;
const failures: Check[] = [
  ...errors.checks({
    "error.www-authenticate: 401 says how to authenticate": async (t) => {
      const { status, headers } = await t.ask({}, { headers: { authorization: undefined } });
      expect(status === 401, "status 401", status);
      expectFields(headers, { "www-authenticate": /^Bearer\b/ });
    },
    "error.allow: 405 says what is allowed": async (t) => {
      const { status, headers } = await t.get(CHAT);
      expect(status === 405, "status 405", status);
      expectFields(headers, { allow: /\bPOST\b/ });
    },
  }),
  ...section('contract.md "Order of checks"').checks({
    "error.unknown-url: 404 unknown_url": async (t) =>
      isError(await t.get("/v1/nothing"), "404 unknown_url"),
    "error.wrong-method: 405 method_not_allowed": async (t) =>
      isError(await t.call({ method: "PUT", path: CHAT }), "405 method_not_allowed"),
  }),
  ...section('wire.md "Error body"').rules("error", {
    "error.media-type: an error is application/json": ({ headers }) =>
      expectFields(headers, { "content-type": json }),
    "error.param: error.param is a string, null or absent": ({ error }) => {
      const param = first(error, "param") ?? null;
      expect(param === null || isText(param), "a string, null or nothing", param);
    },
  }),
  ...section('wire.md "Status codes"').rules("error", {
    "error.known-status: no status that some clients retry in vain: 422": ({ status }) =>
      expect(status !== 422, "400 for a bad body", status),
  }),
  ...section('wire.md "Rate limit headers"').checks({
    "limit.retry-after [limited]: 429 carries Retry-After, a whole number of seconds from 1 to 60":
      async (t) =>
        expectFields((await overLimit(t)).headers, { "retry-after": /^([1-9]|[1-5]\d|60)$/ }),
    async 'limit.message [limited]: its message says "retry after N seconds" as Retry-After does'(
      t,
    ) {
      const { headers, error } = await overLimit(t);
      const message = String(first(error, "message"));
      const [, inMessage] = /retry after (\d+) seconds?/i.exec(message) ?? [];
      const inHeader = headers["retry-after"] ?? "";
      const isSame = inMessage === inHeader || !/^\d+$/.test(inHeader);
      expect(inMessage !== undefined && isSame, `"retry after ${inHeader} seconds"`, message);
    },
  }),
];

const requestOf = (...lines: readonly string[]) =>
  Buffer.from([...lines, "Connection: close", "", ""].join("\r\n"), "latin1");
const rawAnswer = async (t: Tester, ...lines: readonly string[]) =>
  parseRaw(await t.client.raw(requestOf(...lines)));
const HOST = "Host: gateway";
const HEALTHZ = "GET /healthz HTTP/1.1";
/** What Node and other servers answer by themselves, if nobody sees to it. */
const UNHANDLED: readonly (readonly [id: string, status: number, what: string, ...string[]])[] = [
  ["malformed", 400, "what is not HTTP", "nonsense, not HTTP"],
  ["no-host", 400, "a request without Host", HEALTHZ],
  ["large-headers", 431, "headers of 40 kB", HEALTHZ, HOST, `X-Large: ${"x".repeat(40_000)}`],
  ["expect", 417, "an unknown expectation", "GET /v1/models HTTP/1.1", HOST, "Expect: cake"],
  ["connect", 405, "CONNECT", "CONNECT elsewhere:443 HTTP/1.1", "Host: elsewhere"],
];
const unhandled = UNHANDLED.flatMap(([id, status, what, ...lines]) =>
  plain.checks({
    async [`http.${id}: ${status} with an error object and its id: ${what}`](t) {
      const answer = await rawAnswer(t, ...lines);
      const requestId = answer.headers["x-request-id"];
      expectSame(answer.status, status);
      expect(isText(requestId), "X-Request-Id", requestId);
      expectSame(first(parseJson(answer.text), "error.request_id"), requestId);
    },
  }),
);
const withId = (t: Tester, ...values: readonly string[]) =>
  rawAnswer(t, HEALTHZ, HOST, ...values.map((value) => `X-Request-Id: ${value}`));
const isGenerated = (value: string) => async (t: Tester) =>
  expectFields(await withId(t, value), { status: 200, "headers.x-request-id": /^req_/ });

const http: Check[] = [
  ...unhandled,
  ...plain.checks({
    'healthz.body: /healthz says {"status":"ok"}': async (t) =>
      expectFields((await t.get("/healthz")).json, { status: "ok" }),
    "healthz.no-store: /healthz is not to be stored by a cache": async (t) =>
      expectFields((await t.get("/healthz")).headers, { "cache-control": /\bno-store\b/ }),
  }),
  ...ids.checks({
    "request-id.long: 255 characters are echoed": async (t) =>
      expectSame((await withId(t, "i".repeat(255))).headers["x-request-id"], "i".repeat(255)),
    "request-id.too-long: 2000 characters are not an error: an id is generated": isGenerated(
      "l".repeat(2000),
    ),
    "request-id.not-ascii: a value outside ASCII is not an error: an id is generated":
      isGenerated("caf\u00e9"),
    async "request-id.two: of two values the first counts"(t) {
      const { headers } = await withId(t, "first-of-two", "second-of-two");
      expectSame(headers["x-request-id"], "first-of-two");
    },
  }),
  ...ids.rules("response", {
    "request-id.lower-case: a generated id is in lower case": (exchange) => {
      if (exchange.request.headers?.["x-request-id"] === undefined)
        expect(!/[A-F]/.test(String(idHeader(exchange))), "lower case", idHeader(exchange));
    },
  }),
  ...section('contract.md "Endpoints"').checks({
    async "healthz.head: /healthz answers HEAD"(t) {
      const { status, text: body } = await rawAnswer(t, "HEAD /healthz HTTP/1.1", HOST);
      expectSame({ status, body }, { status: 200, body: "" });
    },
    "models.key: the list of models wants a key": async (t) =>
      isError(await t.get("/v1/models"), "401 missing_api_key"),
  }),
  ...envelope.checks({
    async "body.not-utf8: 400 invalid_json for a body that is not UTF-8"(t) {
      const body = JSON.stringify({ model: t.model, messages: question("caf\u00e9") });
      isError(await t.ask(Buffer.from(body, "latin1")), "400 invalid_json");
    },
  }),
  ...section('wire.md "Model list"').checks({
    "models.list: GET /v1/models lists models: id, object, created, owned_by": async (t) =>
      expectFields(await listed(t), {
        object: "list",
        data: members,
        "data[].object": "model",
        "data[].id": text,
        "data[].created": new Shape("a time", isCount),
        "data[].owned_by": text,
      }),
    async "models.names [model alias]: it has the model, and the alias"(t) {
      const all = valuesAt(await listed(t), "data[].id");
      const has = all.includes(t.model) && all.includes(t.alias);
      expect(has, `${t.model} and ${t.alias}`, all);
    },
  }),
];
const listed = async (t: Tester): Promise<unknown> =>
  (await t.get("/v1/models", { authorization: `Bearer ${t.options.key}` })).json;

const LONG = question("Count from one to twenty, in words.");
const PLACE = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const json_schema = { name: "place", schema: PLACE, strict: true };
const NO_SCHEMA = "'response_format' of type 'json_schema' is not supported with this model";
const parts = ["Say the word pine", "apple and nothing else."].map((each) => ({
  type: "text",
  text: each,
}));

const obeyed: Check[] = [
  ...fields.cases({
    "max_completion_tokens: max_completion_tokens is another name of max_tokens": [
      { messages: LONG, max_completion_tokens: 6 },
      { "usage.completion_tokens": atMost(6) },
    ],
    "max_completion_tokens.both: of max_tokens and max_completion_tokens the smaller counts": [
      { messages: LONG, max_tokens: 6, max_completion_tokens: 500 },
      { "usage.completion_tokens": atMost(6) },
    ],
  }),
  ...section('contract.md "Request fields"').cases({
    'tool_choice.required [tools]: tool_choice "required": a tool is called': [
      { ...TOOLS, tool_choice: "required" },
      { "json.choices[].message.tool_calls[].function.name": text },
    ],
  }),
  ...messages.cases({
    "content.parts: content may be text parts, which are joined without a separator": [
      user(parts),
      { content: new RegExp(WORD, "i") },
    ],
  }),
  ...framing.cases({
    "no-compression: a stream is not compressed, whatever the client accepts": [
      { stream: true },
      { "headers.content-encoding": undefined },
      { headers: { "accept-encoding": "gzip, deflate, br" } },
    ],
  }),
  ...section('wire.md "Reply format"').checks({
    async "response_format.json_schema [json]: json_schema is followed, or refused in known words"(
      t,
    ) {
      const format = { type: "json_schema", json_schema };
      const { status, content, error, answer } = await t.ask({ response_format: format });
      const isFollowed = status === 200 && isText(first(parseJson(content), "city"));
      const isKnown = status === 400 && String(first(error, "message")).includes(NO_SCHEMA);
      expect(isFollowed || isKnown, `{"city": "..."}, or 400 with: ${NO_SCHEMA}`, answer.text);
    },
  }),
];

const CALLS = "choices[].message.tool_calls";
const TOOL_CALL: Fields = {
  [CALLS]: new Shape(
    "an array of at least one call where it is present",
    (value) => value === undefined || list(value).length > 0,
  ),
  [`${CALLS}[].id`]: text,
  [`${CALLS}[].type`]: "function",
  [`${CALLS}[].function.name`]: text,
  [`${CALLS}[].function.arguments`]: jsonText,
};
const isByte = (value: unknown) => isCount(value) && value < 256;
const LOGPROBS: Fields = {
  "choices[].logprobs.content[].token": string,
  "choices[].logprobs.content[].logprob": new Shape(
    "a number, at most 0",
    (value) => typeof value === "number" && value <= 0,
  ),
  "choices[].logprobs.content[].bytes": new Shape(
    "an array of bytes, or null",
    (value) => value === null || (Array.isArray(value) && value.every(isByte)),
  ),
  "choices[].logprobs.content[].top_logprobs": array,
};
/** Compared with another figure; where that is none, it is the fault of another rule. */
const comparedWith = (
  words: string,
  path: string,
  holds: (one: number, other: number) => boolean,
) =>
  new Shape(words, (value, { root }) => {
    const other = first(root, path);
    return isCount(value) && (!isCount(other) || holds(value, other));
  });
const DETAILS: Fields = {
  "usage.prompt_tokens_details.cached_tokens": comparedWith(
    "the same as prompt_cache_hit_tokens",
    "usage.prompt_cache_hit_tokens",
    (cached, hit) => cached === hit,
  ),
  "usage.completion_tokens_details.reasoning_tokens": comparedWith(
    "at most completion_tokens",
    "usage.completion_tokens",
    (reasoning, all) => reasoning <= all,
  ),
};

const wholeReplies: Check[] = [
  ...replies.rules("reply", {
    "reply.media-type: a whole reply is application/json, not a text": ({ headers }) =>
      expectFields(headers, { "content-type": json }),
  }),
  ...replies.fields("reply", "reply", { ...TOOL_CALL, ...LOGPROBS }),
  ...logprobs.rules("reply", {
    "reply.logprobs.unasked: logprobs is null where it was not asked for": ({
      asked,
      json: body,
    }) => {
      if (asked["logprobs"] === true) return;
      for (const value of valuesAt(body, "choices[].logprobs")) expectSame(value ?? null, null);
    },
  }),
  ...section('wire.md "Token counts"').fields("reply", "reply", DETAILS),
  ...logprobs.checks({
    async "reply.top_logprobs [logprobs]: top_logprobs has as many as were asked for, else none"(
      t,
    ) {
      for (const top_logprobs of [2, undefined]) {
        const { json: body } = await t.answered({ logprobs: true, top_logprobs });
        const got = valuesAt(body, "choices[].logprobs.content[].top_logprobs");
        const most = top_logprobs ?? 0;
        const holds = got.length > 0 && got.every((each) => list(each).length <= most);
        expect(holds, `at most ${most} in each place`, got);
      }
    },
  }),
];

const asksUsage = ({ asked }: Exchange): boolean =>
  first(asked, "stream_options.include_usage") === true;
const withUsage = (stream: Exchange): readonly unknown[] =>
  stream.parts.filter((chunk) => isObject(first(chunk, "usage")));
const fragmentsOf = (stream: Exchange) =>
  choicesOf(stream).flatMap((choice) => list(first(choice, "delta.tool_calls")));
const header = (name: string, expected: Expected) => (stream: Exchange) =>
  expectField({ [name]: stream.headers[name] }, name, expected);
const USAGE: Fields = Object.fromEntries(
  Object.entries(REPLY).filter(([path]) => path.startsWith("usage.")),
);
/** Comes in the first fragment of a call, and in no other. */
const onceOf = (path: string) => (stream: Exchange) => {
  const begun = new Set<unknown>();
  for (const fragment of fragmentsOf(stream)) {
    const [index, value] = [first(fragment, "index"), first(fragment, path)];
    const holds = begun.has(index) ? value === undefined : isText(value);
    expect(holds, `${path} in the first fragment alone`, fragment);
    begun.add(index);
  }
};

const streams: Check[] = [
  ...framing.rules("stream", {
    "stream.cache-control: a stream has Cache-Control: no-cache, no-transform": header(
      "cache-control",
      /^(?=.*\bno-cache\b).*\bno-transform\b/,
    ),
    "stream.buffering: a stream has X-Accel-Buffering: no": header("x-accel-buffering", "no"),
    "stream.no-length: a stream has no Content-Length": header("content-length", undefined),
    "stream.line-ends: lines end with LF alone": ({ answer }) =>
      expect(!answer.text?.includes("\r"), "no CR", "CR"),
    "stream.no-fields: no `event:`, `id:` or `retry:`, on which clients break": ({ events }) => {
      for (const line of events.flatMap(({ lines }) => lines))
        expect(!/^(event|id|retry)\b/.test(line), "data and comments only", line);
    },
    "stream.ends: the response ends right after [DONE]: clients wait for that": ({ answer }) => {
      const late = answer.closingMs;
      expect(late < 1_000, "the end within a second", `${Math.round(late)} ms`);
    },
  }),
  ...section('wire.md "Chunks"').rules("stream", {
    "chunk.created.same: created is the same in all chunks": (stream) =>
      allSame(stream.parts.map((chunk) => first(chunk, "created"))),
    "chunk.model.same: model is the same in all chunks": (stream) =>
      allSame(stream.parts.map((chunk) => first(chunk, "model"))),
    "chunk.no-empty-choices: choices is empty in no chunk but the one with usage": ({
      parts: all,
    }) => {
      for (const chunk of all)
        if (!isObject(first(chunk, "usage"))) expectField(chunk, "choices", members);
    },
    "chunk.one-text: never both thinking and text in one delta": (stream) => {
      for (const choice of choicesOf(stream))
        if (isText(first(choice, "delta.content")))
          expect(!isText(first(choice, "delta.reasoning_content")), "one text", choice);
    },
    "chunk.thinking-first: thinking comes before text": (stream) => {
      const choices = choicesOf(stream);
      const hasText = (choice: unknown) => isText(first(choice, "delta.content"));
      const thinks = (choice: unknown) => isText(first(choice, "delta.reasoning_content"));
      // A delta with both is the other rule's.
      const textFrom = choices.findIndex((choice) => hasText(choice) && !thinks(choice));
      for (const choice of textFrom === -1 ? [] : choices.slice(textFrom + 1))
        expect(!thinks(choice), "no thinking after text", choice);
    },
    "chunk.tool_calls.index: each fragment of a tool call has its index, counted from 0": (
      stream,
    ) => {
      let next = 0;
      for (const fragment of fragmentsOf(stream)) {
        const index = first(fragment, "index");
        expect(isCount(index) && index <= next, `an index up to ${next}`, fragment);
        next = Math.max(next, index + 1);
      }
    },
    "chunk.tool_calls.function: each fragment has arguments, a string": (stream) => {
      for (const fragment of fragmentsOf(stream)) {
        const given = first(fragment, "function.arguments");
        expect(typeof given === "string", "function.arguments, a string", fragment);
      }
    },
    "chunk.tool_calls.id: id of a tool call comes once, in its first fragment": onceOf("id"),
    "chunk.tool_calls.type: type of a tool call comes once, in its first fragment": onceOf("type"),
    "chunk.tool_calls.function.name: its name comes once, in its first fragment":
      onceOf("function.name"),
    "chunk.tool_calls.arguments: the fragments' arguments are JSON together": (stream) => {
      const calls = new Map<unknown, string>();
      for (const fragment of fragmentsOf(stream)) {
        const [index, piece] = [first(fragment, "index"), first(fragment, "function.arguments")];
        calls.set(index, `${calls.get(index) ?? ""}${piece ?? ""}`);
      }
      for (const each of calls.values()) expect(isObject(parseJson(each)), "a JSON object", each);
    },
  }),
  ...usage.rules("stream", {
    "usage.once: usage comes exactly once, if include_usage was set": (stream) => {
      if (asksUsage(stream)) expect(withUsage(stream).length === 1, "one usage", stream.parts);
    },
    "usage.last: the chunk with usage is the last, and its choices are []": (stream) => {
      const [chunk] = withUsage(stream);
      if (!asksUsage(stream) || chunk === undefined) return;
      const isLast = isObject(first(stream.parts.at(-1), "usage"));
      expect(isLast && list(first(chunk, "choices")).length === 0, "usage after all", chunk);
    },
    "usage.unasked: no usage, if include_usage was not set": (stream) => {
      if (!asksUsage(stream)) expect(withUsage(stream).length === 0, "no usage", stream.usage);
    },
  }),
  ...usage.fields("stream", "chunk", USAGE),
  ...logprobs.fields("stream", "chunk", LOGPROBS),
];

export const compatibleChecks: readonly Check[] = [
  ...accepted,
  ...obeyed,
  ...refused,
  ...failures,
  ...http,
  ...wholeReplies,
  ...streams,
];
