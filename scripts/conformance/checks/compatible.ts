// Level `compatible`: what unmodified clients of other gateways need, which the contract leaves
// open and wire.md fills. The requests that are to be accepted, or refused in a certain way, carry
// the id of their check as X-Request-Id: a gateway's log tells them apart.

import { parseJson, parseRaw, type RawAnswer } from "../client.ts";
import { find, first, isCount, isObject, isText, list, REPLY, type Field } from "../shapes.ts";
import {
  CHAT,
  chooseTool,
  expect,
  question,
  TOOLS,
  WORD,
  type Ask,
  type Check,
  type Exchange,
  type Need,
  type Tester,
} from "../suite.ts";
import { allSame, choicesOf, chunksOf, contentOf, idHeader, kit, overLimit } from "./kit.ts";

const { check, rule, fieldRules } = kit("compatible");
const mark = (id: string) => ({ "x-request-id": `compatible.${id}` });

const HI = question("Hi.");
const call = {
  id: "call_1",
  type: "function",
  function: { name: "get_time", arguments: '{"city":"Oslo"}' },
};
const result = { role: "tool", tool_call_id: "call_1", content: "14:05" };
const loop = (assistant: object) => ({
  ...TOOLS,
  messages: [...HI, { role: "assistant", tool_calls: [call], ...assistant }, result],
});

