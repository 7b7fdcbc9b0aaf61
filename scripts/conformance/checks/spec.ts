// Level `spec`: what SPEC.md states, sentence by sentence, as far as it can be seen from outside. Where SPEC.md says "not shown"
// nothing is asked for: a refusal may have any status from 400 to 499, an error any type and code.

import { CHUNK, ERROR, find, first, isCount, isObject, isText, list, REPLY } from "../shapes.ts";
import {
  chooseTool,
  expect,
  question,
  TOOLS,
  WORD,
  type Ask,
  type Check,
  type Exchange,
  type Need,
} from "../suite.ts";
import {
  allSame,
  chunksOf,
  choicesOf,
  contentOf,
  idHeader,
  kit,
  overLimit,
  streamed,
} from "./kit.ts";

const [REQUEST, MESSAGE, REPLY_SECTION, CHUNK_SECTION] = [
  "SPEC.md Chat completion request",
  "SPEC.md Message",
  "SPEC.md Chat completion response",
  "SPEC.md Stream chunk",
];
const [ID, ROUTING, ENDPOINT, ERRORS] = [
  "SPEC.md Request ID",
  "SPEC.md Routing aliases",
  "SPEC.md POST /v1/chat/completions",
  "SPEC.md Errors",
];

const { check, rule, accepts, refuses, fieldRules } = kit("spec");

const ownId = ({ request }: Exchange) => request.headers?.["x-request-id"];

/** All values that the exchanges have at a place, each no more than once. */
const allDiffer = (values: readonly unknown[]) =>
  expect(
    new Set(values).size === values.length,
    "another one each time",
    values.find((value, index) => values.indexOf(value) < index),
  );

const echoes = (id: string, title: string, value: string, ask: Ask): Check =>
  check(`request-id.${id}`, ID, title, async (t) =>
    expectEcho(await t.ask(ask, { headers: { "x-request-id": value } }), value),
  );
const expectEcho = (exchange: Exchange, value: string) =>
  expect(idHeader(exchange) === value, `X-Request-Id: ${value}`, idHeader(exchange));

const service: Check[] = [
  {
    id: "spec.answers",
    source: "SPEC.md What the service does",
    title: "whatever is asked of it over HTTP, there is an answer",
    when: "last",
    run: ({ unanswered }) => expect(unanswered.length === 0, "an answer", unanswered.join("; ")),
  },
];

const requestIds: Check[] = [
  rule(
    "response",
    "request-id.present",
    ID,
    "every response carries X-Request-Id, once",
    ({ answer }) => {
      const count = answer.rawHeaders.filter(
        (name, index) => index % 2 === 0 && name.toLowerCase() === "x-request-id",
      ).length;
      expect(count === 1, "one header X-Request-Id", count);
    },
  ),
  rule(
    "response",
    "request-id.format",
    ID,
    "a generated id is req_ and 32 hexadecimal characters",
    (exchange) => {
      if (ownId(exchange) === undefined && idHeader(exchange) !== undefined)
        expect(
          /^req_[0-9a-f]{32}$/i.test(String(idHeader(exchange))),
          "req_ and 32 hexadecimal characters",
          idHeader(exchange),
        );
    },
  ),
  {
    id: "spec.request-id.unique",
    source: ID,
    title: "each request without an id gets one of its own",
    when: "last",
    run: ({ seen }) =>
      allDiffer(
        seen
          .filter((each) => ownId(each) === undefined && idHeader(each) !== undefined)
          .map(idHeader),
      ),
  },
  echoes("echo", "the client's value comes back with a whole reply", "conformance-whole", {}),
  echoes("echo.stream", "the client's value comes back with a stream", "conformance-stream", {
    stream: true,
  }),
  echoes("echo.error", "the client's value comes back with an error", "conformance-error", {
    messages: 7,
  }),
  echoes(
    "echo.free-form",
    "the client's value need not look like a generated one",
    '7 {Any: value}/"of" the=client; it\'s 100%',
    {},
  ),
  check("request-id.echo.healthz", ID, "the client's value comes back from /healthz", async (t) => {
    expectEcho(
      await t.call({
        method: "GET",
        path: "/healthz",
        headers: { "x-request-id": "conformance-healthz" },
      }),
      "conformance-healthz",
    );
  }),
  check("request-id.echo.again", ID, "a value that was used before is used again", async (t) => {
    for (let i = 0; i < 2; i += 1)
      expectEcho(
        await t.ask({}, { headers: { "x-request-id": "conformance-again" } }),
        "conformance-again",
      );
  }),
  check(
    "request-id.malformed",
    ID,
    "the answer to what is not even HTTP carries X-Request-Id",
    async (t) => {
      const answer = await t.client.raw("this is not HTTP\r\n\r\n");
      expect(
        /^x-request-id: *\S/im.test(answer.split("\r\n\r\n")[0]!),
        "a header X-Request-Id",
        answer,
      );
    },
  ),
  rule(
    "error",
    "request-id.in-error",
    ID,
    "error.request_id is the same as X-Request-Id",
    (exchange) => {
      const [inBody, inHeader] = [first(exchange.json, "error.request_id"), idHeader(exchange)];
      if (isText(inBody) && inHeader !== undefined)
        expect(inBody === inHeader, `request_id ${inHeader}`, inBody);
    },
  ),
];

