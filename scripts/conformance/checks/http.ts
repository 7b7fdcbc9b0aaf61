// Levels `spec` and `compatible`: HTTP, keys, ids, limits and errors as seen from outside.

import { parseJson, parseRaw, type Exchange, type Headers } from "../client.ts";
import * as expect from "../expect.ts";
import * as is from "../forms.ts";
import { first, isObject, isText, type Fields } from "../shapes.ts";
import { CHAT, question, type Ask, type Tester } from "../tester.ts";
import { isError } from "./compatible.ts";
import { idHeader, overLimit, sectionsOf, valuesAt } from "./kit.ts";

const [spec, compatible] = [sectionsOf("spec"), sectionsOf("compatible")];
const plain = compatible('wire.md "Responses without a handler"');

/** A GET of this path must get a response with these fields. */
const gets = (path: string, expected: Fields, headers?: Headers) => async (t: Tester) =>
  expect.fields(await t.get(path, headers), expected);
const listed = async (t: Tester): Promise<unknown> =>
  (await t.get("/v1/models", { authorization: `Bearer ${t.options.key}` })).json;
spec('contract.md "Endpoints"').checks({
  "answers [last]: whatever is asked of it over HTTP, there is an answer": ({ unanswered }) =>
    expect.that(unanswered.length === 0, "an answer", unanswered.join("; ")),
  "healthz: 200 while the process is running, without a key": gets("/healthz", { status: 200 }),
  "healthz.any-key: a key is not looked at": gets(
    "/healthz",
    { status: 200 },
    { authorization: "Bearer none" },
  ),
});
compatible('contract.md "Endpoints"').checks({
  async "healthz.head: /healthz answers HEAD"(t) {
    const { status, text: body } = await rawAnswer(t, "HEAD /healthz HTTP/1.1", HOST);
    expect.same({ status, body }, { status: 200, body: "" });
  },
  "models.key: the list of models wants a key": async (t) =>
    isError(await t.get("/v1/models"), "401 missing_api_key"),
});
plain.checks({
  'healthz.body: it says {"status":"ok"}': gets("/healthz", { "json.status": "ok" }),
  "healthz.no-store: /healthz is not to be stored by a cache": gets("/healthz", {
    "headers.cache-control": /\bno-store\b/,
  }),
});
compatible('wire.md "Request envelope"').checks({
  async "body.not-utf8: 400 invalid_json for a body that is not UTF-8"(t) {
    const body = JSON.stringify({ model: t.model, messages: question("caf\u00e9") });
    isError(await t.ask(Buffer.from(body, "latin1")), "400 invalid_json");
  },
});
compatible('wire.md "Model list"').checks({
  "models.list: GET /v1/models lists models: id, object, created, owned_by": async (t) =>
    expect.fields(await listed(t), {
      object: "list",
      data: is.members,
      "data[].object": "model",
      "data[].id": is.text,
      "data[].created": is.count,
      "data[].owned_by": is.text,
    }),
  async "models.names [model alias]: it has the model, and the alias"(t) {
    const all = valuesAt(await listed(t), "data[].id");
    const has = all.includes(t.model) && all.includes(t.alias);
    expect.that(has, `${t.model} and ${t.alias}`, all);
  },
});
compatible('contract.md "Order of checks"').checks({
  "error.unknown-url: 404 unknown_url": async (t) =>
    isError(await t.get("/v1/nothing"), "404 unknown_url"),
  "error.wrong-method: 405 method_not_allowed": async (t) =>
    isError(await t.call("PUT", CHAT), "405 method_not_allowed"),
});
compatible('contract.md "Errors"').checks({
  "error.www-authenticate: 401 says how to authenticate": async (t) =>
    expect.fields(await t.ask({}, { headers: { authorization: undefined } }), {
      status: 401,
      "headers.www-authenticate": /^Bearer\b/,
    }),
  "error.allow: 405 says what is allowed": gets(CHAT, {
    status: 405,
    "headers.allow": /\bPOST\b/,
  }),
});

const ids = spec('contract.md "Request ids"');

const ownId = ({ request }: Exchange) => request.headers?.["x-request-id"];
/** No value may occur twice. */
const allDiffer = (values: readonly unknown[]): void => {
  const repeated = values.filter((value, index) => values.indexOf(value) < index);
  expect.that(repeated.length === 0, "another one each time", repeated[0]);
};
const echo =
  (value: string, ask: Ask = {}) =>
  async (t: Tester) => {
    const exchange = await t.ask(ask, { headers: { "x-request-id": value } });
    expect.same(idHeader(exchange), value);
  };

