// Level `robust`: what goes wrong in gateways, as their provider fails and as their clients leave.

import { within } from "../client.ts";
import type { Exchange } from "../exchange.ts";
import {
  CALLS,
  CANARY,
  ELSEWHERE,
  FLOOD_BYTES,
  PIECES,
  TEXT,
  THOUGHTS,
  USAGE,
} from "../provider.ts";
import { BURST } from "../ready.ts";
import {
  Expectation,
  expect,
  expectFields,
  expectSame,
  first,
  isText,
  list,
  positive,
} from "../shapes.ts";
import { CHAT, question, TOOLS, type Check } from "../suite.ts";
import { choicesOf, valuesAt } from "./kit.ts";
import {
  bodyOf,
  expectBroken,
  expectCalls,
  expectComplete,
  expectHealthy,
  expectRefusal,
  expectServedBy,
  expectWait,
  isSent,
  PATIENT_MS,
  robust,
  secondsOf,
  soon,
  SOON_MS,
  WITH_USAGE,
  type Scene,
} from "./scene.ts";

const STREAM = { stream: true };

/** Checks that differ in what the provider does. */
const alike = (
  source: string,
  headings: readonly string[],
  run: (scene: Scene) => unknown,
): Check[] => robust(source, Object.fromEntries(headings.map((heading) => [heading, run])));
const GONE = "the provider's connection to be closed after the client had left";

const leavesWaiting =
  (stream: boolean) =>
  async ({ ask, call }: Scene): Promise<void> => {
    const leave = new AbortController();
    ask({ stream }, {}, leave.signal).catch(() => undefined);
    const { left } = await call();
    leave.abort();
    await soon(left, GONE);
  };
const leaving = robust('contract.md "Clients that leave"', {
  async "leaving.stream [silent-after-1]: a client leaves within a stream: the provider's too"({
    begun,
    call,
  }) {
    (await begun()).leave();
    await soon((await call()).left, GONE);
  },
  "leaving.whole [silent]: a client leaves while it waits for a whole reply: the provider's connection is closed":
    leavesWaiting(false),
  "leaving.silence [silent]: a client leaves while it waits for a first delta: the provider's connection is closed":
    leavesWaiting(true),
});

const FIGURES = ["prompt_tokens", "completion_tokens", "total_tokens"] as const;
const expectUsage = (reply: Exchange): void => {
  expectComplete(reply);
  expectFields(reply.usage, Object.fromEntries(FIGURES.map((name) => [name, USAGE[name]])));
};

const usage: Check[] = [
  ...robust('wire.md "Usage in streams"', {
    "usage.asked: of a stream, usage is asked for although the client did not ask": isSent(STREAM, {
      "stream_options.include_usage": true,
    }),
    async "usage.hidden: usage that the client did not ask for is not shown"({ ask }) {
      const reply = await ask(STREAM);
      expectComplete(reply);
      expectSame(reply.usage, undefined);
    },
  }),
  ...alike(
    'wire.md "Token counts"',
    [
      ["good", "a chunk of its own"],
      ["usage-null", "a chunk of its own, null before and after it"],
      ["usage-with-finish", "the last chunk with a choice"],
      ["usage-in-choice", "a choice"],
      ["usage-everywhere", "every chunk, each time more"],
      ["usage-digits", "a chunk of its own, as strings of digits"],
    ].map(
      ([name, where]) =>
        `usage.figures.${name} [${name}]: figures are shown that the provider sends in ${where}`,
    ),
    async ({ ask }) => expectUsage(await ask(WITH_USAGE)),
  ),
  ...robust('wire.md "Token counts"', {
    "usage.whole: the provider's figures are shown in a whole reply": async ({ ask }) =>
      expectUsage(await ask()),
    async "usage.reasoning [reasoning]: tokens of thinking are within completion_tokens"({ ask }) {
      for (const reply of [await ask(), await ask(WITH_USAGE)]) {
        expectUsage(reply);
        const tokens = first(reply.usage, "completion_tokens_details.reasoning_tokens");
        expect(tokens === undefined || tokens === 3, "3 reasoning_tokens", tokens);
      }
    },
  }),
  ...alike(
    'wire.md "Token counts"',
    [
      "usage.never [usage-never]: a provider that sends no usage: there are figures all the same",
      "usage.nonsense [usage-nonsense]: a provider that sends nonsense as usage: figures all the same",
      "usage.empty [usage-empty]: a provider that sends usage without figures: figures all the same",
    ],
    async ({ ask }) => {
      for (const reply of [await ask(), await ask(WITH_USAGE)]) {
        expectComplete(reply);
        expectFields(reply.usage, { prompt_tokens: positive, completion_tokens: positive });
      }
    },
  ),
];