const health: Check[] = [
  check(
    "healthz",
    "SPEC.md GET /healthz",
    "200 while the process is running, without a key and without a version in the path",
    async (t) => {
      const { answer } = await t.call({ method: "GET", path: "/healthz" });
      expect(answer.status === 200, "status 200", answer.status);
    },
  ),
  check("healthz.any-key", "SPEC.md GET /healthz", "a key is not looked at", async (t) => {
    const { answer } = await t.call({
      method: "GET",
      path: "/healthz",
      headers: { authorization: "Bearer no-such-key" },
    });
    expect(answer.status === 200, "status 200", answer.status);
  }),
];

const unlike = (model: unknown, name: string) =>
  expect(isText(model) && model !== name, `the name of a model behind ${name}`, model);

const routing: Check[] = [
  check(
    "model.canonical",
    ROUTING,
    "with a canonical name, model in the reply is the name that was requested",
    async (t) => {
      const { json } = await t.answered({ model: t.model });
      expect(first(json, "model") === t.model, t.model, first(json, "model"));
    },
    "model",
  ),
  check(
    "model.canonical.stream",
    ROUTING,
    "with a canonical name, model in each chunk is the name that was requested",
    async (t) => {
      for (const chunk of chunksOf(await t.answered({ stream: true })))
        expect(first(chunk, "model") === t.model, t.model, first(chunk, "model"));
    },
    "model",
  ),
  check(
    "alias.chat",
    ROUTING,
    "auto/chat answers, and model is the name of the model that served",
    async (t) => {
      unlike(first((await t.answered({ model: t.alias })).json, "model"), t.alias);
    },
    "alias",
  ),
  check(
    "alias.stream",
    ROUTING,
    "in a stream, too, model is the name of the model that served",
    async (t) => {
      for (const chunk of chunksOf(await t.answered({ model: t.alias, stream: true })))
        unlike(first(chunk, "model"), t.alias);
    },
    "alias",
  ),
  check(
    "alias.reasoning",
    ROUTING,
    "auto/reasoning answers, and model is the name of the model that served",
    async (t) => {
      unlike(
        first((await t.answered({ model: "auto/reasoning" })).json, "model"),
        "auto/reasoning",
      );
    },
    "alias",
    "reasoning",
  ),
  check(
    "alias.names-a-model",
    ROUTING,
    "the name that an alias answers with is a canonical one: asked for, it answers under that name",
    async (t) => {
      const served = first(
        (await t.answered({ model: t.alias, messages: question("Who is there?") })).json,
        "model",
      );
      const { json } = await t.answered({ model: served, messages: question("Who are you?") });
      expect(first(json, "model") === served, String(served), first(json, "model"));
    },
    "alias",
  ),
  check(
    "alias.same-format",
    ROUTING,
    "an alias takes a request with many fields as a canonical name does",
    async (t) => void (await t.answered({ model: t.alias, ...MANY })),
    "alias",
  ),
  refuses("model.unknown", ROUTING, "a name that is no model gets an error, not another model", {
    model: "no-such-model",
  }),
  refuses("alias.unknown", ROUTING, "a name that looks like an alias and is none gets an error", {
    model: "auto/no-such-alias",
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

/** The ends of a range belong to it; what is beyond does not. */
const ranges: Check[] = (
  [
    ["temperature", 0, 2, 0.01],
    ["top_p", 0, 1, 0.01],
    ["frequency_penalty", -2, 2, 0.01],
    ["presence_penalty", -2, 2, 0.01],
    ["top_logprobs", 0, 20, 1],
  ] as const
).flatMap(([name, low, high, step]) => {
  const needs: Need[] = name === "top_logprobs" ? ["logprobs"] : [];
  const set = (value: unknown) => ({ [name]: value, ...(needs.length > 0 && { logprobs: true }) });
  return [
    accepts(`${name}.lowest`, REQUEST, `${name} may be ${low}`, set(low), ...needs),
    accepts(`${name}.highest`, REQUEST, `${name} may be ${high}`, set(high), ...needs),
    refuses(`${name}.below`, REQUEST, `${name} may not be ${low - step}`, set(low - step)),
    refuses(`${name}.above`, REQUEST, `${name} may not be ${high + step}`, set(high + step)),
    refuses(`${name}.type`, REQUEST, `${name} is a number, not a string`, set(String(high))),
  ];
});

const requests: Check[] = [
  accepts("request.many-fields", REQUEST, "a request may set many fields at once", MANY),
  refuses("model.missing", REQUEST, "model is required", { model: undefined }),
  refuses("model.type", REQUEST, "model is a string", { model: 7 }),
  refuses("messages.missing", REQUEST, "messages is required", { messages: undefined }),
  refuses("messages.type", REQUEST, "messages is an array", { messages: "Say hello." }),
  refuses("messages.element", REQUEST, "messages is an array of objects", {
    messages: ["Say hello."],
  }),
  refuses("body.not-json", ENDPOINT, "the body is JSON", '{"model": '),
  refuses("body.empty", ENDPOINT, "there is a body", ""),
  refuses("body.not-an-object", ENDPOINT, "the body is an object", "[]"),

  accepts("messages.system", MESSAGE, "a system message may come first", {
    messages: [{ role: "system", content: "Be brief." }, ...question("Are you there?")],
  }),
  accepts("messages.assistant", MESSAGE, "an assistant message carries an earlier reply", {
    messages: [
      ...question("One."),
      { role: "assistant", content: "Two." },
      ...question("And then?"),
    ],
  }),
  refuses("role.missing", MESSAGE, "role is required", { messages: [{ content: "Say hello." }] }),
  refuses("role.unknown", MESSAGE, "role is none but those that are listed", {
    messages: [{ role: "narrator", content: "Say hello." }],
  }),
  refuses("role.type", MESSAGE, "role is a string", {
    messages: [{ role: 7, content: "Say hello." }],
  }),
  refuses("content.missing", MESSAGE, "content is required", { messages: [{ role: "user" }] }),
  refuses("content.type", MESSAGE, "content is not a number", {
    messages: [{ role: "user", content: 7 }],
  }),

  accepts("stream.false", REQUEST, "stream may be false", {
    stream: false,
    messages: question("Whole?"),
  }),
  refuses("stream.type", REQUEST, "stream is a boolean", { stream: "yes" }),
  accepts("max_tokens.accepted", REQUEST, "max_tokens may be set", { max_tokens: 64 }),
  refuses("max_tokens.type", REQUEST, "max_tokens is a number, not a string", { max_tokens: "64" }),
  refuses("max_tokens.integer", REQUEST, "max_tokens is an integer", { max_tokens: 1.5 }),
  check(
    "max_tokens.obeyed",
    REQUEST,
    'no more than max_tokens are generated, and a reply that was cut short says "length"',
    async (t) => {
      const { json } = await t.answered({
        max_tokens: 5,
        messages: question("Count from one to twenty, in words."),
      });
      const [tokens, reason] = [
        first(json, "usage.completion_tokens"),
        first(json, "choices[].finish_reason"),
      ];
      expect(isCount(tokens) && tokens <= 5, "at most 5 completion_tokens", tokens);
      expect(reason === "length", 'finish_reason "length"', reason);
    },
  ),
  check(
    "max_tokens.obeyed.stream",
    CHUNK_SECTION,
    'a stream that was cut short ends with "length"',
    async (t) => {
      const reason = choicesOf(
        await t.answered({
          stream: true,
          max_tokens: 5,
          messages: question("Count from one to twenty, in words."),
        }),
      )
        .map((choice) => first(choice, "finish_reason"))
        .at(-1);
      expect(reason === "length", 'finish_reason "length"', reason);
    },
  ),

  check("stop.string", REQUEST, "generation stops at a sequence given as a string", async (t) => {
    const content = contentOf(await t.answered({ stop: WORD }));
    expect(!content.includes(WORD), `a reply that ends before "${WORD}"`, content);
  }),
  check("stop.array", REQUEST, "generation stops at any of several sequences", async (t) => {
    const content = contentOf(await t.answered({ stop: ["zebra", WORD] }));
    expect(!content.includes(WORD), `a reply that ends before "${WORD}"`, content);
  }),
  accepts("stop.four", "SPEC.md Limits", "stop may hold 4 sequences", {
    stop: ["ox", "yak", "zebra", "gnu"],
  }),
  refuses("stop.five", "SPEC.md Limits", "stop holds at most 4 sequences", {
    stop: ["ox", "yak", "zebra", "gnu", "emu"],
  }),
  refuses("stop.type", REQUEST, "stop is an array, a string or null", { stop: 7 }),
  refuses("stop.element", REQUEST, "stop is an array of strings", { stop: [7] }),
  ...["stop", "tools", "thinking", "top_logprobs", "stream_options"].map((name) =>
    accepts(`${name}.null`, REQUEST, `${name} may be null, its default`, { [name]: null }),
  ),

  check(
    "tool_choice.default",
    REQUEST,
    'tool_choice is "none" by default: without it no tool is called',
    async (t) => {
      expectNoCall(await t.answered({ ...TOOLS, messages: question("Which time is it in Oslo?") }));
    },
    "tools",
  ),
  check(
    "tool_choice.none",
    REQUEST,
    'tool_choice "none": no tool is called',
    async (t) => expectNoCall(await t.answered({ ...TOOLS, tool_choice: "none" })),
    "tools",
  ),
  accepts(
    "tool_choice.auto",
    REQUEST,
    'tool_choice may be "auto"',
    { ...TOOLS, tool_choice: "auto" },
    "tools",
  ),
  check(
    "tool_choice.named",
    REQUEST,
    "an object names a specific tool, which is then called",
    async (t) => {
      const { json } = await t.answered({
        ...TOOLS,
        tool_choice: chooseTool("send_mail"),
        messages: question("Write to ada@example.com."),
      });
      const name = first(json, "choices[].message.tool_calls[].function.name");
      expect(name === "send_mail", "a call of send_mail", name ?? first(json, "choices[].message"));
    },
    "tools",
  ),
  check(
    "finish_reason.tool_calls",
    REPLY_SECTION,
    'a reply that calls a tool ends with "tool_calls"',
    async (t) => {
      const { json } = await t.answered({
        ...TOOLS,
        tool_choice: chooseTool("get_time"),
        messages: question("Which time is it in Rome?"),
      });
      const reason = first(json, "choices[].finish_reason");
      expect(reason === "tool_calls", 'finish_reason "tool_calls"', reason);
    },
    "tools",
  ),
  refuses("tools.type", REQUEST, "tools is an array", { tools: "get_time" }),
  refuses("tool_choice.type", REQUEST, "tool_choice is a string or an object", {
    ...TOOLS,
    tool_choice: 7,
  }),

  accepts("response_format.text", REQUEST, "response_format may be its default", {
    response_format: { type: "text" },
    messages: question("As text?"),
  }),
  check(
    "response_format.json_object",
    REQUEST,
    "json_object turns on JSON output mode: the content is a JSON object",
    async (t) => {
      const content = contentOf(
        await t.answered({
          response_format: { type: "json_object" },
          messages: question("What is 6 times 7? Answer as JSON."),
        }),
      );
      expect(
        content.trim().startsWith("{") && isObject(tryParse(content)),
        "a JSON object as text",
        content,
      );
    },
    "json",
  ),
  refuses("response_format.type", REQUEST, "response_format is an object", {
    response_format: "json_object",
  }),

  refuses("thinking.type", REQUEST, "thinking is an object", { thinking: "enabled" }),
  check(
    "thinking.whole",
    ENDPOINT,
    "with thinking enabled, a reasoning model's message has reasoning_content",
    async (t) => {
      const { json } = await t.answered({
        model: t.reasoningModel,
        thinking: { type: "enabled" },
        messages: question("What is 6 times 7?"),
      });
      const thoughts = first(json, "choices[].message.reasoning_content");
      expect(isText(thoughts), "reasoning_content, a non-empty string", thoughts);
    },
    "reasoning",
  ),
  check(
    "thinking.stream",
    ENDPOINT,
    "with thinking enabled, a reasoning model's deltas have reasoning_content",
    async (t) => {
      const stream = await t.answered({
        model: t.reasoningModel,
        stream: true,
        thinking: { type: "enabled" },
        messages: question("What is 6 times 7?"),
      });
      const thoughts = streamed(stream, "reasoning_content");
      expect(thoughts !== "", "deltas with reasoning_content", stream.answer.text);
    },
    "reasoning",
  ),
  check(
    "thinking.plain-model",
    REPLY_SECTION,
    "reasoning_content is present on reasoning models only",
    async (t) => {
      const { json } = await t.answered({
        thinking: { type: "enabled" },
        messages: question("What is 6 times 7?"),
      });
      const thoughts = first(json, "choices[].message.reasoning_content");
      expect(
        (thoughts ?? "") === "",
        "no reasoning_content of a model that cannot think",
        thoughts,
      );
    },
    "plain",
  ),
  rule(
    "reply",
    "thinking.not-asked-for",
    REPLY_SECTION,
    "without thinking enabled a message has no reasoning_content",
    ({ asked, json }) => {
      if (first(asked, "thinking.type") !== "enabled")
        for (const { value } of find(json, "choices[].message.reasoning_content"))
          expect((value ?? "") === "", "no reasoning_content", value);
    },
  ),
  rule(
    "stream",
    "thinking.not-asked-for.stream",
    CHUNK_SECTION,
    "without thinking enabled no delta has reasoning_content",
    (stream) => {
      if (first(stream.asked, "thinking.type") !== "enabled")
        expect(
          streamed(stream, "reasoning_content") === "",
          "no reasoning_content",
          streamed(stream, "reasoning_content"),
        );
    },
  ),

  check(
    "logprobs.true",
    REQUEST,
    "logprobs true returns log probabilities with the choice",
    async (t) => {
      const { json } = await t.answered({
        logprobs: true,
        messages: question("How likely is that?"),
      });
      const given = first(json, "choices[].logprobs");
      expect(isObject(given), "choices[0].logprobs, an object", given);
    },
    "logprobs",
  ),
  refuses("logprobs.type", REQUEST, "logprobs is a boolean", { logprobs: "yes" }),
  refuses("top_logprobs.integer", REQUEST, "top_logprobs is an integer", {
    logprobs: true,
    top_logprobs: 1.5,
  }),

  accepts("stream_options.stream", REQUEST, "stream_options may be set when stream is true", {
    stream: true,
    stream_options: { include_usage: true },
  }),
  refuses("stream_options.alone", REQUEST, "stream_options may not be set when stream is omitted", {
    stream_options: { include_usage: true },
  }),
  refuses("stream_options.whole", REQUEST, "stream_options may not be set when stream is false", {
    stream: false,
    stream_options: { include_usage: true },
  }),
  refuses("stream_options.type", REQUEST, "stream_options is an object", {
    stream: true,
    stream_options: "include_usage",
  }),
];

const expectNoCall = ({ json }: Exchange): void => {
  const calls = first(json, "choices[].message.tool_calls");
  expect(list(calls).length === 0, "no tool_calls", calls);
};
const tryParse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const replies: Check[] = [
  rule(
    "reply",
    "reply.json",
    ENDPOINT,
    "a reply that is not streamed is a JSON object",
    ({ json, answer }) => expect(isObject(json), "a JSON object", answer.text),
  ),
  ...fieldRules("reply", "reply", REPLY_SECTION, REPLY),
  {
    id: "spec.reply.id.unique",
    source: REPLY_SECTION,
    title: "id is a unique identifier of the completion",
    when: "last",
    run: ({ seen }) =>
      allDiffer(
        seen.map(({ json, events }) => first(json ?? events[0]?.json, "id")).filter(isText),
      ),
  },
  rule(
    "reply",
    "usage.sum",
    REPLY_SECTION,
    "total_tokens is prompt_tokens plus completion_tokens",
    ({ json }) => sum(json, "total_tokens", "prompt_tokens", "completion_tokens"),
  ),
  rule(
    "reply",
    "usage.cache-sum",
    REPLY_SECTION,
    "prompt tokens were served from cache or not",
    ({ json }) => sum(json, "prompt_tokens", "prompt_cache_hit_tokens", "prompt_cache_miss_tokens"),
  ),
  check(
    "reply.content",
    "SPEC.md What the service does",
    "the reply answers the messages",
    async (t) => {
      const content = contentOf(await t.answered());
      expect(
        content.toLowerCase().includes(WORD),
        `a reply with the word "${WORD}", which was asked for`,
        content,
      );
    },
  ),
];

/** Where the numbers are none, that is the fault of another rule. */
function sum(json: unknown, whole: string, ...parts: readonly string[]): void {
  const [total, ...rest] = [whole, ...parts].map((name) => first(json, `usage.${name}`));
  if (isCount(total) && rest.every(isCount))
    expect(
      rest.reduce((a, b) => a + b, 0) === total,
      `${whole} to be ${parts.join(" + ")}`,
      first(json, "usage"),
    );
}

const streams: Check[] = [
  rule("stream", "stream.media-type", ENDPOINT, "a stream is text/event-stream", ({ answer }) => {
    expect(
      /^text\/event-stream\b/.test(answer.headers["content-type"] ?? ""),
      "Content-Type: text/event-stream",
      answer.headers["content-type"],
    );
  }),
  rule(
    "stream",
    "stream.lines",
    ENDPOINT,
    "each event is one line of the form `data: ...`, then a blank line",
    ({ events, rest }) => {
      const harmless = (line: string) => /^(:|(event|id|retry)\b)/.test(line); // no events by themselves; another rule is about them
      for (const { lines, data } of events)
        expect(
          data === undefined
            ? lines.every(harmless)
            : lines.length === 1 && lines[0]!.startsWith("data: "),
          "one line `data: ...`",
          lines.join("\n"),
        );
      expect(rest === "", "a blank line at the end", rest);
    },
  ),
  rule(
    "stream",
    "stream.json",
    ENDPOINT,
    "each event but the last is a JSON object",
    ({ events }) => {
      for (const { data, json } of events)
        expect(
          data === undefined || data.trim() === "[DONE]" || isObject(json),
          "a JSON object",
          data,
        );
    },
  ),
  rule(
    "stream",
    "stream.done",
    ENDPOINT,
    "a stream ends with the line `data: [DONE]`, once",
    ({ events }) => {
      const terminators = events.filter(({ data }) => data?.trim() === "[DONE]").length;
      expect(
        terminators === 1 && events.at(-1)?.lines.join("\n") === "data: [DONE]",
        "`data: [DONE]` as the last event",
        events.at(-1)?.lines.join("\n"),
      );
    },
  ),
  ...fieldRules("stream", "chunk", CHUNK_SECTION, CHUNK),
  rule(
    "stream",
    "chunk.id.same",
    CHUNK_SECTION,
    "id identifies the completion: it is the same in all its chunks",
    (stream) =>
      allSame(
        chunksOf(stream)
          .map((chunk) => first(chunk, "id"))
          .filter(isText),
      ),
  ),
  rule(
    "stream",
    "chunk.role.first",
    CHUNK_SECTION,
    "delta.role is in the first chunk",
    (stream) => {
      const role = first(chunksOf(stream)[0], "choices[].delta.role");
      expect(role !== undefined, "a role in the first chunk", chunksOf(stream)[0]);
    },
  ),
  rule(
    "stream",
    "chunk.role.once",
    CHUNK_SECTION,
    "delta.role is present only in the first chunk",
    (stream) => {
      for (const chunk of chunksOf(stream).slice(1))
        expect(
          find(chunk, "choices[].delta.role").every(({ value }) => value === undefined),
          "no role after the first chunk",
          chunk,
        );
    },
  ),
  rule(
    "stream",
    "chunk.finish_reason.null",
    "SPEC.md States and transitions",
    "finish_reason is null in every chunk except the last",
    (stream) => {
      for (const choice of choicesOf(stream).slice(0, -1))
        if (isObject(choice))
          expect(!isText(choice["finish_reason"]), "null before the last chunk", choice);
    },
  ),
  rule(
    "stream",
    "chunk.finish_reason.last",
    "SPEC.md States and transitions",
    "the final chunk carries a finish_reason",
    (stream) => {
      const reason = first(choicesOf(stream).at(-1), "finish_reason");
      expect(reason !== null, "a finish_reason in the last chunk with a choice", reason);
    },
  ),
  check(
    "stream.content",
    CHUNK_SECTION,
    "concatenated, delta.content gives the full reply",
    async (t) => {
      const content = streamed(await t.answered({ stream: true }), "content");
      expect(
        content.toLowerCase().includes(WORD),
        `a reply with the word "${WORD}", which was asked for`,
        content,
      );
    },
  ),
];

const auth: Check[] = [
  ["auth.missing", "a chat request without Authorization is refused", undefined],
  ["auth.unknown", "a key that was never issued is refused", "Bearer no-such-key"],
  ["auth.empty", "an empty key is refused", "Bearer "],
  ["auth.scheme", "another scheme than Bearer is refused", "Basic bm86c3VjaGtleQ=="],
].map(([id, title, authorization]) =>
  check(
    id!,
    "SPEC.md Authentication",
    title!,
    async (t) => void (await t.refused({}, { headers: { authorization } })),
  ),
);

const errors: Check[] = [
  rule(
    "error",
    "error.json",
    ERRORS,
    "an error's body is JSON with one top-level object, `error`",
    ({ json, answer }) => {
      expect(
        isObject(json) && isObject(json["error"]) && Object.keys(json).length === 1,
        'a body {"error": {...}}',
        answer.text,
      );
    },
  ),
  ...fieldRules("error", "error", ERRORS, ERROR).map((each) => ({
    ...each,
    id: each.id.replace("error.error.", "error."),
  })),
  rule(
    "response",
    "error.status",
    ERRORS,
    "500 and 503 are the server-side failures: no other status from 500 on",
    ({ answer }) => {
      expect(
        answer.status < 500 || answer.status === 500 || answer.status === 503,
        "500 or 503",
        answer.status,
      );
    },
  ),
  rule(
    "response",
    "error.any-status",
    ERRORS,
    "any status other than 200 counts as an error: a success has no other",
    ({ answer }) => {
      expect(
        answer.status === 200 || answer.status >= 400,
        "200, or a status from 400 on",
        answer.status,
      );
    },
  ),
];

const RPM = "SPEC.md Errors, requests-per-minute limit exceeded";
const limits: Check[] = [
  check(
    "limit.exists",
    "SPEC.md Limits",
    "one request more than the limit in a minute is not answered",
    async (t) => {
      const statuses = (await t.overLimit()).map(({ answer }) => answer.status);
      expect(
        statuses.at(-1) !== 200,
        `a refusal after ${t.options.limited!.rpm} requests`,
        statuses.join(" "),
      );
    },
    "limited",
  ),
  check(
    "limit.status",
    RPM,
    "exceeding the limit returns 429",
    async (t) => {
      const statuses = (await t.overLimit())
        .map(({ answer }) => answer.status)
        .filter((status) => status !== 200);
      expect(
        statuses.every((status) => status === 429),
        "429",
        statuses.join(" "),
      );
    },
    "limited",
  ),
  ...(
    [
      ["type", "rate_limit_error"],
      ["code", "rate_limit_exceeded"],
    ] as const
  ).map(([name, value]) =>
    check(
      `limit.${name}`,
      RPM,
      `its ${name} is ${value}`,
      async (t) => {
        const got = first((await overLimit(t)).json, `error.${name}`);
        expect(got === value, value, got);
      },
      "limited",
    ),
  ),
  check(
    "limit.message",
    RPM,
    "its message says that the per-minute limit was exceeded, and gives a number of seconds to wait",
    async (t) => {
      const got = String(first((await overLimit(t)).json, "error.message"));
      expect(
        /minute/i.test(got) && /\b\d+ ?s(ec(ond)?s?)?\b/i.test(got),
        "words about the minute's limit and a number of seconds",
        got,
      );
    },
    "limited",
  ),
];

export const specChecks: readonly Check[] = [
  ...service,
  ...requestIds,
  ...health,
  ...routing,
  ...requests,
  ...ranges,
  ...replies,
  ...streams,
  ...auth,
  ...errors,
  ...limits,
];