ids.rules("response", {
  "request-id.present: every response carries X-Request-Id, once": ({ rawHeaders }) => {
    const own = rawHeaders.filter(
      (name, index) => index % 2 === 0 && name.toLowerCase() === "x-request-id",
    );
    expect.that(own.length === 1, "one header X-Request-Id", own.length);
  },
  "request-id.format: a generated id is req_ and 32 hexadecimal characters": (exchange) => {
    const id = idHeader(exchange);
    if (ownId(exchange) !== undefined || id === undefined) return;
    expect.that(/^req_[0-9a-f]{32}$/i.test(String(id)), "req_ and 32 hexadecimal characters", id);
  },
});
ids.rules("error", {
  "request-id.in-error: error.request_id is the same as X-Request-Id": (exchange) => {
    const [inBody, inHeader] = [first(exchange.error, "request_id"), idHeader(exchange)];
    if (isText(inBody) && inHeader !== undefined) expect.same(inBody, inHeader);
  },
});
compatible('contract.md "Request ids"').rules("response", {
  "request-id.lower-case: a generated id is in lower case": (exchange) => {
    const id = String(idHeader(exchange));
    if (ownId(exchange) === undefined) expect.that(!/[A-F]/.test(id), "lower case", id);
  },
});
ids.checks({
  "request-id.unique [last]: each request without an id gets a unique one": ({ seen }) => {
    const ids = seen.filter((each) => ownId(each) === undefined).map(idHeader);
    allDiffer(ids.filter((id) => id !== undefined));
  },
  "request-id.echo: a whole reply has the client's value": echo("conformance-whole"),
  "request-id.echo.stream: a stream has the client's value": echo("conformance-stream", {
    stream: true,
  }),
  "request-id.echo.error: an error has the client's value": echo("conformance-error", {
    messages: 7,
  }),
  "request-id.echo.free-form: the client's value need not look like a generated one": echo(
    '7 {Any: value}/"of" the=client; it\'s 100%',
  ),
  async "request-id.echo.healthz: /healthz returns the client's value"(t) {
    const value = "conformance-healthz";
    expect.same(idHeader(await t.get("/healthz", { "x-request-id": value })), value);
  },
  async "request-id.echo.again: a value that was used before is used again"(t) {
    for (let i = 0; i < 2; i += 1) await echo("conformance-again")(t);
  },
  async "request-id.malformed: the answer to bytes that are not HTTP carries X-Request-Id"(t) {
    const answer = await t.client.raw("this is not HTTP\r\n\r\n");
    expect.fields(parseRaw(answer).headers, { "x-request-id": is.text });
  },
});
spec('contract.md "Replies"').checks({
  "reply.id.unique [last]: id is a unique identifier of the completion": ({ seen }) =>
    allDiffer(seen.map(({ parts }) => first(parts[0], "id")).filter(isText)),
});

/** Sends these lines on their own connection. */
async function rawAnswer(t: Tester, ...lines: readonly string[]) {
  const bytes = Buffer.from([...lines, "Connection: close", "", ""].join("\r\n"), "latin1");
  return parseRaw(await t.client.raw(bytes));
}
const HOST = "Host: gateway";
const HEALTHZ = "GET /healthz HTTP/1.1";
/** Requests that Node and other servers answer by themselves unless the gateway handles them. */
const UNHANDLED: readonly (readonly [id: string, status: number, what: string, ...string[]])[] = [
  ["malformed", 400, "what is not HTTP", "nonsense, not HTTP"],
  ["no-host", 400, "a request without Host", HEALTHZ],
  ["large-headers", 431, "headers of 40 kB", HEALTHZ, HOST, `X-Large: ${"x".repeat(40_000)}`],
  ["expect", 417, "an unknown expectation", "GET /v1/models HTTP/1.1", HOST, "Expect: cake"],
  ["connect", 405, "CONNECT", "CONNECT elsewhere:443 HTTP/1.1", "Host: elsewhere"],
];
for (const [id, status, what, ...lines] of UNHANDLED)
  plain.checks({
    async [`http.${id}: ${status} with an error object and its id: ${what}`](t) {
      const answer = await rawAnswer(t, ...lines);
      const requestId = answer.headers["x-request-id"];
      expect.same(answer.status, status);
      expect.that(isText(requestId), "X-Request-Id", requestId);
      expect.same(first(parseJson(answer.text), "error.request_id"), requestId);
    },
  });

const withId = (t: Tester, ...values: readonly string[]) =>
  rawAnswer(t, HEALTHZ, HOST, ...values.map((value) => `X-Request-Id: ${value}`));
const isGenerated = (value: string) => async (t: Tester) =>
  expect.fields(await withId(t, value), { status: 200, "headers.x-request-id": /^req_/ });