const FALLS = [
  ...[401, 402, 403, 404, 408, 429, 500, 503, 529].map((status) => [
    `status-${status}`,
    `status ${status}`,
  ]),
  ["error-in-200", "an error inside a 200"],
  ["error-first", "an error as the first event of a stream"],
  ["error-after-role", "an error after a chunk that has nothing but the role"],
  ["nothing", "an empty body"],
  ["error-with-usage", "an error that comes with usage"],
  ["error-object", "an error whose code is an object"],
  ["call-failed", "a failed tool call as status 400"],
  ["call-failed-in-stream", "a failed tool call as an event of a stream"],
  ["only-done", "a stream that is nothing but [DONE]"],
  ["not-json", "what is not JSON"],
  ["html", "a page instead of a reply"],
  ["redirect-302", "a redirect"],
  ["gzip", "a compressed reply although identity was asked for"],
  ["too-short", "a body shorter than its Content-Length"],
  ["reset", "a connection that breaks before the answer"],
  ["cut-after-0", "a connection that breaks before the first delta"],
  ["silent", "no answer in time", "silent@impatient"],
  ["silent-after-0", "no first delta in time", "silent-after-0@impatient"],
  ["gone", "nobody at the provider's address", "good@gone"],
] as const;

const attempts: Check[] = [
  ...alike(
    'contract.md "Attempts"',
    FALLS.map(
      ([id, what, behaviour = id]) =>
        `fallback.${id} [${behaviour} in-one]: ${what}: an alias answers by its next model, unseen`,
    ),
    async ({ askBoth, second }) => {
      for (const reply of await askBoth()) {
        expectComplete(reply);
        expectServedBy(reply, second);
      }
    },
  ),
  ...alike(
    'contract.md "Attempts"',
    [
      ["status-500", "500"],
      ["status-401", "401: it is not the client's key that was refused"],
      ["status-429", "429: it is not the client's limit that was reached"],
      ["error-first", "an error inside a 200"],
      ["redirect-307", "a redirect"],
      ["reset", "a broken connection"],
    ].map(
      ([name, what]) => `canonical.${name} [${name}]: a canonical name fails with 503 at ${what}`,
    ),
    async ({ askBoth }) => {
      for (const reply of await askBoth()) expectRefusal(reply, 503);
    },
  ),
  ...robust('contract.md "Attempts"', {
    async "client-fault.once [status-400 good]: a provider's 400 is the client's: no other attempt"(
      scene,
    ) {
      expectRefusal(await scene.ask(), 400);
      expectCalls(scene, 1);
      expectCalls(scene, 0, scene.second);
    },
  }),
  ...alike(
    'contract.md "Attempts"',
    [429, 503].map(
      (status) => `retry.${status} [once-${status}]: another attempt hides a ${status}`,
    ),
    async (scene) => {
      expectComplete(await scene.ask());
      expectCalls(scene, 2);
    },
  ),
  ...robust('contract.md "Commit point"', {
    async "no-splice [cut-after-2 good]: after the first delta no other model follows, but an error"(
      scene,
    ) {
      expectBroken(await scene.ask(STREAM), PIECES.slice(0, 2).join(""));
      expectCalls(scene, 0, scene.second);
    },
  }),
  ...alike(
    'contract.md "Replies"',
    [
      "model.canonical [good]: model is the name that was asked for, not the provider's, throughout",
      "model.fallback [status-500 good]: after a fallback model is the one that served, throughout",
    ],
    async ({ askBoth, second }) => {
      for (const reply of await askBoth()) expectServedBy(reply, second);
    },
  ),
  ...robust('wire.md "Rate limit headers"', {
    async "overloaded [overloaded-7]: a provider's Retry-After is passed on, also in the message"({
      ask,
    }) {
      const reply = await ask();
      expectRefusal(reply, 503);
      expectSame(reply.headers["retry-after"], "7");
      expectWait(reply);
    },
  }),
  ...robust('routing.md "Upstream connections"', {
    async "keep-alive.reuse [alone good@lone]: the next request takes the connection before it"({
      ask,
      call,
    }) {
      for (let i = 0; i < 2; i += 1) {
        expectComplete(await ask());
        await (await call(i)).finished;
      }
      expectSame((await call(1)).connection, (await call(0)).connection);
    },
    async "keep-alive.stale [alone closes-when-reused@lone]: where a kept connection closes when it is used, the request goes out on another"({
      ask,
    }) {
      for (let i = 0; i < 3; i += 1) expectComplete(await ask());
    },
  }),
  ...robust('wire.md "Calls"', {
    async "redirect [redirect-308]: a redirect is not followed"(scene) {
      expectRefusal(await scene.ask(), 503);
      expectCalls(scene, 0, ELSEWHERE);
    },
  }),
];

