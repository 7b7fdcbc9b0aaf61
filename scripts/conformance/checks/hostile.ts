// Level `robust`, continued: what one client or one provider can cost all others. Work that one of
// them causes must not keep the gateway from answering, and names that mean something to JavaScript
// are names as any other.

import { parseRaw, within } from "../client.ts";
import { first } from "../shapes.ts";
import { expect, question, type Check, type Tester } from "../suite.ts";
import { expectComplete, expectRefusal, PATIENT_MS, robust, soon, type Reply } from "./robust.ts";

/**
 * What is done is finished within PATIENT_MS, and /healthz answers all the while, each time within
 * SOON_MS.
 */
async function expectAlive<T>(t: Tester, id: string, work: Promise<T>): Promise<T> {
  let busy = true;
  const done = within(work, "the answer to what costs much", PATIENT_MS).finally(() => {
    busy = false;
  });
  done.catch(() => undefined); // thrown below, unless /healthz fails before
  do {
    const request = {
      method: "GET",
      path: "/healthz",
      headers: { "x-request-id": `robust.${id}` },
    };
    const { status } = await soon(t.client.send(request), "/healthz meanwhile");
    expect(status === 200, "200 from /healthz meanwhile", status);
  } while (busy);
  return done;
}

/** Answered or refused, as the gateway likes: but it is not its own fault. */
function expectNoFault(reply: Reply): void {
  expect(
    reply.status === 200 || (reply.status >= 400 && reply.status < 500),
    "an answer, or a refusal as the client's fault",
    `${reply.status} ${reply.shown.slice(0, 1_000)}`,
  );
  if (reply.status !== 200) expectRefusal(reply, reply.status);
}

const BLANKS = " ".repeat(40_000);
/** About 9 MB, which is below the usual bound of a body. */
const SCHEMA_KEYS = 650_000;
const manyNames = (count: number, value: unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]));
const functionOf = (name: string, parameters: object) => ({
  type: "function",
  function: { name, parameters },
});
const callOf = (id: string) => ({
  id,
  type: "function",
  function: { name: "get_time", arguments: "{}" },
});
/**
 * Turns with so many calls, of which each id is used again, and one is what a number put behind it
 * makes of another.
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

interface Costly {
  readonly id: string;
  readonly source: string;
  readonly title: string;
  readonly fields: () => object;
}
const costly = ({ id, source, title, fields }: Costly): Check =>
  robust({
    id: `cost.${id}`,
    source,
    title: `${title} costs nobody else anything: a 200 or a refusal, and /healthz answers meanwhile`,
    behaviours: "good",
    when: "alone",
    run: async ({ t, ask }) => expectNoFault(await expectAlive(t, `cost.${id}`, ask(fields()))),
  });

const costs: Check[] = [
  robust({
    id: "cost.blanks",
    source: 'wire.md "Responses without a handler"',
    title:
      "forty thousand blanks in a header of a malformed request cost nothing: it is refused, and /healthz answers",
    behaviours: "good",
    when: "alone",
    run: async ({ t }) => {
      // Without a line end: a pattern that looks for one tries every way to split the blanks.
      const bytes = `GARBAGE\r\nX-Request-Id:${BLANKS}\u0001`;
      const answer = await expectAlive(t, "cost.blanks", t.client.raw(bytes));
      const { status } = parseRaw(answer);
      expect(
        answer === "" || (status >= 400 && status < 500),
        "a refusal as the client's fault, or the end of the connection",
        answer,
      );
    },
  }),
  costly({
    id: "call-ids",
    source: 'api.md "Sizes"',
    title: "a conversation whose tool calls use the same id again and again",
    fields: () => ({
      messages: reusedIds(4_000),
      tools: [functionOf("get_time", { type: "object", properties: {} })],
    }),
  }),
  costly({
    id: "schema-keys",
    source: 'api.md "Sizes"',
    title: "a tool whose schema has hundreds of thousands of properties",
    fields: () => ({
      tools: [functionOf("get_time", { type: "object", properties: manyNames(SCHEMA_KEYS, {}) })],
    }),
  }),
  robust({
    id: "cost.reply-keys",
    source: 'api.md "Sizes"',
    title:
      "a provider's reply with a million members is read or given up soon, and /healthz answers meanwhile",
    behaviours: "many-keys",
    when: "alone",
    run: async ({ t, ask }) => {
      const reply = await expectAlive(t, "cost.reply-keys", ask());
      if (reply.status === 200) expectComplete(reply);
      else expectRefusal(reply, 503);
    },
  }),
  costly({
    id: "image-url",
    source: 'api.md "Sizes"',
    title: "an image's data URL with a megabyte of parameters",
    fields: () => ({
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Look." },
            { type: "image_url", image_url: { url: `data:x;${"a;".repeat(500_000)}base64,AAAA` } },
          ],
        },
      ],
    }),
  }),
  robust({
    id: "unread",
    source: 'limits.md "How they count"',
    title: "answers that nobody reads, thousands of them, do not take the places of chat requests",
    behaviours: "good",
    when: "alone",
    run: async ({ t, ask }) => {
      const request = [
        "GET /v1/models HTTP/1.1",
        "Host: gateway",
        `Authorization: Bearer ${t.options.key}`,
        "\r\n",
      ].join("\r\n");
      const unread = Array.from({ length: 16 }, () => t.client.unread(request.repeat(900)));
      try {
        await Promise.all(unread);
        for (let i = 0; i < 5; i += 1) expectComplete(await expectAlive(t, "unread", ask()));
      } finally {
        for (const each of await Promise.allSettled(unread))
          if (each.status === "fulfilled") each.value.leave();
      }
    },
  }),
];

/** Names that every plain object of JavaScript has. */
const INHERITED = ["__proto__", "constructor", "toString", "hasOwnProperty"];
/** As JSON has them: own members. */
const INHERITED_MEMBERS: unknown = JSON.parse(
  `{${INHERITED.map((name) => `"${name}":{"type":"string"}`).join(",")}}`,
);

const names: Check[] = [
  robust({
    id: "names.model",
    source: 'wire.md "Request envelope"',
    title: "a model named as a member of every object is unknown: 404 model_not_found",
    behaviours: "good",
    run: async ({ ask }) => {
      for (const model of INHERITED) {
        const reply = await ask({ model });
        expectRefusal(reply, 404);
        const code = first(reply.error, "code");
        expect(code === "model_not_found", `model_not_found for ${model}`, code);
      }
    },
  }),
  robust({
    id: "names.tools",
    source: 'wire.md "Request envelope"',
    title: "tools and properties named as members of every object reach the provider as they are",
    behaviours: "good",
    run: async ({ ask, call }) => {
      const parameters = { type: "object", properties: INHERITED_MEMBERS };
      const tools = [functionOf("constructor", parameters), functionOf("toString", parameters)];
      const tool_choice = { type: "function", function: { name: "toString" } };
      expectComplete(await ask({ tools, tool_choice }));
      const { body } = await call();
      for (const [name, value] of Object.entries({ tools, tool_choice }))
        expect(
          JSON.stringify(body[name]) === JSON.stringify(value),
          `${name} ${JSON.stringify(value)}`,
          body[name],
        );
    },
  }),
];

export const hostileChecks: readonly Check[] = [...costs, ...names];
