// Level `robust`, continued: how a provider's figures are used, wherever it states them; what one
// request or reply may do to others, since its content must neither open a model's breaker nor keep
// the gateway from answering; that settings reach the provider with their meaning; and that names
// with a meaning in JavaScript work like any other.

import { parseRaw, type Exchange, type Opened } from "../client.ts";
import { positive } from "../forms.ts";
import { CROWDED } from "../provider.ts";
import { first, isCount } from "../shapes.ts";
import { chooseTool, question, type Tester } from "../tester.ts";
import { USAGE } from "../wire.ts";
import * as expect from "./setup.ts";
import { alike, PATIENT_MS, robust, SOON_MS, STREAM, WITH_USAGE, type RobustKit } from "./setup.ts";

const { completion_tokens_details: _, ...FIGURES } = USAGE;
const expectFigures = (reply: Exchange): void => {
  expect.complete(reply);
  expect.fields(reply.usage, FIGURES);
};
const PLACES = [
  ["good", "a chunk of its own"],
  ["usage-null", "a chunk of its own, null before and after it"],
  ["usage-with-finish", "the last chunk with a choice"],
  ["usage-in-choice", "a choice"],
  ["usage-everywhere", "every chunk, each time more"],
  ["usage-digits", "a chunk of its own, as strings of digits"],
];

robust('wire.md "Usage in streams"', {
  "usage.asked: a stream's usage is requested even if the client does not request it": expect.sent(
    STREAM,
    { "stream_options.include_usage": true },
  ),
  async "usage.hidden: usage that the client did not ask for is not shown"({ ask }) {
    const reply = await ask(STREAM);
    expect.complete(reply);
    expect.same(reply.usage, undefined);
  },
});
/** Figures whose last one is the sum of the others. */
const hasSum =
  (most: number) =>
  async ({ ask }: RobustKit) => {
    for (const reply of [await ask(), await ask(WITH_USAGE)]) {
      expect.complete(reply);
      const [prompt, completion, total] = ["prompt", "completion", "total"].map((name) =>
        first(reply.usage, `${name}_tokens`),
      );
      const isSum = isCount(prompt) && isCount(completion) && total === prompt + completion;
      expect.that(isSum && total <= most, `the sum, at most ${most}`, reply.usage);
    }
  };

robust('wire.md "Token counts"', {
  ...alike(
    PLACES.map(
      ([name, where]) => `usage.figures.${name} [${name}]: figures are read from ${where}`,
    ),
    async ({ ask }) => expectFigures(await ask(WITH_USAGE)),
  ),
  async "usage.reasoning [reasoning]: tokens of thinking are within completion_tokens"({ ask }) {
    for (const reply of [await ask(), await ask(WITH_USAGE)]) {
      expectFigures(reply);
      const tokens = first(reply.usage, "completion_tokens_details.reasoning_tokens");
      expect.that(tokens === undefined || tokens === 3, "3 reasoning_tokens", tokens);
    }
  },
  ...alike(
    [
      "usage.never [usage-never]: a provider that sends no usage: there are figures all the same",
      "usage.nonsense [usage-nonsense]: a provider that sends nonsense as usage: figures all the same",
      "usage.empty [usage-empty]: a provider that sends usage without figures: figures all the same",
    ],
    async ({ ask }) => {
      for (const reply of [await ask(), await ask(WITH_USAGE)]) {
        expect.complete(reply);
        expect.fields(reply.usage, { prompt_tokens: positive, completion_tokens: positive });
      }
    },
  ),
  "usage.sum [usage-sum]: total_tokens is the sum of its parts, whatever the provider states":
    hasSum(109),
});
robust('books.md "Usage figures"', {
  "usage.absurd [usage-absurd]: figures beyond a thousand million tokens are not passed on":
    hasSum(1_000),
});

/** More failures in a row than open a breaker in the suite's configuration. */
const IN_A_ROW = 10;

function expectFiltered({ status, error, content, finish, shown }: Exchange): void {
  const isEmpty = error === undefined && content === "" && finish === "content_filter";
  expect.that(status === 200 && isEmpty, "200 with an empty reply, content_filter", shown);
}