/** Several at once. */
const askMany = ({ ask }: Scene, number: number, content: string, headers = {}) =>
  Promise.all(Array.from({ length: number }, () => ask({ messages: question(content) }, headers)));

const breaker = robust('contract.md "Breaker"', {
  async "client-fault.breaker [picky]: many bad requests do not shut out a good one"({ ask }) {
    for (let i = 0; i < 10; i += 1) expectRefusal(await ask({ messages: question("bad") }), 400);
    expectComplete(await ask());
  },
  "breaker.opens [status-500]: a provider that fails again and again is left alone": (scene) =>
    untilOpen(scene),
  async "breaker.one-probe [status-500]: after a while it is tried by one request at a time"(
    scene,
  ) {
    const { provider, model, calls, call } = scene;
    await untilOpen(scene);
    provider.turn(model, "held");
    const before = calls().length;
    const { probe } = await untilThrough(scene, before);
    for (const reply of await askMany(scene, 8, "More?")) expectRefusal(reply, 503);
    expectCalls(scene, before + 1);
    provider.turn(model, "good");
    expectComplete(await probe);
    await (await call(before)).finished;
  },
  async "breaker.closes [status-500]: one good answer lets all requests through again"(scene) {
    const { provider, model, calls } = scene;
    await untilOpen(scene);
    provider.turn(model, "good");
    expectComplete(await (await untilThrough(scene, calls().length)).probe);
    for (const reply of await askMany(scene, 4, "All?")) expectComplete(reply);
  },
});

/** Fails until requests do not reach the provider any more. */
async function untilOpen({ ask, calls }: Scene): Promise<void> {
  for (let i = 0; i < 20; i += 1) {
    const before = calls().length;
    expectRefusal(await ask(), 503);
    if (calls().length === before) return;
  }
  throw new Expectation("a provider that is left alone after 20 failures", calls().length);
}

/** Asks until a request reaches the provider again; gives what becomes of it. */
async function untilThrough(
  { ask, calls, call }: Scene,
  before: number,
): Promise<{ readonly probe: Promise<Exchange> }> {
  const through = call(before);
  through.catch(() => undefined); // the loop below has a deadline of its own
  for (const end = performance.now() + SOON_MS; performance.now() < end; ) {
    const probe = ask();
    await Promise.race([probe, through]);
    if (calls().length > before) return { probe };
  }
  throw new Expectation(`a request that reaches the provider within ${SOON_MS} ms`, "none");
}

const cuts = (source: string, headings: readonly string[]): Check[] =>
  alike(source, headings, async ({ ask }) => {
    const reply = await soon(ask(STREAM), "the end of a stream that was cut");
    expectBroken(reply, PIECES.slice(0, 3).join(""));
  });
const complete = (source: string, headings: readonly string[]): Check[] =>
  alike(source, headings, async ({ ask }) => expectComplete(await ask(STREAM)));