compatible('contract.md "Request ids"').checks({
  "request-id.long: 255 characters are echoed": async (t) =>
    expect.same((await withId(t, "i".repeat(255))).headers["x-request-id"], "i".repeat(255)),
  "request-id.too-long: for 2000 characters an id is generated": isGenerated("l".repeat(2000)),
  "request-id.not-ascii: for a value outside ASCII an id is generated": isGenerated("caf\u00e9"),
  async "request-id.two: of two values the first counts"(t) {
    const { headers } = await withId(t, "first-of-two", "second-of-two");
    expect.same(headers["x-request-id"], "first-of-two");
  },
});

const key = (authorization?: string) => async (t: Tester) => {
  const { status } = await t.ask({}, { headers: { authorization } });
  expect.that(status >= 400 && status < 500, "a refusal, status 400 to 499", status);
};
spec('contract.md "Authentication"').checks({
  "auth.missing: a chat request without Authorization is rejected": key(),
  "auth.unknown: a key that was never issued is rejected": key("Bearer no-such-key"),
  "auth.empty: an empty key is rejected": key("Bearer "),
  "auth.scheme: a scheme other than Bearer is rejected": key("Basic bm86c3VjaGtleQ=="),
});

const statusesOf = async (t: Tester) => (await t.overLimit()).map(({ status }) => status);
const isExceeded = (expected: Fields) => async (t: Tester) =>
  expect.fields(await overLimit(t), expected);
spec('contract.md "Limits"').checks({
  async "limit.exists [limited]: one request more than the limit in a minute is not answered"(t) {
    const got = await statusesOf(t);
    expect.that(got.at(-1) !== 200, `a refusal after ${t.options.limited!.rpm}`, got.join());
  },
  async "limit.status [limited]: exceeding the limit returns 429"(t) {
    const got = await statusesOf(t);
    expect.that(!got.some((status) => status !== 200 && status !== 429), "429", got.join());
  },
  "limit.type [limited]: its type is rate_limit_error": isExceeded({
    "error.type": "rate_limit_error",
  }),
  "limit.code [limited]: its code is rate_limit_exceeded": isExceeded({
    "error.code": "rate_limit_exceeded",
  }),
  "limit.message [limited]: its message names the minute's limit and the seconds to wait":
    isExceeded({
      "error.message": /minute.*\b\d+ ?s(ec(ond)?s?)?\b|\b\d+ ?s(ec(ond)?s?)?\b.*minute/i,
    }),
});
compatible('wire.md "Rate limit headers"').checks({
  "limit.retry-after [limited]: 429 carries Retry-After, a whole number of seconds from 1 to 60":
    isExceeded({ "headers.retry-after": /^([1-9]|[1-5]\d|60)$/ }),
  async 'limit.message [limited]: 429 says "retry after N seconds" as Retry-After does'(t) {
    const { headers, error } = await overLimit(t);
    const message = String(first(error, "message"));
    const [, inMessage] = /retry after (\d+) seconds?/i.exec(message) ?? [];
    const inHeader = headers["retry-after"] ?? "";
    const isSame = inMessage === inHeader || !/^\d+$/.test(inHeader);
    expect.that(inMessage !== undefined && isSame, `"retry after ${inHeader} seconds"`, message);
  },
});

const errors = spec('contract.md "Errors"');
errors.rules("error", {
  "error.json: an error's body is JSON with one top-level object, `error`": (exchange) => {
    const { json, text } = exchange;
    const isOne = isObject(json) && Object.keys(json).join() === "error";
    expect.that(isOne && isObject(json["error"]), 'a body {"error": {...}}', text);
  },
});
errors.fields("error", "error", is.ERROR, "error.");
errors.rules("response", {
  "error.status: 500 and 503 are the server-side failures: no other from 500 on": ({ status }) =>
    expect.that(status < 500 || status === 500 || status === 503, "500 or 503", status),
  "error.any-status: a success has no other status than 200": ({ status }) =>
    expect.that(status === 200 || status >= 400, "200, or a status from 400 on", status),
});
compatible('wire.md "Error body"').rules("error", {
  "error.media-type: an error is application/json": ({ headers }) =>
    expect.fields(headers, { "content-type": /^application\/json\b/ }),
  "error.param: error.param is a string, null or absent": ({ error }) => {
    const param = first(error, "param") ?? null;
    expect.that(param === null || isText(param), "a string, null or nothing", param);
  },
});
compatible('wire.md "Status codes"').rules("error", {
  "error.known-status: no status that some clients retry in vain: 422": ({ status }) =>
    expect.that(status !== 422, "400 for a bad body", status),
});