/** Sends requests that fail, whole and streamed in turn, and then one that must succeed. */
const isAvailable =
  (expectBad: (reply: Exchange) => void) =>
  async ({ ask }: RobustKit) => {
    for (let i = 0; i < IN_A_ROW; i += 1)
      expectBad(await ask({ messages: question("bad"), stream: i % 2 === 1 }));
    expect.complete(await ask());
  };

robust('wire.md "Finish reasons"', {
  async "filtered.reply [filtered good]: a reply that a filter emptied is no failure"(kit) {
    for (const reply of await kit.askBoth()) {
      expectFiltered(reply);
      expect.servedBy(reply, kit.model);
    }
    expect.calls(kit, 2);
    expect.calls(kit, 0, kit.second);
  },
});
robust('contract.md "Breaker"', {
  "client-fault.breaker [picky]: many bad requests do not shut out a good one": isAvailable(
    (reply) => expect.refusal(reply, 400),
  ),
  "filtered.available [picky-filter]: ten filtered replies in a row leave the model available":
    isAvailable(expectFiltered),
  "failed-calls.available [picky-calls]: ten failed tool calls leave the model available":
    isAvailable((reply) => expect.refusal(reply, 503)),
});

robust('api.md "Thinking"', {
  'effort.sent [reasoning]: `reasoning_effort: "high"` alone switches thinking on': expect.sent(
    { reasoning_effort: "high" },
    { "thinking.type": "enabled", reasoning_effort: "high" },
  ),
  async "effort.hidden [reasoning]: thinking for `reasoning_effort` alone is not shown"(kit) {
    for (const reply of await kit.askBoth({ reasoning_effort: "high" })) {
      expect.complete(reply);
      expect.same(reply.thoughts, "");
    }
  },
});
robust('contract.md "Request fields"', {
  "defaults.sampling: temperature and top_p are sent as 1 if the client sets neither": expect.sent(
    {},
    { temperature: 1, top_p: 1 },
  ),
});

const CROWDED_KEY = { authorization: `Bearer ${CROWDED.key}` };
const FULL = { type: "rate_limit_error", code: "concurrency_limit_exceeded" };

robust('contract.md "Limits"', {
  async "limit.in-flight [silent-after-1]: 429 until a client of the account has left"(kit) {
    const { ask, begun } = kit;
    const inHand: Opened[] = [];
    for (let i = 0; i < CROWDED.maxInFlight; i += 1) inHand.push(await begun(CROWDED_KEY));
    const refused = await ask({}, CROWDED_KEY).finally(() => {
      for (const stream of inHand) stream.leave();
    });
    expect.refusal(refused, 429);
    expect.fields(refused.error, FULL);
    expect.wait(refused);
    kit.provider.turn(kit.model, "good");
    await Promise.all(kit.calls().map(expect.left));
    let last = refused;
    for (const end = performance.now() + SOON_MS; performance.now() < end; ) {
      last = await ask({ messages: question("Again.") }, CROWDED_KEY);
      if (last.status !== 429) return expect.complete(last);
    }
    throw new expect.Expectation("a place that is free", last.shown);
  },
});

/** `work` must end within PATIENT_MS, and /healthz must answer quickly meanwhile. */
async function expectAlive<T>(t: Tester, work: Promise<T>): Promise<T> {
  let busy = true;
  const done = expect.within(work, "the answer to what costs much", PATIENT_MS).finally(() => {
    busy = false;
  });
  done.catch(() => undefined); // the error is thrown below, unless /healthz fails first
  do await expect.healthy(t, "meanwhile");
  while (busy);
  return done;
}

/** The gateway may answer or refuse, but must not fail. */
function expectNoFault(reply: Exchange): void {
  const { status, shown } = reply;
  const isFault = status !== 200 && !(status >= 400 && status < 500);
  expect.that(!isFault, "an answer, or a refusal as the client's fault", shown.slice(0, 1_000));
  if (status !== 200) expect.refusal(reply, status);
}

const BLANKS = " ".repeat(40_000);
/** About 9 MB, less than the usual limit of a body. */
const SCHEMA_KEYS = 650_000;
const functionOf = (name: string, properties: unknown) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties } },
});
const callOf = (id: string) => ({
  id,
  type: "function",
  function: { name: "get_time", arguments: "{}" },
});
/**
 * A turn of `count` calls with ids such as `a_7`, and as many turns that all use the id `a`:
 * whoever appends numbers to make that id unique meets all the ids that are taken.
 */