const streams: Check[] = [
  ...cuts('contract.md "Completeness"', [
    "cut.reset [cut-after-3]: a connection that breaks after some deltas: an error event, no [DONE]",
    "cut.end [ends-after-3]: a stream that ends without a finish_reason: an error event, no [DONE]",
    "cut.done [done-after-3]: [DONE] without a finish_reason: an error event, no [DONE]",
    "cut.error [error-after-3]: an error event after some deltas: an error event, no [DONE]",
  ]),
  ...cuts('wire.md "Errors in streams"', [
    "cut.error-with-usage [error-with-usage-after-3]: an error with usage: an error event, no [DONE]",
  ]),
  ...cuts('routing.md "Deadlines"', [
    "cut.silence [silent-after-3@impatient]: a stream that falls silent: an error event, no [DONE]",
  ]),
  ...complete('routing.md "Deadlines"', [
    "long-stream [trickle-90@impatient]: a long stream that is never silent is not cut by them",
  ]),
  ...robust('routing.md "Deadlines"', {
    async "first-token [silent@impatient]: a first delta that never comes: 503 at its own deadline"({
      askBoth,
    }) {
      for (const reply of await soon(askBoth(), "the deadline for a first delta"))
        expectRefusal(reply, 503);
    },
  }),
  ...robust('wire.md "Framing"', {
    async "passes-on [silent-after-1]: a delta is passed on at once, not when more has come"({
      begun,
    }) {
      (await soon(begun(), "the first delta, before the provider sends another")).leave();
    },
  }),
  ...complete('contract.md "Completeness"', [
    "finished.no-done [no-done]: a finish_reason without [DONE] is a complete reply",
    "finished.after-done [after-done]: what a provider sends after [DONE] is not shown",
    "finished.stays-open [stays-open]: a provider that does not close after [DONE]: the stream ends",
    "finished.again [finish-again]: a finish_reason that comes twice is shown once",
  ]),
  ...complete('wire.md "Calls"', [
    "bytes.one-by-one [byte-by-byte]: single bytes, also within characters, make the same reply",
    "bytes.sevens [in-sevens]: pieces of seven bytes make the same reply",
    ...[
      ["crlf", "lines that end with CRLF"],
      ["cr", "lines that end with CR"],
      ["comments", "comments between events, and within"],
      ["no-space", "no space after `data:`"],
      ["fields", "the fields `event`, `id` and `retry`"],
      ["many-lines", "data of several lines"],
      ["byte-order-mark", "a byte order mark"],
      ["no-blank-line", "no blank line after the last event"],
      ["charset", "a media type in other letters, with a parameter"],
      ["early-hints", "an informational answer before the real one"],
      ["until-close", "a body that ends with its connection"],
    ].map(([name, what]) => `framing.${name} [${name}]: ${what}: only \`data: {json}\` is written`),
  ]),
  ...robust('wire.md "Calls"', {
    async "framing.long-line [long-line]: a line of a megabyte is read right"({ askBoth }) {
      for (const reply of await askBoth({ messages: question("long 600000") }))
        expectComplete(reply, "é".repeat(600_000));
    },
    async "backpressure [flood]: a client that does not read holds up the provider, until it leaves"({
      t,
      model,
      call,
    }) {
      const stream = await t.open({ model, stream: true });
      stream.pause();
      const { stalled, finished, left, sent } = await call();
      await within(Promise.race([stalled, finished]), "the provider to be held up", PATIENT_MS);
      expect(sent() < FLOOD_BYTES, `less than ${FLOOD_BYTES} bytes from the provider`, sent());
      stream.leave();
      await soon(left, GONE);
    },
  }),
  ...robust('api.md "Sizes"', {
    async "framing.endless-line [endless-line]: a line without end is an error, and the gateway lives"({
      t,
      ask,
      call,
    }) {
      expectBroken(await ask(STREAM), TEXT);
      await soon((await call()).left, "the connection to be closed on which the line came");
      await expectHealthy(t, "afterwards");
    },
  }),
  ...complete('wire.md "Chunks"', [
    "chunks.empty-choices [empty-choices]: chunks with `choices: []` are tolerated, not passed on",
    "chunks.empty-deltas [empty-deltas]: deltas with nothing in them are tolerated",
  ]),
  ...robust('wire.md "Chunks"', {
    async "chunks.role-once [role-again]: a role in every chunk is shown once"({ ask }) {
      const reply = await ask(STREAM);
      expectComplete(reply);
      const roles = choicesOf(reply).map((choice) => first(choice, "delta.role"));
      const shown = roles.filter((role) => role !== undefined);
      expectSame(shown, ["assistant"]);
    },
  }),
  ...robust('contract.md "Stream chunks"', {
    async "whole-is-stream.text: concatenated deltas are the whole message: text"({ askBoth }) {
      const [whole, streamed] = await askBoth();
      expect(isText(whole.content), "a text", whole.content);
      expectSame(streamed.content, whole.content);
    },
    async "whole-is-stream.thinking [reasoning]: concatenated deltas are the whole thinking"({
      askBoth,
    }) {
      for (const { thoughts } of await askBoth({ thinking: { type: "enabled" } }))
        expectSame(thoughts, THOUGHTS.join(""));
    },
  }),
  ...alike(
    'wire.md "Chunks"',
    [
      ["tools", "in pieces"],
      ["tools-whole", "in one delta"],
      ["tools-in-turn", "in turn"],
      ["tools-all-zero", "all with index 0"],
      ["tools-no-index", "without an index"],
      ["tools-repeated", "with id and name in every piece"],
      ["tools-far", "with indexes that leave some out"],
    ].map(
      ([name, how]) => `calls.${name} [${name}]: two tool calls that come ${how} are put together`,
    ),
    async ({ askBoth }) => {
      for (const reply of await askBoth({ ...TOOLS, tool_choice: "auto" })) {
        expect(reply.status === 200, "status 200", reply.shown);
        expectSame(callsOf(reply), CALLS);
      }
    },
  ),
];

