// Level `spec`: what every gateway of this contract must do (contract.md), as far as it can be seen
// from outside. What the contract leaves open is not asked for: a refusal may have any status from
// 400 to 499, an error any type and code.

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
  'contract.md "Request fields"',
  'contract.md "Messages"',
  'contract.md "Replies"',
  'contract.md "Stream chunks"',
];
const [ID, ROUTING, ENDPOINT, ERRORS] = [
  'contract.md "Request ids"',
  'contract.md "Routing aliases"',
  'contract.md "Endpoints"',
  'contract.md "Errors"',
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
  check({
    id: `request-id.${id}`,
    source: ID,
    title,
    run: async (t) => expectEcho(await t.ask(ask, { headers: { "x-request-id": value } }), value),
  });
const expectEcho = (exchange: Exchange, value: string) =>
  expect(idHeader(exchange) === value, `X-Request-Id: ${value}`, idHeader(exchange));

const service: Check[] = [
  {
    id: "spec.answers",
    source: 'contract.md "Endpoints"',
    title: "whatever is asked of it over HTTP, there is an answer",
    when: "last",
    run: ({ unanswered }) => expect(unanswered.length === 0, "an answer", unanswered.join("; ")),
  },
];

const requestIds: Check[] = [
  rule({
    kind: "response",
    id: "request-id.present",
    source: ID,
    title: "every response carries X-Request-Id, once",
    look: ({ answer }) => {
      const count = answer.rawHeaders.filter(
        (name, index) => index % 2 === 0 && name.toLowerCase() === "x-request-id",
      ).length;
      expect(count === 1, "one header X-Request-Id", count);
    },
  }),
  rule({
    kind: "response",
    id: "request-id.format",
    source: ID,
    title: "a generated id is req_ and 32 hexadecimal characters",
    look: (exchange) => {
      if (ownId(exchange) === undefined && idHeader(exchange) !== undefined)
        expect(
          /^req_[0-9a-f]{32}$/i.test(String(idHeader(exchange))),
          "req_ and 32 hexadecimal characters",
          idHeader(exchange),
        );
    },
  }),
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
  check({
    id: "request-id.echo.healthz",
    source: ID,
    title: "the client's value comes back from /healthz",
    run: async (t) => {
      expectEcho(
        await t.call({
          method: "GET",
          path: "/healthz",
          headers: { "x-request-id": "conformance-healthz" },
        }),
        "conformance-healthz",
      );
    },
  }),
  check({
    id: "request-id.echo.again",
    source: ID,
    title: "a value that was used before is used again",
    run: async (t) => {
      for (let i = 0; i < 2; i += 1)
        expectEcho(
          await t.ask({}, { headers: { "x-request-id": "conformance-again" } }),
          "conformance-again",
        );
    },
  }),
  check({
    id: "request-id.malformed",
    source: ID,
    title: "the answer to what is not even HTTP carries X-Request-Id",
    run: async (t) => {
      const answer = await t.client.raw("this is not HTTP\r\n\r\n");
      expect(
        /^x-request-id: *\S/im.test(answer.split("\r\n\r\n")[0]!),
        "a header X-Request-Id",
        answer,
      );
    },
  }),
  rule({
    kind: "error",
    id: "request-id.in-error",
    source: ID,
    title: "error.request_id is the same as X-Request-Id",
    look: (exchange) => {
      const [inBody, inHeader] = [first(exchange.json, "error.request_id"), idHeader(exchange)];
      if (isText(inBody) && inHeader !== undefined)
        expect(inBody === inHeader, `request_id ${inHeader}`, inBody);
    },
  }),
];

const health: Check[] = [
  check({
    id: "healthz",
    source: 'contract.md "Endpoints"',
    title: "200 while the process is running, without a key and without a version in the path",
    run: async (t) => {
      const { answer } = await t.call({ method: "GET", path: "/healthz" });
      expect(answer.status === 200, "status 200", answer.status);
    },
  }),
  check({
    id: "healthz.any-key",
    source: 'contract.md "Endpoints"',
    title: "a key is not looked at",
    run: async (t) => {
      const { answer } = await t.call({
        method: "GET",
        path: "/healthz",
        headers: { authorization: "Bearer no-such-key" },
      });
      expect(answer.status === 200, "status 200", answer.status);
    },
  }),
];

const unlike = (model: unknown, name: string) =>
  expect(isText(model) && model !== name, `the name of a model behind ${name}`, model);

const routing: Check[] = [
  check({
    id: "model.canonical",
    source: ROUTING,
    title: "with a canonical name, model in the reply is the name that was requested",
    needs: ["model"],
    run: async (t) => {
      const { json } = await t.answered({ model: t.model });
      expect(first(json, "model") === t.model, t.model, first(json, "model"));
    },
  }),
  check({
    id: "model.canonical.stream",
    source: ROUTING,
    title: "with a canonical name, model in each chunk is the name that was requested",
    needs: ["model"],
    run: async (t) => {
      for (const chunk of chunksOf(await t.answered({ stream: true })))
        expect(first(chunk, "model") === t.model, t.model, first(chunk, "model"));
    },
  }),
  check({
    id: "alias.chat",
    source: ROUTING,
    title: "auto/chat answers, and model is the name of the model that served",
    needs: ["alias"],
    run: async (t) => {
      unlike(first((await t.answered({ model: t.alias })).json, "model"), t.alias);
    },
  }),
  check({
    id: "alias.stream",
    source: ROUTING,
    title: "in a stream, too, model is the name of the model that served",
    needs: ["alias"],
    run: async (t) => {
      for (const chunk of chunksOf(await t.answered({ model: t.alias, stream: true })))
        unlike(first(chunk, "model"), t.alias);
    },
  }),
  check({
    id: "alias.reasoning",
    source: ROUTING,
    title: "auto/reasoning answers, and model is the name of the model that served",
    needs: ["alias", "reasoning"],
    run: async (t) => {
      unlike(
        first((await t.answered({ model: "auto/reasoning" })).json, "model"),
        "auto/reasoning",
      );
    },
  }),
  check({
    id: "alias.names-a-model",
    source: ROUTING,
    title:
      "the name that an alias answers with is a canonical one: asked for, it answers under that name",
    needs: ["alias"],
    run: async (t) => {
      const served = first(
        (await t.answered({ model: t.alias, messages: question("Who is there?") })).json,
        "model",
      );
      const { json } = await t.answered({ model: served, messages: question("Who are you?") });
      expect(first(json, "model") === served, String(served), first(json, "model"));
    },
  }),
  check({
    id: "alias.same-format",
    source: ROUTING,
    title: "an alias takes a request with many fields as a canonical name does",
    needs: ["alias"],
    run: async (t) => {
      await t.answered({ model: t.alias, ...MANY });
    },
  }),
  refuses({
    id: "model.unknown",
    source: ROUTING,
    title: "a name that is no model gets an error, not another model",
    fields: {
      model: "no-such-model",
    },
  }),
  refuses({
    id: "alias.unknown",
    source: ROUTING,
    title: "a name that looks like an alias and is none gets an error",
    fields: {
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
    accepts({
      id: `${name}.lowest`,
      source: REQUEST,
      title: `${name} may be ${low}`,
      needs,
      fields: set(low),
    }),
    accepts({
      id: `${name}.highest`,
      source: REQUEST,
      title: `${name} may be ${high}`,
      needs,
      fields: set(high),
    }),
    refuses({
      id: `${name}.below`,
      source: REQUEST,
      title: `${name} may not be ${low - step}`,
      fields: set(low - step),
    }),
    refuses({
      id: `${name}.above`,
      source: REQUEST,
      title: `${name} may not be ${high + step}`,
      fields: set(high + step),
    }),
    refuses({
      id: `${name}.type`,
      source: REQUEST,
      title: `${name} is a number, not a string`,
      fields: set(String(high)),
    }),
  ];
});

const requests: Check[] = [
  accepts({
    id: "request.many-fields",
    source: REQUEST,
    title: "a request may set many fields at once",
    fields: MANY,
  }),
  refuses({
    id: "model.missing",
    source: REQUEST,
    title: "model is required",
    fields: { model: undefined },
  }),
  refuses({
    id: "model.type",
    source: REQUEST,
    title: "model is a string",
    fields: { model: 7 },
  }),
  refuses({
    id: "messages.missing",
    source: REQUEST,
    title: "messages is required",
    fields: { messages: undefined },
  }),
  refuses({
    id: "messages.type",
    source: REQUEST,
    title: "messages is an array",
    fields: { messages: "Say hello." },
  }),
  refuses({
    id: "messages.element",
    source: REQUEST,
    title: "messages is an array of objects",
    fields: {
      messages: ["Say hello."],
    },
  }),
  refuses({
    id: "body.not-json",
    source: ENDPOINT,
    title: "the body is JSON",
    fields: '{"model": ',
  }),
  refuses({
    id: "body.empty",
    source: ENDPOINT,
    title: "there is a body",
    fields: "",
  }),
  refuses({
    id: "body.not-an-object",
    source: ENDPOINT,
    title: "the body is an object",
    fields: "[]",
  }),

  accepts({
    id: "messages.system",
    source: MESSAGE,
    title: "a system message may come first",
    fields: {
      messages: [{ role: "system", content: "Be brief." }, ...question("Are you there?")],
    },
  }),
  accepts({
    id: "messages.assistant",
    source: MESSAGE,
    title: "an assistant message carries an earlier reply",
    fields: {
      messages: [
        ...question("One."),
        { role: "assistant", content: "Two." },
        ...question("And then?"),
      ],
    },
  }),
  refuses({
    id: "role.missing",
    source: MESSAGE,
    title: "role is required",
    fields: { messages: [{ content: "Say hello." }] },
  }),
  refuses({
    id: "role.unknown",
    source: MESSAGE,
    title: "role is none but those that are listed",
    fields: {
      messages: [{ role: "narrator", content: "Say hello." }],
    },
  }),
  refuses({
    id: "role.type",
    source: MESSAGE,
    title: "role is a string",
    fields: {
      messages: [{ role: 7, content: "Say hello." }],
    },
  }),
  refuses({
    id: "content.missing",
    source: MESSAGE,
    title: "content is required",
    fields: { messages: [{ role: "user" }] },
  }),
  refuses({
    id: "content.type",
    source: MESSAGE,
    title: "content is not a number",
    fields: {
      messages: [{ role: "user", content: 7 }],
    },
  }),

  accepts({
    id: "stream.false",
    source: REQUEST,
    title: "stream may be false",
    fields: {
      stream: false,
      messages: question("Whole?"),
    },
  }),
  refuses({
    id: "stream.type",
    source: REQUEST,
    title: "stream is a boolean",
    fields: { stream: "yes" },
  }),
  accepts({
    id: "max_tokens.accepted",
    source: REQUEST,
    title: "max_tokens may be set",
    fields: { max_tokens: 64 },
  }),
  refuses({
    id: "max_tokens.type",
    source: REQUEST,
    title: "max_tokens is a number, not a string",
    fields: { max_tokens: "64" },
  }),
  refuses({
    id: "max_tokens.integer",
    source: REQUEST,
    title: "max_tokens is an integer",
    fields: { max_tokens: 1.5 },
  }),
  check({
    id: "max_tokens.obeyed",
    source: REQUEST,
    title: 'no more than max_tokens are generated, and a reply that was cut short says "length"',
    run: async (t) => {
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
  }),
  check({
    id: "max_tokens.obeyed.stream",
    source: CHUNK_SECTION,
    title: 'a stream that was cut short ends with "length"',
    run: async (t) => {
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
  }),

  check({
    id: "stop.string",
    source: REQUEST,
    title: "generation stops at a sequence given as a string",
    run: async (t) => {
      const content = contentOf(await t.answered({ stop: WORD }));
      expect(!content.includes(WORD), `a reply that ends before "${WORD}"`, content);
    },
  }),
  check({
    id: "stop.array",
    source: REQUEST,
    title: "generation stops at any of several sequences",
    run: async (t) => {
      const content = contentOf(await t.answered({ stop: ["zebra", WORD] }));
      expect(!content.includes(WORD), `a reply that ends before "${WORD}"`, content);
    },
  }),
  accepts({
    id: "stop.four",
    source: 'contract.md "Request fields"',
    title: "stop may hold 4 sequences",
    fields: {
      stop: ["ox", "yak", "zebra", "gnu"],
    },
  }),
  refuses({
    id: "stop.five",
    source: 'contract.md "Request fields"',
    title: "stop holds at most 4 sequences",
    fields: {
      stop: ["ox", "yak", "zebra", "gnu", "emu"],
    },
  }),
  refuses({
    id: "stop.type",
    source: REQUEST,
    title: "stop is an array, a string or null",
    fields: { stop: 7 },
  }),
  refuses({
    id: "stop.element",
    source: REQUEST,
    title: "stop is an array of strings",
    fields: { stop: [7] },
  }),
  ...["stop", "tools", "thinking", "top_logprobs", "stream_options"].map((name) =>
    accepts({
      id: `${name}.null`,
      source: REQUEST,
      title: `${name} may be null, its default`,
      fields: { [name]: null },
    }),
  ),

  check({
    id: "tool_choice.default",
    source: REQUEST,
    title: 'tool_choice is "none" by default: without it no tool is called',
    needs: ["tools"],
    run: async (t) => {
      expectNoCall(await t.answered({ ...TOOLS, messages: question("Which time is it in Oslo?") }));
    },
  }),
  check({
    id: "tool_choice.none",
    source: REQUEST,
    title: 'tool_choice "none": no tool is called',
    needs: ["tools"],
    run: async (t) => expectNoCall(await t.answered({ ...TOOLS, tool_choice: "none" })),
  }),
  accepts({
    id: "tool_choice.auto",
    source: REQUEST,
    title: 'tool_choice may be "auto"',
    needs: ["tools"],
    fields: { ...TOOLS, tool_choice: "auto" },
  }),
  check({
    id: "tool_choice.named",
    source: REQUEST,
    title: "an object names a specific tool, which is then called",
    needs: ["tools"],
    run: async (t) => {
      const { json } = await t.answered({
        ...TOOLS,
        tool_choice: chooseTool("send_mail"),
        messages: question("Write to ada@example.com."),
      });
      const name = first(json, "choices[].message.tool_calls[].function.name");
      expect(name === "send_mail", "a call of send_mail", name ?? first(json, "choices[].message"));
    },
  }),
  check({
    id: "finish_reason.tool_calls",
    source: REPLY_SECTION,
    title: 'a reply that calls a tool ends with "tool_calls"',
    needs: ["tools"],
    run: async (t) => {
      const { json } = await t.answered({
        ...TOOLS,
        tool_choice: chooseTool("get_time"),
        messages: question("Which time is it in Rome?"),
      });
      const reason = first(json, "choices[].finish_reason");
      expect(reason === "tool_calls", 'finish_reason "tool_calls"', reason);
    },
  }),
  refuses({
    id: "tools.type",
    source: REQUEST,
    title: "tools is an array",
    fields: { tools: "get_time" },
  }),
  refuses({
    id: "tool_choice.type",
    source: REQUEST,
    title: "tool_choice is a string or an object",
    fields: {
      ...TOOLS,
      tool_choice: 7,
    },
  }),

  accepts({
    id: "response_format.text",
    source: REQUEST,
    title: "response_format may be its default",
    fields: {
      response_format: { type: "text" },
      messages: question("As text?"),
    },
  }),
  check({
    id: "response_format.json_object",
    source: REQUEST,
    title: "json_object turns on JSON output mode: the content is a JSON object",
    needs: ["json"],
    run: async (t) => {
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
  }),
  refuses({
    id: "response_format.type",
    source: REQUEST,
    title: "response_format is an object",
    fields: {
      response_format: "json_object",
    },
  }),

  refuses({
    id: "thinking.type",
    source: REQUEST,
    title: "thinking is an object",
    fields: { thinking: "enabled" },
  }),
  check({
    id: "thinking.whole",
    source: ENDPOINT,
    title: "with thinking enabled, a reasoning model's message has reasoning_content",
    needs: ["reasoning"],
    run: async (t) => {
      const { json } = await t.answered({
        model: t.reasoningModel,
        thinking: { type: "enabled" },
        messages: question("What is 6 times 7?"),
      });
      const thoughts = first(json, "choices[].message.reasoning_content");
      expect(isText(thoughts), "reasoning_content, a non-empty string", thoughts);
    },
  }),
  check({
    id: "thinking.stream",
    source: ENDPOINT,
    title: "with thinking enabled, a reasoning model's deltas have reasoning_content",
    needs: ["reasoning"],
    run: async (t) => {
      const stream = await t.answered({
        model: t.reasoningModel,
        stream: true,
        thinking: { type: "enabled" },
        messages: question("What is 6 times 7?"),
      });
      const thoughts = streamed(stream, "reasoning_content");
      expect(thoughts !== "", "deltas with reasoning_content", stream.answer.text);
    },
  }),
  check({
    id: "thinking.plain-model",
    source: REPLY_SECTION,
    title: "reasoning_content is present on reasoning models only",
    needs: ["plain"],
    run: async (t) => {
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
  }),
  rule({
    kind: "reply",
    id: "thinking.not-asked-for",
    source: REPLY_SECTION,
    title: "without thinking enabled a message has no reasoning_content",
    look: ({ asked, json }) => {
      if (first(asked, "thinking.type") !== "enabled")
        for (const { value } of find(json, "choices[].message.reasoning_content"))
          expect((value ?? "") === "", "no reasoning_content", value);
    },
  }),
  rule({
    kind: "stream",
    id: "thinking.not-asked-for.stream",
    source: CHUNK_SECTION,
    title: "without thinking enabled no delta has reasoning_content",
    look: (stream) => {
      if (first(stream.asked, "thinking.type") !== "enabled")
        expect(
          streamed(stream, "reasoning_content") === "",
          "no reasoning_content",
          streamed(stream, "reasoning_content"),
        );
    },
  }),

  check({
    id: "logprobs.true",
    source: REQUEST,
    title: "logprobs true returns log probabilities with the choice",
    needs: ["logprobs"],
    run: async (t) => {
      const { json } = await t.answered({
        logprobs: true,
        messages: question("How likely is that?"),
      });
      const given = first(json, "choices[].logprobs");
      expect(isObject(given), "choices[0].logprobs, an object", given);
    },
  }),
  refuses({
    id: "logprobs.type",
    source: REQUEST,
    title: "logprobs is a boolean",
    fields: { logprobs: "yes" },
  }),
  refuses({
    id: "top_logprobs.integer",
    source: REQUEST,
    title: "top_logprobs is an integer",
    fields: {
      logprobs: true,
      top_logprobs: 1.5,
    },
  }),

  accepts({
    id: "stream_options.stream",
    source: REQUEST,
    title: "stream_options may be set when stream is true",
    fields: {
      stream: true,
      stream_options: { include_usage: true },
    },
  }),
  refuses({
    id: "stream_options.alone",
    source: REQUEST,
    title: "stream_options may not be set when stream is omitted",
    fields: {
      stream_options: { include_usage: true },
    },
  }),
  refuses({
    id: "stream_options.whole",
    source: REQUEST,
    title: "stream_options may not be set when stream is false",
    fields: {
      stream: false,
      stream_options: { include_usage: true },
    },
  }),
  refuses({
    id: "stream_options.type",
    source: REQUEST,
    title: "stream_options is an object",
    fields: {
      stream: true,
      stream_options: "include_usage",
    },
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
  rule({
    kind: "reply",
    id: "reply.json",
    source: ENDPOINT,
    title: "a reply that is not streamed is a JSON object",
    look: ({ json, answer }) => expect(isObject(json), "a JSON object", answer.text),
  }),
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
  rule({
    kind: "reply",
    id: "usage.sum",
    source: REPLY_SECTION,
    title: "total_tokens is prompt_tokens plus completion_tokens",
    look: ({ json }) => sum(json, "total_tokens", "prompt_tokens", "completion_tokens"),
  }),
  rule({
    kind: "reply",
    id: "usage.cache-sum",
    source: REPLY_SECTION,
    title: "prompt tokens were served from cache or not",
    look: ({ json }) =>
      sum(json, "prompt_tokens", "prompt_cache_hit_tokens", "prompt_cache_miss_tokens"),
  }),
  check({
    id: "reply.content",
    source: 'contract.md "Replies"',
    title: "the reply answers the messages",
    run: async (t) => {
      const content = contentOf(await t.answered());
      expect(
        content.toLowerCase().includes(WORD),
        `a reply with the word "${WORD}", which was asked for`,
        content,
      );
    },
  }),
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
  rule({
    kind: "stream",
    id: "stream.media-type",
    source: ENDPOINT,
    title: "a stream is text/event-stream",
    look: ({ answer }) => {
      expect(
        /^text\/event-stream\b/.test(answer.headers["content-type"] ?? ""),
        "Content-Type: text/event-stream",
        answer.headers["content-type"],
      );
    },
  }),
  rule({
    kind: "stream",
    id: "stream.lines",
    source: ENDPOINT,
    title: "each event is one line of the form `data: ...`, then a blank line",
    look: ({ events, rest }) => {
      // No events by themselves; another rule is about them.
      const harmless = (line: string) => /^(:|(event|id|retry)\b)/.test(line);
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
  }),
  rule({
    kind: "stream",
    id: "stream.json",
    source: ENDPOINT,
    title: "each event but the last is a JSON object",
    look: ({ events }) => {
      for (const { data, json } of events)
        expect(
          data === undefined || data.trim() === "[DONE]" || isObject(json),
          "a JSON object",
          data,
        );
    },
  }),
  rule({
    kind: "stream",
    id: "stream.done",
    source: ENDPOINT,
    title: "a stream ends with the line `data: [DONE]`, once",
    look: ({ events }) => {
      const terminators = events.filter(({ data }) => data?.trim() === "[DONE]").length;
      expect(
        terminators === 1 && events.at(-1)?.lines.join("\n") === "data: [DONE]",
        "`data: [DONE]` as the last event",
        events.at(-1)?.lines.join("\n"),
      );
    },
  }),
  ...fieldRules("stream", "chunk", CHUNK_SECTION, CHUNK),
  rule({
    kind: "stream",
    id: "chunk.id.same",
    source: CHUNK_SECTION,
    title: "id identifies the completion: it is the same in all its chunks",
    look: (stream) =>
      allSame(
        chunksOf(stream)
          .map((chunk) => first(chunk, "id"))
          .filter(isText),
      ),
  }),
  rule({
    kind: "stream",
    id: "chunk.role.first",
    source: CHUNK_SECTION,
    title: "delta.role is in the first chunk",
    look: (stream) => {
      const role = first(chunksOf(stream)[0], "choices[].delta.role");
      expect(role !== undefined, "a role in the first chunk", chunksOf(stream)[0]);
    },
  }),
  rule({
    kind: "stream",
    id: "chunk.role.once",
    source: CHUNK_SECTION,
    title: "delta.role is present only in the first chunk",
    look: (stream) => {
      for (const chunk of chunksOf(stream).slice(1))
        expect(
          find(chunk, "choices[].delta.role").every(({ value }) => value === undefined),
          "no role after the first chunk",
          chunk,
        );
    },
  }),
  rule({
    kind: "stream",
    id: "chunk.finish_reason.null",
    source: 'contract.md "Stream chunks"',
    title: "finish_reason is null in every chunk except the last",
    look: (stream) => {
      for (const choice of choicesOf(stream).slice(0, -1))
        if (isObject(choice))
          expect(!isText(choice["finish_reason"]), "null before the last chunk", choice);
    },
  }),
  rule({
    kind: "stream",
    id: "chunk.finish_reason.last",
    source: 'contract.md "Stream chunks"',
    title: "the final chunk carries a finish_reason",
    look: (stream) => {
      const reason = first(choicesOf(stream).at(-1), "finish_reason");
      expect(reason !== null, "a finish_reason in the last chunk with a choice", reason);
    },
  }),
  check({
    id: "stream.content",
    source: CHUNK_SECTION,
    title: "concatenated, delta.content gives the full reply",
    run: async (t) => {
      const content = streamed(await t.answered({ stream: true }), "content");
      expect(
        content.toLowerCase().includes(WORD),
        `a reply with the word "${WORD}", which was asked for`,
        content,
      );
    },
  }),
];

const auth: Check[] = [
  ["auth.missing", "a chat request without Authorization is refused", undefined],
  ["auth.unknown", "a key that was never issued is refused", "Bearer no-such-key"],
  ["auth.empty", "an empty key is refused", "Bearer "],
  ["auth.scheme", "another scheme than Bearer is refused", "Basic bm86c3VjaGtleQ=="],
].map(([id, title, authorization]) =>
  check({
    id: id!,
    source: 'contract.md "Authentication"',
    title: title!,
    run: async (t) => {
      await t.refused({}, { headers: { authorization } });
    },
  }),
);

const errors: Check[] = [
  rule({
    kind: "error",
    id: "error.json",
    source: ERRORS,
    title: "an error's body is JSON with one top-level object, `error`",
    look: ({ json, answer }) => {
      expect(
        isObject(json) && isObject(json["error"]) && Object.keys(json).length === 1,
        'a body {"error": {...}}',
        answer.text,
      );
    },
  }),
  ...fieldRules("error", "error", ERRORS, ERROR).map((each) => ({
    ...each,
    id: each.id.replace("error.error.", "error."),
  })),
  rule({
    kind: "response",
    id: "error.status",
    source: ERRORS,
    title: "500 and 503 are the server-side failures: no other status from 500 on",
    look: ({ answer }) => {
      expect(
        answer.status < 500 || answer.status === 500 || answer.status === 503,
        "500 or 503",
        answer.status,
      );
    },
  }),
  rule({
    kind: "response",
    id: "error.any-status",
    source: ERRORS,
    title: "any status other than 200 counts as an error: a success has no other",
    look: ({ answer }) => {
      expect(
        answer.status === 200 || answer.status >= 400,
        "200, or a status from 400 on",
        answer.status,
      );
    },
  }),
];

const RPM = 'contract.md "Limits"';
const limits: Check[] = [
  check({
    id: "limit.exists",
    source: 'contract.md "Limits"',
    title: "one request more than the limit in a minute is not answered",
    needs: ["limited"],
    run: async (t) => {
      const statuses = (await t.overLimit()).map(({ answer }) => answer.status);
      expect(
        statuses.at(-1) !== 200,
        `a refusal after ${t.options.limited!.rpm} requests`,
        statuses.join(" "),
      );
    },
  }),
  check({
    id: "limit.status",
    source: RPM,
    title: "exceeding the limit returns 429",
    needs: ["limited"],
    run: async (t) => {
      const statuses = (await t.overLimit())
        .map(({ answer }) => answer.status)
        .filter((status) => status !== 200);
      expect(
        statuses.every((status) => status === 429),
        "429",
        statuses.join(" "),
      );
    },
  }),
  ...(
    [
      ["type", "rate_limit_error"],
      ["code", "rate_limit_exceeded"],
    ] as const
  ).map(([name, value]) =>
    check({
      id: `limit.${name}`,
      source: RPM,
      title: `its ${name} is ${value}`,
      needs: ["limited"],
      run: async (t) => {
        const got = first((await overLimit(t)).json, `error.${name}`);
        expect(got === value, value, got);
      },
    }),
  ),
  check({
    id: "limit.message",
    source: RPM,
    title:
      "its message says that the per-minute limit was exceeded, and gives a number of seconds to wait",
    needs: ["limited"],
    run: async (t) => {
      const got = String(first((await overLimit(t)).json, "error.message"));
      expect(
        /minute/i.test(got) && /\b\d+ ?s(ec(ond)?s?)?\b/i.test(got),
        "words about the minute's limit and a number of seconds",
        got,
      );
    },
  }),
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