function reusedIds(count: number): object[] {
  const turnOf = (ids: readonly string[]) => [
    { role: "assistant", content: null, tool_calls: ids.map(callOf) },
    ...ids.map((id) => ({ role: "tool", tool_call_id: id, content: "1" })),
  ];
  const numbered = Array.from({ length: count }, (_, index) => `a_${count + index + 1}`);
  const same = Array.from({ length: count }, () => "a");
  return [...question("Hm."), ...turnOf(numbered), ...same.flatMap((id) => turnOf([id]))];
}
const manyNames = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, {}]));
const image = (url: string) => [
  { type: "text", text: "Look." },
  { type: "image_url", image_url: { url } },
];

/**
 * The gateway must answer with 200 or an error of the client, and /healthz must answer meanwhile.
 */
const costly =
  (fields: () => object) =>
  async ({ t, ask }: RobustKit): Promise<void> =>
    expectNoFault(await expectAlive(t, ask(fields())));

robust('wire.md "Responses without a handler"', {
  async "cost.blanks [alone]: a header of 40,000 blanks delays no other client"({ t }) {
    // Without a line end: a pattern that looks for one tries every way to split the blanks.
    const answer = await expectAlive(t, t.client.raw(`GARBAGE\r\nX-Request-Id:${BLANKS}\u0001`));
    const { status } = parseRaw(answer);
    const isRefusal = answer === "" || (status >= 400 && status < 500);
    expect.that(isRefusal, "a refusal as the client's fault, or the end of the connection", answer);
  },
});
robust('api.md "Sizes"', {
  "cost.call-ids [alone]: tool calls that repeat one id delay no other client": costly(() => ({
    messages: reusedIds(4_000),
    tools: [functionOf("get_time", {})],
  })),
  "cost.schema-keys [alone]: a schema of many properties delays no other client": costly(() => ({
    tools: [functionOf("get_time", manyNames(SCHEMA_KEYS))],
  })),
  async "cost.reply-keys [alone many-keys]: a reply of many members delays no other client"(kit) {
    const reply = await expectAlive(kit.t, kit.ask());
    if (reply.status === 200) expect.complete(reply);
    else expect.refusal(reply, 503);
  },
  "cost.image-url [alone]: a data URL of a megabyte delays no other client": costly(() => {
    const content = image(`data:x;${"a;".repeat(500_000)}base64,AAAA`);
    return { messages: [{ role: "user", content }] };
  }),
});
robust('limits.md "How they count"', {
  async "unread [alone]: thousands of unread answers do not stop chat requests"({ t, ask }) {
    const lines = ["GET /v1/models HTTP/1.1", "Host: gateway"];
    const request = [...lines, `Authorization: Bearer ${t.options.key}`, "\r\n"].join("\r\n");
    const unread = Array.from({ length: 16 }, () => t.client.unread(request.repeat(900)));
    try {
      await Promise.all(unread);
      for (let i = 0; i < 5; i += 1) expect.complete(await expectAlive(t, ask()));
    } finally {
      for (const each of unread) each.then((socket) => socket.destroy()).catch(() => undefined);
    }
  },
});

/** Names that every plain JavaScript object inherits. */
const INHERITED = ["__proto__", "constructor", "toString", "hasOwnProperty"];
/** As parsed from JSON: own members. */
const MEMBERS: unknown = JSON.parse(
  `{${INHERITED.map((name) => `"${name}":{"type":"string"}`).join(",")}}`,
);

const STRANGE = {
  tools: ["constructor", "toString"].map((name) => functionOf(name, MEMBERS)),
  tool_choice: chooseTool("toString"),
};

robust('wire.md "Request envelope"', {
  async "names.model: a model named as a member of every object is unknown: 404"({ ask }) {
    for (const model of INHERITED) {
      const reply = await ask({ model });
      expect.refusal(reply, 404);
      expect.same(first(reply.error, "code"), "model_not_found");
    }
  },
  "names.tools: tools and properties with such names reach the provider unchanged": expect.sent(
    STRANGE,
    STRANGE,
  ),
});
