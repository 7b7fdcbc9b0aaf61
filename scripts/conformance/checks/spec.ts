// Level `spec`: what every gateway of this contract must do (contract.md), as far as it shows from
// outside. Where the contract leaves a choice, any choice passes: a rejection may have any status
// from 400 to 499, an error any type and code. This file has the requests; answers.ts and http.ts
// have the rules about every answer.

import * as expect from "../expect.ts";
import * as is from "../forms.ts";
import { first, isText, list, Shape } from "../shapes.ts";
import { chooseTool, question, TOOLS, WORD } from "../tester.ts";
import { after, sectionsOf, user } from "./kit.ts";

const section = sectionsOf("spec");
const fields = section('contract.md "Request fields"');
const routing = section('contract.md "Routing aliases"');

const STREAM = { stream: true };
/** Values within their ranges, none of them at a limit. */
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
const unlike = (name: string) =>
  new Shape(`the name of a model behind ${name}`, (model) => isText(model) && model !== name);

routing.cases({
  "model.canonical [model]: model in the reply is the requested canonical name": (t) => [
    {},
    { "json.model": t.model },
  ],
  "model.canonical.stream [model]: model in each chunk is the requested name": (t) => [
    STREAM,
    { "parts[].model": t.model },
  ],
  "alias.chat [alias]: auto/chat answers, and model is the one that served": (t) => [
    { model: t.alias },
    { "json.model": unlike(t.alias) },
  ],
  "alias.stream [alias]: in a stream, too, model is the one that served": (t) => [
    { model: t.alias, ...STREAM },
    { "parts[].model": unlike(t.alias) },
  ],
  "alias.reasoning [alias reasoning]: auto/reasoning answers, and model is the one that served": [
    { model: "auto/reasoning" },
    { "json.model": unlike("auto/reasoning") },
  ],
  "alias.same-format [alias]: an alias accepts the same fields as a canonical name": (t) => [
    { model: t.alias, ...MANY },
    {},
  ],
});
routing.checks({
  async "alias.names-a-model [alias]: the model name in an alias's reply can be requested"(t) {
    const { json } = await t.answered({ model: t.alias, messages: question("Who is there?") });
    const model = first(json, "model");
    const second = await t.answered({ model, messages: question("Who are you?") });
    expect.same(first(second.json, "model"), model);
  },
});
routing.refuses({
  "model.unknown: an unknown model name gets an error, not another model": {
    model: "no-such-model",
  },
  "alias.unknown: an unknown alias gets an error": {
    model: "auto/no-such-alias",
  },
});

const RANGES = [
  ["temperature", 0, 2, 0.01],
  ["top_p", 0, 1, 0.01],
  ["frequency_penalty", -2, 2, 0.01],
  ["presence_penalty", -2, 2, 0.01],
  ["top_logprobs", 0, 20, 1],
] as const;
/** The limits of a range are valid; values beyond them are not. */
for (const [name, low, high, step] of RANGES) {
  const isTop = name === "top_logprobs";
  const need = isTop ? " [logprobs]" : "";
  const set = (value: unknown) => ({ [name]: value, ...(isTop && { logprobs: true }) });
  fields.accepts({
    [`${name}.lowest${need}: ${name} may be ${low}`]: set(low),
    [`${name}.highest${need}: ${name} may be ${high}`]: set(high),
  });
  fields.refuses({
    [`${name}.below: ${name} may not be ${low - step}`]: set(low - step),
    [`${name}.above: ${name} may not be ${high + step}`]: set(high + step),
    [`${name}.type: ${name} is a number, not a string`]: set(String(high)),
  });
}

const USAGE = { include_usage: true };
fields.accepts({
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
    ...STREAM,
    stream_options: USAGE,
  },
});
for (const name of ["stop", "tools", "thinking", "top_logprobs", "stream_options"])
  fields.accepts({ [`${name}.null: ${name} may be null, its default`]: { [name]: null } });
section('contract.md "Messages"').accepts({
  "messages.system: a system message may come first": {
    messages: [{ role: "system", content: "Be brief." }, ...question("Are you there?")],
  },
  "messages.assistant: an assistant message carries an earlier reply": after(
    { role: "assistant", content: "Two." },
    ...question("Go on"),
  ),
});

section('contract.md "Endpoints"').refuses({
  "body.not-json: the body is JSON": '{"model": ',
  "body.empty: there is a body": "",
  "body.not-an-object: the body is an object": "[]",
});
fields.refuses({
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
  "stream_options.alone: stream_options needs stream": { stream_options: USAGE },
  "stream_options.whole: stream_options may not be set when stream is false": {
    stream: false,
    stream_options: USAGE,
  },
  "stream_options.type: stream_options is an object": { ...STREAM, stream_options: "usage" },
});
section('contract.md "Messages"').refuses({
  "role.missing: role is required": { messages: [{ content: "Hi." }] },
  "role.unknown: role is one of those listed": { messages: [{ role: "me", content: "Hi." }] },
  "role.type: role is a string": { messages: [{ role: 7, content: "Hi." }] },
  "content.missing: content is required": user(undefined),
  "content.type: content is not a number": user(7),
});

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
const ANSWER_AS_JSON = question("6 times 7? Answer as JSON.");

fields.cases({
  'max_tokens.obeyed: no more than max_tokens are generated, and a cut reply says "length"': [
    COUNTING,
    { "usage.completion_tokens": is.atMost(5), finish: "length" },
  ],
  "stop.string: generation stops at one sequence": [{ stop: WORD }, { content: cut }],
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
    { response_format: { type: "json_object" }, messages: ANSWER_AS_JSON },
    { content: is.jsonText },
  ],
  "logprobs.true [logprobs]: logprobs true returns log probabilities with the choice": [
    { logprobs: true, messages: question("How likely is that?") },
    { "json.choices[].logprobs": is.object },
  ],
});
section('contract.md "Stream chunks"').cases({
  'max_tokens.obeyed.stream: a stream that was cut short ends with "length"': [
    { ...COUNTING, ...STREAM },
    { finish: "length" },
  ],
  "stream.content: concatenated, delta.content is the reply": [STREAM, { content: theWord }],
});
section('contract.md "Replies"').cases({
  "reply.content: the reply answers the messages": [{}, { content: theWord }],
  'finish_reason.tool_calls [tools]: a reply that calls a tool ends with "tool_calls"': [
    asksFor("get_time", "Which time is it in Rome?"),
    { finish: "tool_calls" },
  ],
  "thinking.plain-model [plain]: reasoning_content is present on reasoning models only": [
    THINKING,
    { [REASONING]: is.empty },
  ],
});
section('contract.md "Endpoints"').cases({
  "thinking.whole [reasoning]: a reasoning model that is to think has reasoning_content": (t) => [
    { ...THINKING, model: t.reasoningModel },
    { [REASONING]: is.text },
  ],
  "thinking.stream [reasoning]: its deltas have reasoning_content": (t) => [
    { ...THINKING, model: t.reasoningModel, ...STREAM },
    { thoughts: is.text },
  ],
});
