// Level `compatible`: what unmodified clients of other gateways need, where the contract leaves a
// choice and wire.md makes it. This file has the requests.

import { parseJson, type Exchange } from "../client.ts";
import * as expect from "../expect.ts";
import * as is from "../forms.ts";
import { first, isText, list } from "../shapes.ts";
import { chooseTool, PLACE, question, TOOLS, WORD, type Ask } from "../tester.ts";
import { after, headingOf, sectionsOf, user, valuesAt, withHeaders } from "./kit.ts";

const section = sectionsOf("compatible");
const envelope = section('wire.md "Request envelope"');
const fields = section('wire.md "Request fields"');
const messages = section('wire.md "Messages"');

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
  ...after({ role: "assistant", tool_calls: [call], ...assistant }, of),
});
const NULLABLE = [
  ...["stream", "temperature", "max_tokens", "max_completion_tokens", "top_p", "stop", "tools"],
  ...["frequency_penalty", "presence_penalty", "tool_choice", "response_format", "thinking"],
  ...["logprobs", "top_logprobs", "stream_options", "n", "seed", "user", "parallel_tool_calls"],
  "reasoning_effort",
];
const FUNCTION = { type: "function", function: { name: "f" } };

envelope.cases({
  "headers.sdk: headers that SDKs add are ignored": withHeaders({
    "x-stainless-lang": "js",
    "openai-organization": "org",
    "openai-project": "p",
    accept: "application/json",
  }),
  "headers.charset: Content-Type may have parameters": withHeaders({
    "content-type": "application/json; charset=utf-8",
  }),
  "body.bom: a byte order mark before the JSON is accepted": ({ model }) => [
    `\uFEFF${JSON.stringify({ model, messages: HI })}`,
    {},
  ],
});
envelope.accepts({
  "body.nulls: null is the same as absent, for every optional field": Object.fromEntries(
    NULLABLE.map((name) => [name, null]),
  ),
});
section('contract.md "Authentication"').cases({
  "bearer.case: the scheme's name may be in any case": (t) =>
    withHeaders({ authorization: `bearer ${t.options.key}` }),
});
fields.accepts({
  "body.unknown-field: an unknown field is ignored": { provider_options: { a: 1 } },
  "message.unknown-field: an unknown field of a message is ignored": {
    messages: [{ ...HI[0], cache_control: { type: "ephemeral" } }],
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
});
section('wire.md "Tools"').accepts({
  "tools.bare [tools]: description, parameters and strict may be missing": { tools: [FUNCTION] },
  'tool_choice.none-without-tools: tool_choice "none" needs no tools': { tool_choice: "none" },
});
messages.accepts({
  "message.name: a message may have a name": { messages: [{ ...HI[0], name: "ada" }] },
  "role.developer: role developer is taken for system": {
    messages: [{ role: "developer", content: "Be brief." }, ...HI],
  },
  "content.empty: an empty string is content": user(""),
  "content.refusal-part: an assistant's refusal may be sent back as a part": after(
    { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
    ...HI,
  ),
  "assistant.reasoning: reasoning_content of an earlier reply may be sent back": after(
    { role: "assistant", content: "Yes.", reasoning_content: "Hm." },
    ...HI,
  ),
  "tool-loop.null [tools]: content may be null beside tool_calls": loop({ content: null }),
  "tool-loop.absent [tools]: content may be missing beside tool_calls": loop({}),
  "tool-loop.empty [tools]: content may be empty beside tool_calls": loop({ content: "" }),
  "tool-loop.bad-arguments [tools]: arguments that a model wrote need not be JSON": loop({
    tool_calls: [badCall],
  }),
  "tool-loop.parts [tools]: a tool's result may be text parts, and have a name": loop(
    { content: null },
    { ...result, name: "get_time", content: [{ type: "text", text: "14:05" }] },
  ),
});

/** `title`: the status, the code and, where there is one, the param. */
export function isError({ status, json }: Exchange, title: string): void {
  const [expected, code, param = null] = title.split(" ");
  const got = [status, first(json, "error.code"), first(json, "error.param") ?? null];
  expect.same(got, [Number(expected), code, param]);
}

/** Rejected requests by their error: `id: status code param`. */
const REFUSED: Readonly<Record<string, Ask>> = {
  "not-json: 400 invalid_json": '{"model": "m",',
  "no-body: 400 invalid_json": "",
  "not-an-object: 400 invalid_type": "[]",
  "no-model: 400 missing_required_parameter model": { model: undefined },
  "no-messages: 400 missing_required_parameter messages": { messages: undefined },
  "empty-messages: 400 invalid_value messages": { messages: [] },
  "no-role: 400 missing_required_parameter messages[1].role": after({ content: "Hi." }),
  "bad-role: 400 invalid_value messages[0].role": { messages: [{ ...HI[0], role: "narrator" }] },
  "function-role: 400 invalid_value messages[1].role": after({ ...HI[0], role: "function" }),
  "no-content: 400 missing_required_parameter messages[0].content": user(undefined),
  "assistant-without-content: 400 missing_required_parameter messages[0].content": {
    messages: [{ role: "assistant" }],
  },
  "image [plain]: 400 unsupported_value messages[0].content": user([
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
  ]),
  "no-tool-call-id: 400 missing_required_parameter messages[1].tool_call_id": after({
    ...result,
    tool_call_id: undefined,
  }),
  "unmatched-tool-call-id: 400 invalid_value messages[1].tool_call_id": after(result),
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
    tools: [{ ...FUNCTION, function: { name: "no spaces" } }],
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
/** The same for requests with a wrong header. */
const REFUSED_HEADERS = {
  "no-key: 401 missing_api_key": { authorization: undefined },
  "bad-key: 401 invalid_api_key": { authorization: "Bearer no-such-key" },
  "media-type-sent: 415 unsupported_media_type": { "content-type": "text/plain" },
  "encoding-sent: 415 unsupported_media_type": { "content-encoding": "gzip" },
};
for (const [heading, asked, headers] of [
  ...Object.entries(REFUSED).map(([heading, fields]) => [heading, fields, {}] as const),
  ...Object.entries(REFUSED_HEADERS).map(([heading, headers]) => [heading, {}, headers] as const),
])
  section('contract.md "Errors"').checks({
    [`error.${heading}`]: async (t) =>
      isError(await t.ask(asked, { headers }), headingOf(heading).title),
  });

const LONG = question("Count from one to twenty, in words.");
const json_schema = { name: "place", schema: PLACE, strict: true };
const NO_SCHEMA = "'response_format' of type 'json_schema' is not supported with this model";
const parts = ["Say the word pine", "apple and nothing else."].map((text) => ({
  type: "text",
  text,
}));

fields.cases({
  "max_completion_tokens: max_completion_tokens is another name of max_tokens": [
    { messages: LONG, max_completion_tokens: 6 },
    { "usage.completion_tokens": is.atMost(6) },
  ],
  "max_completion_tokens.both: of max_tokens and max_completion_tokens the smaller counts": [
    { messages: LONG, max_tokens: 6, max_completion_tokens: 500 },
    { "usage.completion_tokens": is.atMost(6) },
  ],
});
section('contract.md "Request fields"').cases({
  'tool_choice.required [tools]: tool_choice "required": a tool is called': [
    { ...TOOLS, tool_choice: "required" },
    { "json.choices[].message.tool_calls[].function.name": is.text },
  ],
});
messages.cases({
  "content.parts: content may be text parts, which are joined without a separator": [
    user(parts),
    { content: new RegExp(WORD, "i") },
  ],
});
section('wire.md "Framing"').cases({
  "no-compression: a stream is not compressed, whatever the client accepts": [
    { stream: true },
    { "headers.content-encoding": undefined },
    { headers: { "accept-encoding": "gzip, deflate, br" } },
  ],
});
section('wire.md "Reply format"').checks({
  async "response_format.json_schema [json]: a schema is followed, or rejected in known words"(t) {
    const format = { type: "json_schema", json_schema };
    const { status, content, error, text } = await t.ask({ response_format: format });
    const isFollowed = status === 200 && isText(first(parseJson(content), "city"));
    const isKnown = status === 400 && String(first(error, "message")).includes(NO_SCHEMA);
    expect.that(isFollowed || isKnown, `{"city": "..."}, or 400 with: ${NO_SCHEMA}`, text);
  },
});
section('wire.md "Log probabilities"').checks({
  async "reply.top_logprobs [logprobs]: there are as many as requested, otherwise none"(t) {
    for (const top_logprobs of [2, undefined]) {
      const { json } = await t.answered({ logprobs: true, top_logprobs });
      const got = valuesAt(json, "choices[].logprobs.content[].top_logprobs");
      const most = top_logprobs ?? 0;
      const holds = got.length > 0 && got.every((each) => list(each).length <= most);
      expect.that(holds, `at most ${most} in each place`, got);
    }
  },
});