function callsOf({ parts, streamed }: Exchange): unknown {
  if (!streamed) return list(first(parts[0], "choices[].message.tool_calls"));
  const calls: { id: unknown; type: unknown; function: { name: unknown; arguments: string } }[] =
    [];
  for (const each of parts.flatMap((part) => valuesAt(part, "choices[].delta.tool_calls[]"))) {
    const index = Number(first(each, "index"));
    calls[index] ??= {
      id: first(each, "id"),
      type: first(each, "type"),
      function: { name: first(each, "function.name"), arguments: "" },
    };
    calls[index].function.arguments += String(first(each, "function.arguments") ?? "");
  }
  return calls;
}

const SENT = {
  temperature: 0.5,
  top_p: 0.25,
  frequency_penalty: 0.5,
  presence_penalty: -0.5,
  stop: ["zebra"],
  seed: 7,
  max_tokens: 99,
  logprobs: true,
  top_logprobs: 2,
  response_format: { type: "json_object" },
  parallel_tool_calls: false,
  ...TOOLS,
  tool_choice: "auto",
  messages: question("JSON, please: 世界 🎉\u0000"),
};
const NULLABLE = [
  ...["stop", "tools", "stream_options", "tool_choice", "response_format", "logprobs"],
  ...["max_tokens", "temperature"],
];

const forwarded: Check[] = [
  ...robust('fields.md "The body"', {
    "fields.forwarded: every field that was accepted reaches the provider as it was": isSent(
      SENT,
      SENT,
    ),
  }),
  ...robust('wire.md "Request envelope"', {
    async "fields.nulls: fields that are null reach the provider no more than absent ones"(scene) {
      const nulls = Object.fromEntries(NULLABLE.map((name) => [name, null]));
      expectComplete(await scene.ask({ stream: false, ...nulls }));
      expectComplete(await scene.ask());
      expectSame(await bodyOf(scene, 0), await bodyOf(scene, 1));
    },
  }),
  ...robust('contract.md "Request fields"', {
    async "fields.large: a body of a megabyte reaches the provider whole"(scene) {
      const messages = question("Grüße 🎉 ".repeat(70_000));
      expectComplete(await scene.ask({ messages }));
      const got = JSON.stringify((await bodyOf(scene))["messages"]);
      expect(got === JSON.stringify(messages), "the same messages", `${got.length} characters`);
    },
  }),
  ...robust('contract.md "Order of checks"', {
    async "body.too-large: a body that is far too large is refused before the provider is asked"(
      scene,
    ) {
      const messages = question("x".repeat(11 * 1024 * 1024));
      expectRefusal(await scene.ask({ messages }), 413);
      expectCalls(scene, 0);
    },
  }),
  ...robust('wire.md "Thinking"', {
    async "thinking.switched [reasoning]: thinking is on at the provider if asked for, and else off"(
      scene,
    ) {
      await scene.ask({ thinking: { type: "enabled" } });
      await scene.ask();
      expectFields(await bodyOf(scene, 0), { "thinking.type": "enabled" });
      expectFields(await bodyOf(scene, 1), { "thinking.type": "disabled" });
    },
  }),
  ...robust('wire.md "Calls"', {
    async "key.sent: the provider is sent its own key, and not the client's"({ t, ask, call }) {
      expectComplete(await ask());
      const sent = JSON.stringify((await call()).headers);
      expect(CANARY.test(sent) && !sent.includes(t.options.key), "the provider's key alone", sent);
    },
    async "identity: identity is the encoding that is asked for"({ ask, call }) {
      expectComplete(await ask({}, { "accept-encoding": "gzip, deflate" }));
      expectSame((await call()).headers["accept-encoding"] ?? "identity", "identity");
    },
    async "length: Content-Length is that of the gateway's own reply"({ ask }) {
      const { headers, answer } = await ask();
      const length = Buffer.byteLength(answer.text ?? "");
      expectSame(Number(headers["content-length"] ?? length), length);
    },
  }),
];