/** [id, section, title, fields, headers, what it needs]: each is answered with 200. */
const ACCEPTED: readonly (readonly [
  string,
  string,
  string,
  Ask,
  (Readonly<Record<string, string>> | undefined)?,
  Need?,
])[] = [
  [
    "headers.sdk",
    "Request envelope",
    "headers that SDKs add are ignored",
    {},
    {
      "x-stainless-lang": "js",
      "openai-organization": "org",
      "openai-project": "p",
      accept: "application/json",
    },
  ],
  [
    "headers.charset",
    "Request envelope",
    "Content-Type may have parameters",
    {},
    { "content-type": "application/json; charset=utf-8" },
  ],
  [
    "body.unknown-field",
    "Request fields",
    "a field that nobody knows is ignored",
    { provider_options: { a: 1 } },
  ],
  [
    "message.unknown-field",
    "Request fields",
    "a field of a message that nobody knows is ignored",
    { messages: [{ role: "user", content: "Hi.", cache_control: { type: "ephemeral" } }] },
  ],
  [
    "message.name",
    "Messages",
    "a message may have a name",
    { messages: [{ role: "user", name: "ada", content: "Hi." }] },
  ],
  [
    "body.nulls",
    "Request envelope",
    "null is the same as absent, for every optional field",
    Object.fromEntries(
      [
        "stream",
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "top_p",
        "frequency_penalty",
        "presence_penalty",
        "stop",
        "tools",
        "tool_choice",
        "response_format",
        "thinking",
        "logprobs",
        "top_logprobs",
        "stream_options",
        "n",
        "seed",
        "user",
        "parallel_tool_calls",
        "reasoning_effort",
      ].map((name) => [name, null]),
    ),
  ],
  [
    "body.ignored-fields",
    "Request fields",
    "fields that other services know are never an error",
    {
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
  ],
  ["n.one", "Request fields", "n may be 1", { n: 1 }],
  ["stop.empty-array", "Request fields", "stop may be an empty array", { stop: [] }],
  ["tools.empty-array", "Request fields", "tools may be an empty array", { tools: [] }],
  [
    "tools.bare",
    "Tools",
    "description, parameters and strict of a tool may be missing",
    { tools: [{ type: "function", function: { name: "f" } }] },
    undefined,
    "tools",
  ],
  [
    "tool_choice.none-without-tools",
    "Tools",
    'tool_choice "none" needs no tools',
    { tool_choice: "none" },
  ],
  [
    "top_logprobs.alone",
    "Request fields",
    "top_logprobs without logprobs is inert",
    { top_logprobs: 3 },
  ],
  [
    "thinking.disabled",
    "Request fields",
    "thinking may be disabled explicitly",
    { thinking: { type: "disabled" } },
  ],
  [
    "thinking.adaptive",
    "Request fields",
    "thinking may be adaptive",
    { thinking: { type: "adaptive" } },
  ],
  [
    "thinking.budget",
    "Request fields",
    "other keys of thinking are ignored",
    { thinking: { type: "enabled", budget_tokens: 1024 } },
  ],
  [
    "stream_options.empty",
    "Request fields",
    "stream_options may be empty",
    { stream: true, stream_options: {} },
  ],
  [
    "stream_options.unknown",
    "Request fields",
    "other keys of stream_options are ignored",
    { stream: true, stream_options: { include_obfuscation: false } },
  ],
  [
    "role.developer",
    "Messages",
    "role developer is taken for system",
    { messages: [{ role: "developer", content: "Be brief." }, ...HI] },
  ],
  [
    "content.empty",
    "Messages",
    "an empty string is content",
    { messages: [{ role: "user", content: "" }] },
  ],
  [
    "content.refusal-part",
    "Messages",
    "an assistant's refusal may come back as a part",
    {
      messages: [
        ...HI,
        { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
        ...HI,
      ],
    },
  ],
  [
    "assistant.reasoning",
    "Messages",
    "reasoning_content of an earlier reply may come back",
    { messages: [...HI, { role: "assistant", content: "Yes.", reasoning_content: "Hm." }, ...HI] },
  ],
  [
    "tool-loop.null",
    "Messages",
    "a tool's result is taken; content is null beside tool_calls",
    loop({ content: null }),
    undefined,
    "tools",
  ],
  [
    "tool-loop.absent",
    "Messages",
    "content may be missing beside tool_calls",
    loop({}),
    undefined,
    "tools",
  ],
  [
    "tool-loop.empty",
    "Messages",
    "content may be empty beside tool_calls",
    loop({ content: "" }),
    undefined,
    "tools",
  ],
  [
    "tool-loop.bad-arguments",
    "Messages",
    "arguments that a model wrote need not be JSON",
    loop({ tool_calls: [{ ...call, function: { name: "get_time", arguments: '{"city":' } }] }),
    undefined,
    "tools",
  ],
  [
    "tool-loop.parts",
    "Messages",
    "a tool's result may be text parts, and have a name",
    {
      ...loop({ content: null }),
      messages: [
        ...loop({ content: null }).messages.slice(0, 2),
        { ...result, name: "get_time", content: [{ type: "text", text: "14:05" }] },
      ],
    },
    undefined,
    "tools",
  ],
];

const accepted = ACCEPTED.map(
  ([id, section, title, fields, headers = {}, need]): Check =>
    check({
      id,
      source: `wire.md "${section}"`,
      title,
      needs: need ? [need] : [],
      run: async (t) => {
        await t.answered(fields, { headers: { ...mark(id), ...headers } });
      },
    }),
);

/** [id, status, code, param, fields, headers, what it needs]: how each is refused. */
type Refused = readonly [
  string,
  number,
  string,
  string | null,
  Ask,
  (Readonly<Record<string, string | undefined>> | undefined)?,
  Need?,
];
const REFUSED: readonly Refused[] = [
  ["error.no-key", 401, "missing_api_key", null, {}, { authorization: undefined }],
  ["error.bad-key", 401, "invalid_api_key", null, {}, { authorization: "Bearer no-such-key" }],
  [
    "error.media-type-sent",
    415,
    "unsupported_media_type",
    null,
    {},
    { "content-type": "text/plain" },
  ],
  ["error.encoding-sent", 415, "unsupported_media_type", null, {}, { "content-encoding": "gzip" }],
  ["error.not-json", 400, "invalid_json", null, '{"model": "m",'],
  ["error.no-body", 400, "invalid_json", null, ""],
  ["error.not-an-object", 400, "invalid_type", null, "[]"],
  ["error.no-model", 400, "missing_required_parameter", "model", { model: undefined }],
  ["error.no-messages", 400, "missing_required_parameter", "messages", { messages: undefined }],
  ["error.empty-messages", 400, "invalid_value", "messages", { messages: [] }],
  [
    "error.no-role",
    400,
    "missing_required_parameter",
    "messages[1].role",
    { messages: [...HI, { content: "Hi." }] },
  ],
  [
    "error.bad-role",
    400,
    "invalid_value",
    "messages[0].role",
    { messages: [{ role: "narrator", content: "Hi." }] },
  ],
  [
    "error.function-role",
    400,
    "invalid_value",
    "messages[1].role",
    { messages: [...HI, { role: "function", name: "f", content: "1" }] },
  ],
  [
    "error.no-content",
    400,
    "missing_required_parameter",
    "messages[0].content",
    { messages: [{ role: "user" }] },
  ],
  [
    "error.assistant-without-content",
    400,
    "missing_required_parameter",
    "messages[0].content",
    { messages: [{ role: "assistant" }] },
  ],
  [
    "error.image",
    400,
    "unsupported_value",
    "messages[0].content",
    {
      messages: [
        {
          role: "user",
          content: [
            { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
          ],
        },
      ],
    },
    undefined,
    "plain",
  ],
  [
    "error.no-tool-call-id",
    400,
    "missing_required_parameter",
    "messages[1].tool_call_id",
    { messages: [...HI, { role: "tool", content: "1" }] },
  ],
  [
    "error.unmatched-tool-call-id",
    400,
    "invalid_value",
    "messages[1].tool_call_id",
    { messages: [...HI, { role: "tool", tool_call_id: "call_9", content: "1" }] },
  ],
  ["error.type", 400, "invalid_type", "temperature", { temperature: "1" }],
  ["error.boolean-number", 400, "invalid_type", "temperature", { temperature: true }],
  ["error.range", 400, "invalid_value", "top_p", { top_p: 1.5 }],
  [
    "error.infinity",
    400,
    "invalid_value",
    "temperature",
    '{"model":"m","messages":[{"role":"user","content":"Hi."}],"temperature":1e400}',
  ],
  ["error.max_tokens", 400, "invalid_value", "max_tokens", { max_tokens: 0 }],
  [
    "error.max_completion_tokens",
    400,
    "invalid_value",
    "max_completion_tokens",
    { max_completion_tokens: 0 },
  ],
  ["error.five-stops", 400, "invalid_value", "stop", { stop: ["a", "b", "c", "d", "e"] }],
  ["error.empty-stop", 400, "invalid_value", "stop", { stop: "" }],
  ["error.n", 400, "unsupported_value", "n", { n: 2 }],
  [
    "error.custom-tool",
    400,
    "unsupported_value",
    "tools[0].type",
    { tools: [{ type: "custom", custom: { name: "f" } }] },
  ],
  [
    "error.tool-name",
    400,
    "invalid_value",
    "tools[0].function.name",
    { tools: [{ type: "function", function: { name: "no spaces" } }] },
  ],
  [
    "error.choice-without-tools",
    400,
    "invalid_parameter_combination",
    "tool_choice",
    { tool_choice: "auto" },
  ],
  ["error.bad-choice", 400, "invalid_value", "tool_choice", { ...TOOLS, tool_choice: "sometimes" }],
  [
    "error.unlisted-choice",
    400,
    "invalid_value",
    "tool_choice",
    { ...TOOLS, tool_choice: chooseTool("no_such_tool") },
  ],
  [
    "error.bad-format",
    400,
    "invalid_value",
    "response_format.type",
    { response_format: { type: "poem" } },
  ],
  ["error.bad-thinking", 400, "invalid_value", "thinking.type", { thinking: { type: "loudly" } }],
  [
    "error.stream_options",
    400,
    "invalid_parameter_combination",
    "stream_options",
    { stream_options: {} },
  ],
  [
    "error.include_usage",
    400,
    "invalid_type",
    "stream_options.include_usage",
    { stream: true, stream_options: { include_usage: "yes" } },
  ],
  ["error.unknown-model", 404, "model_not_found", "model", { model: "no-such-model" }],
  ["error.unknown-alias", 404, "model_not_found", "model", { model: "auto/no-such-alias" }],
  ["error.stream", 404, "model_not_found", "model", { model: "no-such-model", stream: true }],
];

const refused = REFUSED.map(
  ([id, status, code, param, fields, headers, need]): Check =>
    check({
      id,
      source: 'contract.md "Errors"',
      title: `${status} ${code}${param === null ? "" : `, param ${param}`}`,
      needs: need ? [need] : [],
      run: async (t) => {
        expectError(
          await t.ask(fields, { headers: { ...mark(id), ...headers } }),
          status,
          code,
          param,
        );
      },
    }),
);

function expectError(
  { answer, json }: Pick<Exchange, "json"> & { readonly answer: { readonly status: number } },
  status: number,
  code: string,
  param: string | null,
): void {
  const got = {
    status: answer.status,
    code: first(json, "error.code"),
    param: first(json, "error.param") ?? null,
  };
  expect(
    got.status === status && got.code === code && got.param === param,
    JSON.stringify({ status, code, param }),
    got,
  );
}

interface HeaderRule extends Pick<Check, "id" | "title"> {
  readonly ask: (t: Tester) => Promise<Exchange>;
  /** The header's name, in lower case, and what its value matches. */
  readonly name: string;
  readonly expected: RegExp;
}

const headersOf = ({ id, title, ask, name, expected }: HeaderRule): Check =>
  check({
    id,
    source: 'contract.md "Errors"',
    title,
    run: async (t) => {
      const { answer } = await ask(t);
      const got = answer.headers[name];
      expect(typeof got === "string" && expected.test(got), `${name}: ${expected.source}`, got);
    },
  });

const errorHeaders: Check[] = [
  headersOf({
    id: "error.www-authenticate",
    title: "401 says how to authenticate",
    ask: (t) =>
      t.ask({}, { headers: { ...mark("error.www-authenticate"), authorization: undefined } }),
    name: "www-authenticate",
    expected: /^Bearer\b/,
  }),
  headersOf({
    id: "error.allow",
    title: "405 says what is allowed",
    ask: (t) => t.call({ method: "GET", path: CHAT, headers: mark("error.allow") }),
    name: "allow",
    expected: /\bPOST\b/,
  }),
  check({
    id: "error.unknown-url",
    source: 'contract.md "Order of checks"',
    title: "404 unknown_url",
    run: async (t) =>
      expectError(
        await t.call({ method: "GET", path: "/v1/nothing", headers: mark("error.unknown-url") }),
        404,
        "unknown_url",
        null,
      ),
  }),
  check({
    id: "error.wrong-method",
    source: 'contract.md "Order of checks"',
    title: "405 method_not_allowed",
    run: async (t) =>
      expectError(
        await t.call({ method: "PUT", path: CHAT, headers: mark("error.wrong-method") }),
        405,
        "method_not_allowed",
        null,
      ),
  }),
  rule({
    kind: "error",
    id: "error.media-type",
    source: 'wire.md "Error body"',
    title: "an error is application/json",
    look: ({ answer }) => expectJson(answer.headers["content-type"]),
  }),
  rule({
    kind: "error",
    id: "error.param",
    source: 'wire.md "Error body"',
    title: "error.param is a string, null or absent",
    look: ({ json }) => {
      const param = first(json, "error.param");
      expect(
        param === undefined || param === null || isText(param),
        "a string, null or nothing",
        param,
      );
    },
  }),
  rule({
    kind: "error",
    id: "error.known-status",
    source: 'wire.md "Status codes"',
    title: "no status that some clients retry although it is of no use: 422",
    look: ({ answer }) => expect(answer.status !== 422, "400 for a bad body", answer.status),
  }),
  check({
    id: "limit.retry-after",
    source: 'wire.md "Rate limit headers"',
    title: "429 carries Retry-After, a whole number of seconds from 1 to 60",
    needs: ["limited"],
    run: async (t) => {
      const got = (await overLimit(t)).answer.headers["retry-after"];
      expect(/^[1-9]\d?$/.test(got ?? "") && Number(got) <= 60, "Retry-After: 1 to 60", got);
    },
  }),
  check({
    id: "limit.message",
    source: 'wire.md "Rate limit headers"',
    title: 'its message says "retry after N seconds", and Retry-After says the same',
    needs: ["limited"],
    run: async (t) => {
      const { answer, json } = await overLimit(t);
      const [inMessage, inHeader] = [
        /retry after (\d+) seconds?/i.exec(String(first(json, "error.message")))?.[1],
        answer.headers["retry-after"] ?? "",
      ];
      expect(
        inMessage !== undefined && (inMessage === inHeader || !/^\d+$/.test(inHeader)),
        `"retry after ${inHeader} seconds"`,
        first(json, "error.message"),
      );
    },
  }),
];
const expectJson = (got: string | undefined): void =>
  expect(/^application\/json\b/.test(got ?? ""), "Content-Type: application/json", got);

/** What Node and other servers answer by themselves, if nobody sees to it. */
const raw = (id: string, title: string, bytes: string, status: number): Check =>
  check({
    id: `http.${id}`,
    source: 'wire.md "Responses without a handler"',
    title: `${status} with an error object and its id: ${title}`,
    run: async (t) => {
      const answer = parseRaw(await t.client.raw(Buffer.from(bytes, "latin1")));
      expect(answer.status === status, String(status), answer.status);
      const [inBody, inHeader] = [
        first(parseJson(answer.text), "error.request_id"),
        answer.headers["x-request-id"],
      ];
      expect(
        isText(inHeader) && inBody === inHeader,
        "X-Request-Id, and the same in error.request_id",
        { inHeader, inBody },
      );
    },
  });
const request = (...lines: readonly string[]) =>
  [...lines, "Connection: close", "", ""].join("\r\n");

const http: Check[] = [
  raw("malformed", "what is not HTTP", "nonsense, not HTTP\r\n\r\n", 400),
  raw("no-host", "a request without Host", request("GET /healthz HTTP/1.1"), 400),
  raw(
    "large-headers",
    "headers of 40 kB",
    request("GET /healthz HTTP/1.1", "Host: gateway", `X-Large: ${"x".repeat(40_000)}`),
    431,
  ),
  raw(
    "expect",
    "an expectation that nobody knows",
    request("GET /v1/models HTTP/1.1", "Host: gateway", "Expect: cake"),
    417,
  ),
  raw("connect", "CONNECT", request("CONNECT elsewhere:443 HTTP/1.1", "Host: elsewhere"), 405),
];

const echoed = async (t: Tester, lines: readonly string[]): Promise<RawAnswer> =>
  parseRaw(
    await t.client.raw(
      Buffer.from(request("GET /healthz HTTP/1.1", "Host: gateway", ...lines), "latin1"),
    ),
  );
const ids: Check[] = [
  check({
    id: "request-id.long",
    source: 'contract.md "Request ids"',
    title: "255 characters are echoed",
    run: async (t) => {
      const { headers } = await echoed(t, [`X-Request-Id: ${"i".repeat(255)}`]);
      expect(
        headers["x-request-id"] === "i".repeat(255),
        "the same 255 characters",
        headers["x-request-id"],
      );
    },
  }),
  check({
    id: "request-id.too-long",
    source: 'contract.md "Request ids"',
    title: "2000 characters are not an error: an id is generated",
    run: async (t) => {
      const { status, headers } = await echoed(t, [`X-Request-Id: ${"l".repeat(2000)}`]);
      expect(
        status === 200 && /^req_/.test(headers["x-request-id"] ?? ""),
        "200 with a generated id",
        { status, id: headers["x-request-id"] },
      );
    },
  }),
  check({
    id: "request-id.not-ascii",
    source: 'contract.md "Request ids"',
    title: "a value outside ASCII is not an error: an id is generated",
    run: async (t) => {
      const { status, headers } = await echoed(t, ["X-Request-Id: caf\u00e9"]);
      expect(
        status === 200 && /^req_/.test(headers["x-request-id"] ?? ""),
        "200 with a generated id",
        { status, id: headers["x-request-id"] },
      );
    },
  }),
  check({
    id: "request-id.two",
    source: 'contract.md "Request ids"',
    title: "of two values the first counts",
    run: async (t) => {
      const { headers } = await echoed(t, [
        "X-Request-Id: first-of-two",
        "X-Request-Id: second-of-two",
      ]);
      expect(headers["x-request-id"] === "first-of-two", "first-of-two", headers["x-request-id"]);
    },
  }),
  rule({
    kind: "response",
    id: "request-id.lower-case",
    source: 'contract.md "Request ids"',
    title: "a generated id is in lower case",
    look: (exchange) => {
      if (exchange.request.headers?.["x-request-id"] === undefined)
        expect(!/[A-F]/.test(String(idHeader(exchange))), "lower case", idHeader(exchange));
    },
  }),
];

const places: Check[] = [
  check({
    id: "bearer.case",
    source: 'contract.md "Authentication"',
    title: "the scheme's name may be in any case",
    run: async (t) => {
      await t.answered(
        {},
        { headers: { ...mark("bearer.case"), authorization: `bearer ${t.options.key}` } },
      );
    },
  }),
  check({
    id: "body.bom",
    source: 'wire.md "Request envelope"',
    title: "a byte order mark before the JSON is no fault",
    run: async (t) => {
      await t.answered(`\uFEFF${JSON.stringify({ model: t.model, messages: HI })}`, {
        headers: mark("body.bom"),
      });
    },
  }),
  check({
    id: "body.not-utf8",
    source: 'wire.md "Request envelope"',
    title: "400 invalid_json for a body that is not UTF-8",
    run: async (t) => {
      const body = Buffer.from(
        JSON.stringify({ model: t.model, messages: question("caf\u00e9") }),
        "latin1",
      );
      expectError(
        await t.call({
          method: "POST",
          path: CHAT,
          headers: {
            "content-type": "application/json",
            authorization: `Bearer ${t.options.key}`,
            ...mark("body.not-utf8"),
          },
          body,
        }),
        400,
        "invalid_json",
        null,
      );
    },
  }),
  check({
    id: "no-compression",
    source: 'wire.md "Framing"',
    title: "a stream is not compressed, whatever the client accepts",
    run: async (t) => {
      const { answer } = await t.answered(
        { stream: true },
        { headers: { ...mark("no-compression"), "accept-encoding": "gzip, deflate, br" } },
      );
      expect(
        answer.headers["content-encoding"] === undefined,
        "no Content-Encoding",
        answer.headers["content-encoding"],
      );
    },
  }),
  check({
    id: "content.parts",
    source: 'wire.md "Messages"',
    title: "content may be text parts, which are joined without a separator",
    run: async (t) => {
      const content = [
        { type: "text", text: "Say the word pine" },
        { type: "text", text: "apple and nothing else." },
      ];
      const got = contentOf(
        await t.answered(
          { messages: [{ role: "user", content }] },
          { headers: mark("content.parts") },
        ),
      );
      expect(got.toLowerCase().includes(WORD), `a reply with the word "${WORD}"`, got);
    },
  }),
  check({
    id: "healthz.body",
    source: 'wire.md "Responses without a handler"',
    title: '/healthz says {"status":"ok"}',
    run: async (t) => {
      const { json } = await t.call({
        method: "GET",
        path: "/healthz",
        headers: mark("healthz.body"),
      });
      expect(first(json, "status") === "ok", '{"status":"ok"}', json);
    },
  }),
  check({
    id: "healthz.no-store",
    source: 'wire.md "Responses without a handler"',
    title: "/healthz is not to be stored by a cache",
    run: async (t) => {
      const { answer } = await t.call({
        method: "GET",
        path: "/healthz",
        headers: mark("healthz.no-store"),
      });
      expect(
        /\bno-store\b/.test(answer.headers["cache-control"] ?? ""),
        "Cache-Control: no-store",
        answer.headers["cache-control"],
      );
    },
  }),
  check({
    id: "healthz.head",
    source: 'contract.md "Endpoints"',
    title: "/healthz answers HEAD",
    run: async (t) => {
      const answer = parseRaw(
        await t.client.raw(request("HEAD /healthz HTTP/1.1", "Host: gateway")),
      );
      expect(answer.status === 200 && answer.text === "", "200 without a body", answer);
    },
  }),
  check({
    id: "models.list",
    source: 'wire.md "Model list"',
    title: "GET /v1/models lists models: id, object, created, owned_by",
    run: async (t) => {
      const { json } = await models(t, "models.list");
      expect(
        first(json, "object") === "list" && list(first(json, "data")).length > 0,
        '{object: "list", data: [...]}',
        json,
      );
      for (const { value } of find(json, "data[]"))
        expect(
          first(value, "object") === "model" &&
            isText(first(value, "id")) &&
            isCount(first(value, "created")) &&
            isText(first(value, "owned_by")),
          'id, object "model", created, owned_by',
          value,
        );
    },
  }),
  check({
    id: "models.names",
    source: 'wire.md "Model list"',
    title: "it has the model, and the alias",
    needs: ["model", "alias"],
    run: async (t) => {
      const names = find((await models(t, "models.names")).json, "data[].id").map(
        ({ value }) => value,
      );
      expect(
        names.includes(t.model) && names.includes(t.alias),
        `${t.model} and ${t.alias}`,
        names,
      );
    },
  }),
  check({
    id: "models.key",
    source: 'contract.md "Endpoints"',
    title: "it wants a key",
    run: async (t) =>
      expectError(
        await t.call({ method: "GET", path: "/v1/models", headers: mark("models.key") }),
        401,
        "missing_api_key",
        null,
      ),
  }),
];
const models = (t: Tester, id: string) =>
  t.call({
    method: "GET",
    path: "/v1/models",
    headers: { authorization: `Bearer ${t.options.key}`, ...mark(id) },
  });

const LONG = question("Count from one to twenty, in words.");
const obeyed: Check[] = [
  check({
    id: "max_completion_tokens",
    source: 'wire.md "Request fields"',
    title: "max_completion_tokens is another name of max_tokens",
    run: async (t) => {
      const tokens = first(
        (
          await t.answered(
            { messages: LONG, max_completion_tokens: 6 },
            { headers: mark("max_completion_tokens") },
          )
        ).json,
        "usage.completion_tokens",
      );
      expect(isCount(tokens) && tokens <= 6, "at most 6 completion_tokens", tokens);
    },
  }),
  check({
    id: "max_completion_tokens.both",
    source: 'wire.md "Request fields"',
    title: "of max_tokens and max_completion_tokens the smaller counts",
    run: async (t) => {
      const tokens = first(
        (
          await t.answered(
            { messages: LONG, max_tokens: 6, max_completion_tokens: 500 },
            { headers: mark("max_completion_tokens.both") },
          )
        ).json,
        "usage.completion_tokens",
      );
      expect(isCount(tokens) && tokens <= 6, "at most 6 completion_tokens", tokens);
    },
  }),
  check({
    id: "tool_choice.required",
    source: 'contract.md "Request fields"',
    title: 'tool_choice "required": a tool is called',
    needs: ["tools"],
    run: async (t) => {
      const { json } = await t.answered(
        { ...TOOLS, tool_choice: "required" },
        { headers: mark("tool_choice.required") },
      );
      expect(
        isText(first(json, "choices[].message.tool_calls[].function.name")),
        "a tool call",
        first(json, "choices[].message"),
      );
    },
  }),
  check({
    id: "response_format.json_schema",
    source: 'wire.md "Reply format"',
    title: "json_schema is followed, or refused in the words that clients look for",
    needs: ["json"],
    run: async (t) => {
      const schema = {
        type: "object",
        properties: { city: { type: "string" } },
        required: ["city"],
        additionalProperties: false,
      };
      const { answer, json } = await t.ask(
        {
          response_format: {
            type: "json_schema",
            json_schema: { name: "place", schema, strict: true },
          },
        },
        { headers: mark("response_format.json_schema") },
      );
      const content = parseJson(String(first(json, "choices[].message.content")));
      const refusal = "'response_format' of type 'json_schema' is not supported with this model";
      const holds =
        answer.status === 200
          ? isText(first(content, "city"))
          : answer.status === 400 && String(first(json, "error.message")).includes(refusal);
      expect(holds, `{"city": "..."}, or 400 with: ${refusal}`, answer.text);
    },
  }),
];

const TOOL_CALL: readonly Field[] = [
  [
    "choices[].message.tool_calls",
    "an array of at least one call where it is present",
    (value) => value === undefined || list(value).length > 0,
  ],
  ["choices[].message.tool_calls[].id", "a non-empty string", isText],
  ["choices[].message.tool_calls[].type", '"function"', (value) => value === "function"],
  ["choices[].message.tool_calls[].function.name", "a non-empty string", isText],
  [
    "choices[].message.tool_calls[].function.arguments",
    "a JSON object as a string",
    (value) => isObject(parseJson(isText(value) ? value : undefined)),
  ],
];
const isBytes = (value: unknown): boolean =>
  value === null || (Array.isArray(value) && value.every((byte) => isCount(byte) && byte < 256));
const LOGPROBS: readonly Field[] = [
  ["choices[].logprobs.content[].token", "a string", (value) => typeof value === "string"],
  [
    "choices[].logprobs.content[].logprob",
    "a number, at most 0",
    (value) => typeof value === "number" && value <= 0,
  ],
  ["choices[].logprobs.content[].bytes", "an array of bytes, or null", isBytes],
  ["choices[].logprobs.content[].top_logprobs", "an array", Array.isArray],
];
const DETAILS: readonly Field[] = [
  [
    "usage.prompt_tokens_details.cached_tokens",
    "the same as prompt_cache_hit_tokens",
    (value, { root }) =>
      isCount(value) &&
      (value === first(root, "usage.prompt_cache_hit_tokens") ||
        !isCount(first(root, "usage.prompt_cache_hit_tokens"))),
  ],
  [
    "usage.completion_tokens_details.reasoning_tokens",
    "at most completion_tokens",
    (value, { root }) =>
      isCount(value) &&
      (value <= Number(first(root, "usage.completion_tokens")) ||
        !isCount(first(root, "usage.completion_tokens"))),
  ],
];

const replies: Check[] = [
  rule({
    kind: "reply",
    id: "reply.media-type",
    source: 'wire.md "Whole replies"',
    title: "a whole reply is application/json: some clients return a text for anything else",
    look: ({ answer }) => expectJson(answer.headers["content-type"]),
  }),
  ...fieldRules("reply", "reply", 'wire.md "Whole replies"', [...TOOL_CALL, ...LOGPROBS]),
  rule({
    kind: "reply",
    id: "reply.logprobs.unasked",
    source: 'wire.md "Log probabilities"',
    title: "logprobs is null where it was not asked for",
    look: ({ asked, json }) => {
      if (asked["logprobs"] !== true)
        for (const { value } of find(json, "choices[].logprobs"))
          expect((value ?? null) === null, "null", value);
    },
  }),
  ...fieldRules("reply", "reply", 'wire.md "Token counts"', DETAILS),
  check({
    id: "reply.top_logprobs",
    source: 'wire.md "Log probabilities"',
    title: "top_logprobs has as many as were asked for; none without",
    needs: ["logprobs"],
    run: async (t) => {
      for (const [top, expected] of [
        [2, 2],
        [undefined, 0],
      ] as const) {
        const { json } = await t.answered(
          { logprobs: true, top_logprobs: top },
          { headers: mark("reply.top_logprobs") },
        );
        const got = find(json, "choices[].logprobs.content[].top_logprobs").map(
          ({ value }) => list(value).length,
        );
        expect(
          got.length > 0 && got.every((length) => length <= expected),
          `at most ${expected} in each place`,
          got,
        );
      }
    },
  }),
];

const usesUsage = ({ asked }: Exchange): boolean =>
  first(asked, "stream_options.include_usage") === true;
const withUsage = (stream: Exchange): readonly unknown[] =>
  chunksOf(stream).filter((chunk) => isObject(first(chunk, "usage")));
const fragments = (stream: Exchange) =>
  choicesOf(stream).flatMap((choice) => list(first(choice, "delta.tool_calls")));
const streamHeader = (
  id: string,
  name: string,
  expected: string,
  holds: (value: string) => boolean,
): Check =>
  rule({
    kind: "stream",
    id,
    source: 'wire.md "Framing"',
    title: `a stream has ${expected}`,
    look: ({ answer }) =>
      expect(holds(String(answer.headers[name] ?? "")), expected, answer.headers[name]),
  });
const USAGE: readonly Field[] = REPLY.filter(([path]) => path.startsWith("usage."));

/** Whether a choice's delta is a piece of the thinking or of the text; "" if it is neither. */
function kindOf(choice: unknown): "thinking" | "text" | "" {
  if (isText(first(choice, "delta.reasoning_content"))) return "thinking";
  return isText(first(choice, "delta.content")) ? "text" : "";
}

const streams: Check[] = [
  streamHeader(
    "stream.cache-control",
    "cache-control",
    "Cache-Control: no-cache, no-transform",
    (value) => /\bno-cache\b/.test(value) && /\bno-transform\b/.test(value),
  ),
  streamHeader(
    "stream.buffering",
    "x-accel-buffering",
    "X-Accel-Buffering: no",
    (value) => value === "no",
  ),
  streamHeader("stream.no-length", "content-length", "no Content-Length", (value) => value === ""),
  rule({
    kind: "stream",
    id: "stream.line-ends",
    source: 'wire.md "Framing"',
    title: "lines end with LF alone",
    look: ({ answer }) => expect(!answer.text?.includes("\r"), "no CR", "CR"),
  }),
  rule({
    kind: "stream",
    id: "stream.no-fields",
    source: 'wire.md "Framing"',
    title: "no `event:`, `id:` or `retry:`, on which clients break",
    look: ({ events }) => {
      for (const line of events.flatMap(({ lines }) => lines))
        expect(!/^(event|id|retry)\b/.test(line), "data and comments only", line);
    },
  }),
  rule({
    kind: "stream",
    id: "stream.ends",
    source: 'wire.md "Framing"',
    title: "the response ends right after [DONE]: clients wait for that",
    look: ({ answer }) => {
      const late = answer.endMs - (answer.pieces.at(-1)?.ms ?? 0);
      expect(late < 1_000, "the end within a second", `${Math.round(late)} ms`);
    },
  }),
  rule({
    kind: "stream",
    id: "chunk.created.same",
    source: 'wire.md "Chunks"',
    title: "created is the same in all chunks",
    look: (stream) => allSame(chunksOf(stream).map((chunk) => first(chunk, "created"))),
  }),
  rule({
    kind: "stream",
    id: "chunk.model.same",
    source: 'wire.md "Chunks"',
    title: "model is the same in all chunks",
    look: (stream) => allSame(chunksOf(stream).map((chunk) => first(chunk, "model"))),
  }),
  rule({
    kind: "stream",
    id: "chunk.no-empty-choices",
    source: 'wire.md "Chunks"',
    title: "choices is empty in no chunk but the one with usage",
    look: (stream) => {
      for (const chunk of chunksOf(stream))
        expect(
          first(chunk, "choices") === undefined ||
            list(first(chunk, "choices")).length > 0 ||
            isObject(first(chunk, "usage")),
          "a choice",
          chunk,
        );
    },
  }),
  rule({
    kind: "stream",
    id: "chunk.one-text",
    source: 'wire.md "Chunks"',
    title: "never both thinking and text in one delta",
    look: (stream) => {
      for (const choice of choicesOf(stream))
        expect(
          !(
            isText(first(choice, "delta.content")) &&
            isText(first(choice, "delta.reasoning_content"))
          ),
          "one text",
          choice,
        );
    },
  }),
  rule({
    kind: "stream",
    id: "chunk.thinking-first",
    source: 'wire.md "Chunks"',
    title: "thinking comes before text",
    look: (stream) => {
      const kinds = choicesOf(stream).map(kindOf).filter(isText);
      const textFrom = kinds.indexOf("text");
      expect(
        textFrom === -1 || !kinds.slice(textFrom).includes("thinking"),
        "no thinking after text",
        kinds.join(" "),
      );
    },
  }),
  rule({
    kind: "stream",
    id: "usage.once",
    source: 'wire.md "Usage in streams"',
    title: "usage comes exactly once, if include_usage was set",
    look: (stream) => {
      if (usesUsage(stream))
        expect(withUsage(stream).length === 1, "one chunk with usage", withUsage(stream).length);
    },
  }),
  rule({
    kind: "stream",
    id: "usage.last",
    source: 'wire.md "Usage in streams"',
    title: "the chunk with usage is the last, and its choices are []",
    look: (stream) => {
      const [usage, last] = [withUsage(stream)[0], chunksOf(stream).at(-1)];
      if (usesUsage(stream) && usage !== undefined)
        expect(
          isObject(first(last, "usage")) && list(first(usage, "choices")).length === 0,
          "usage after all choices",
          usage,
        );
    },
  }),
  rule({
    kind: "stream",
    id: "usage.unasked",
    source: 'wire.md "Usage in streams"',
    title: "no usage, if include_usage was not set",
    look: (stream) => {
      if (!usesUsage(stream))
        expect(withUsage(stream).length === 0, "no usage", withUsage(stream)[0]);
    },
  }),
  ...fieldRules("stream", "chunk", 'wire.md "Usage in streams"', USAGE),
  ...fieldRules("stream", "chunk", 'wire.md "Log probabilities"', LOGPROBS),
  rule({
    kind: "stream",
    id: "chunk.tool_calls.index",
    source: 'wire.md "Chunks"',
    title: "each fragment of a tool call has its index, counted from 0",
    look: (stream) => {
      let next = 0;
      for (const fragment of fragments(stream)) {
        const index = first(fragment, "index");
        expect(isCount(index) && index <= next, `an index up to ${next}`, fragment);
        next = Math.max(next, index + 1);
      }
    },
  }),
  rule({
    kind: "stream",
    id: "chunk.tool_calls.function",
    source: 'wire.md "Chunks"',
    title: "each fragment has a function object, whose arguments are a string",
    look: (stream) => {
      for (const fragment of fragments(stream))
        expect(
          typeof first(fragment, "function.arguments") === "string",
          "function.arguments, a string",
          fragment,
        );
    },
  }),
  ...["id", "type", "function.name"].map((path) =>
    rule({
      kind: "stream",
      id: `chunk.tool_calls.${path}`,
      source: 'wire.md "Chunks"',
      title: `${path} of a tool call comes once, in its first fragment`,
      look: (stream) => {
        const begun = new Set<unknown>();
        for (const fragment of fragments(stream)) {
          const [index, value] = [first(fragment, "index"), first(fragment, path)];
          expect(
            begun.has(index) ? value === undefined : isText(value),
            begun.has(index)
              ? `no ${path} after the first fragment`
              : `${path} in the first fragment`,
            fragment,
          );
          begun.add(index);
        }
      },
    }),
  ),
  rule({
    kind: "stream",
    id: "chunk.tool_calls.arguments",
    source: 'wire.md "Chunks"',
    title: "the fragments' arguments are JSON together",
    look: (stream) => {
      const calls = new Map<unknown, string>();
      for (const fragment of fragments(stream))
        calls.set(
          first(fragment, "index"),
          `${calls.get(first(fragment, "index")) ?? ""}${first(fragment, "function.arguments") ?? ""}`,
        );
      for (const text of calls.values()) expect(isObject(parseJson(text)), "a JSON object", text);
    },
  }),
];

export const compatibleChecks: readonly Check[] = [
  ...places,
  ...accepted,
  ...obeyed,
  ...refused,
  ...errorHeaders,
  ...http,
  ...ids,
  ...replies,
  ...streams,
];
