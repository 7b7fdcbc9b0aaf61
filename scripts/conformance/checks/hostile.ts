// Level `robust`, continued: what one client or one provider can cost all others. Work that one of
// them causes must not keep the gateway from answering, and names that mean something to JavaScript
// are names as any other.

import { parseRaw, within } from "../client.ts";
import type { Exchange } from "../exchange.ts";
import { expect, expectFields, expectSame, first } from "../shapes.ts";
import { chooseTool, question, type Check, type Tester } from "../suite.ts";
import { bodyOf } from "./robust.ts";
import {
  expectComplete,
  expectHealthy,
  expectRefusal,
  PATIENT_MS,
  robust,
  type Scene,
} from "./scene.ts";

/** What is done is finished within PATIENT_MS, and /healthz answers all the while, each time soon. */
async function expectAlive<T>(t: Tester, work: Promise<T>): Promise<T> {
  let busy = true;
  const done = within(work, "the answer to what costs much", PATIENT_MS).finally(() => {
    busy = false;
  });
  done.catch(() => undefined); // thrown below, unless /healthz fails before
  do await expectHealthy(t, "meanwhile");
  while (busy);
  return done;
}

/** Answered or refused, as the gateway likes: but it is not its own fault. */
function expectNoFault(reply: Exchange): void {
  const { status, shown } = reply;
  const isFault = status !== 200 && !(status >= 400 && status < 500);
  expect(!isFault, "an answer, or a refusal as the client's fault", shown.slice(0, 1_000));
  if (status !== 200) expectRefusal(reply, status);
}

const BLANKS = " ".repeat(40_000);
/** About 9 MB, which is below the usual bound of a body. */
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
const manyNames = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, {}]));
const image = (url: string) => [
  { type: "text", text: "Look." },
  { type: "image_url", image_url: { url } },
];

/** A 200 or a refusal, and /healthz answers meanwhile. */
const costly =
  (fields: () => object) =>
  async ({ t, ask }: Scene): Promise<void> =>
    expectNoFault(await expectAlive(t, ask(fields())));

const costs: Check[] = [
  ...robust('wire.md "Responses without a handler"', {
    async "cost.blanks [alone]: a header of forty thousand blanks costs nobody else anything"({
      t,
    }) {
      // Without a line end: a pattern that looks for one tries every way to split the blanks.
      const answer = await expectAlive(t, t.client.raw(`GARBAGE\r\nX-Request-Id:${BLANKS}\u0001`));
      const { status } = parseRaw(answer);
      const isRefusal = answer === "" || (status >= 400 && status < 500);
      expect(isRefusal, "a refusal as the client's fault, or the end of the connection", answer);
    },
  }),
  ...robust('api.md "Sizes"', {
    "cost.call-ids [alone]: tool calls that use one id again and again cost nobody else anything":
      costly(() => ({ messages: reusedIds(4_000), tools: [functionOf("get_time", {})] })),
    "cost.schema-keys [alone]: a schema of very many properties costs nobody else anything": costly(
      () => ({ tools: [functionOf("get_time", manyNames(SCHEMA_KEYS))] }),
    ),
    async "cost.reply-keys [alone many-keys]: a reply with a million members costs nobody else much"({
      t,
      ask,
    }) {
      const reply = await expectAlive(t, ask());
      if (reply.status === 200) expectComplete(reply);
      else expectRefusal(reply, 503);
    },
    "cost.image-url [alone]: a data URL with a megabyte of parameters costs nobody else anything":
      costly(() => {
        const content = image(`data:x;${"a;".repeat(500_000)}base64,AAAA`);
        return { messages: [{ role: "user", content }] };
      }),
  }),
  ...robust('limits.md "How they count"', {
    async "unread [alone]: thousands of answers that nobody reads do not stop chat requests"({
      t,
      ask,
    }) {
      const lines = ["GET /v1/models HTTP/1.1", "Host: gateway"];
      const request = [...lines, `Authorization: Bearer ${t.options.key}`, "\r\n"].join("\r\n");
      const unread = Array.from({ length: 16 }, () => t.client.unread(request.repeat(900)));
      try {
        await Promise.all(unread);
        for (let i = 0; i < 5; i += 1) expectComplete(await expectAlive(t, ask()));
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
const MEMBERS: unknown = JSON.parse(
  `{${INHERITED.map((name) => `"${name}":{"type":"string"}`).join(",")}}`,
);

const names = robust('wire.md "Request envelope"', {
  async "names.model: a model named as a member of every object is unknown: 404"({ ask }) {
    for (const model of INHERITED) {
      const reply = await ask({ model });
      expectRefusal(reply, 404);
      expectSame(first(reply.error, "code"), "model_not_found");
    }
  },
  async "names.tools: tools and properties with such names reach the provider as they are"(scene) {
    const tools = ["constructor", "toString"].map((name) => functionOf(name, MEMBERS));
    const sent = { tools, tool_choice: chooseTool("toString") };
    expectComplete(await scene.ask(sent));
    expectFields(await bodyOf(scene), sent);
  },
});

export const hostileChecks: readonly Check[] = [...costs, ...names];