/** Behaviours that say what a client must not see. */
const TALKATIVE =
  "status-401 status-500 overloaded-9 error-in-200 error-after-1 html redirect-302 error-object call-failed call-failed-in-stream error-with-usage-after-1 filtered good";

const edges: Check[] = [
  ...robust('contract.md "Limits"', {
    async "limit.exact: of 200 requests at once exactly as many as the limit are admitted"(scene) {
      const { t, ask } = scene;
      const key = { authorization: `Bearer ${BURST.key}` };
      const before = await ask({}, key);
      // Another run has just been here.
      if (before.status === 429 && t.options.pause) await t.options.pause(secondsOf(before));
      const replies = await askMany(scene, 200, "At once.", key);
      const room = before.status === 200 ? BURST.rpm - 1 : BURST.rpm;
      const refused = replies.filter(({ status }) => status === 429);
      const answers = replies.filter(({ status }) => status === 200).length;
      expectSame([answers, refused.length], [room, 200 - room]);
      for (const reply of refused) expectWait(reply);
    },
  }),
  ...robust('contract.md "Request ids"', {
    async "ids.shared: twenty requests with one X-Request-Id have replies and ids of their own"(
      scene,
    ) {
      const replies = await askMany(scene, 20, "Say something.");
      for (const reply of replies) expectComplete(reply);
      expectSame(new Set(replies.map(({ parts }) => first(parts[0], "id"))).size, 20);
      expectCalls(scene, 20);
    },
    async "pipelined: requests sent at once are answered in their order, each with its id"({
      t,
      model,
    }) {
      const body = JSON.stringify({ model, messages: question("Say something.") });
      const head = [
        `POST ${CHAT} HTTP/1.1`,
        "Host: gateway",
        `Authorization: Bearer ${t.options.key}`,
        "Content-Type: application/json",
        `Content-Length: ${Buffer.byteLength(body)}`,
      ];
      const requests = ["robust.one", "robust.two"].map((id) =>
        [...head, `X-Request-Id: ${id}`, "", body].join("\r\n"),
      );
      const answer = await t.client.raw(`${requests.join("")}this is no request\r\n\r\n`);
      const got = [...answer.matchAll(/HTTP\/1.1 (\d+)|x-request-id: *(\S+)/gi)]
        .map(([, status, id]) => status ?? id)
        .join(" ");
      // And an answer to what is no request, or the end.
      expectFields({ got }, { got: /^200 robust\.one 200 robust\.two( 400 \S+)?$/ });
    },
  }),
  ...robust('contract.md "Endpoints"', {
    async "healthz.busy [silent]: /healthz answers while every provider is silent"({
      t,
      ask,
      call,
    }) {
      const leaving = Array.from({ length: 20 }, () => new AbortController());
      for (const { signal } of leaving) ask({}, {}, signal).catch(() => undefined);
      await call(leaving.length - 1);
      await expectHealthy(t, "meanwhile");
      for (const each of leaving) each.abort();
    },
  }),
  ...robust('wire.md "Error body"', {
    [`secrets [${TALKATIVE}]: nothing of a provider shows: its key, its address, its words, its names`]:
      async ({ provider, models, askBoth }) => {
        const replies = await Promise.all(models.map((model) => askBoth({ model })));
        const address = provider.url.replace("http://", "");
        for (const { shown } of replies.flat())
          expect(!CANARY.test(shown) && !shown.includes(address), "nothing of the provider", shown);
      },
  }),
];

export const robustChecks: readonly Check[] = [
  ...leaving,
  ...usage,
  ...attempts,
  ...breaker,
  ...streams,
  ...forwarded,
  ...edges,
];
