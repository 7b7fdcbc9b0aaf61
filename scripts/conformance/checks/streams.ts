// Level `robust`, continued: unusual forms of a provider's stream, and what the provider gets of
// the client's request.

import { setTimeout as pause } from "node:timers/promises";
import type { Exchange } from "../client.ts";
import { CALLS, CANARY, FLOOD_BYTES, PIECES, TEXT, THOUGHTS } from "../wire.ts";
import type { Call } from "../provider.ts";
import { first, list } from "../shapes.ts";
import { question, TOOLS } from "../tester.ts";
import { choicesOf, valuesAt } from "./kit.ts";
import * as expect from "./setup.ts";
import { alike, PATIENT_MS, robust, soon, STREAM } from "./setup.ts";

const cuts = (...headings: readonly string[]) =>
  alike(headings, async ({ ask }) => {
    const reply = await soon(ask(STREAM), "the end of a stream that was cut");
    expect.broken(reply, PIECES.slice(0, 3).join(""));
  });
const complete = (...headings: readonly string[]) =>
  alike(headings, async ({ ask }) => expect.complete(await ask(STREAM)));
const FRAMINGS = [
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
];

/**
 * Resolves when the provider has sent everything, or has sent nothing for twenty looks in a row.
 */
async function heldUp({ sent }: Call): Promise<void> {
  // Looks are counted, not timed, because a busy gateway process reads nothing either.
  for (let looks = 0, last = sent(); looks < 20; looks += 1) {
    await pause(50);
    if (sent() !== last) looks = 0;
    last = sent();
  }
}

const WAYS = [
  ["tools", "in pieces"],
  ["tools-whole", "in one delta"],
  ["tools-in-turn", "in turn"],
  ["tools-all-zero", "all with index 0"],
  ["tools-no-index", "without an index"],
  ["tools-repeated", "with id and name in every piece"],
  ["tools-far", "with indexes that leave some out"],
];
interface ToolCall {
  readonly id: unknown;
  readonly type: unknown;
  readonly function: { readonly name: unknown; arguments: string };
}
function callsOf({ parts, streamed }: Exchange): unknown {
  if (!streamed) return list(first(parts[0], "choices[].message.tool_calls"));
  const calls: ToolCall[] = [];
  for (const each of parts.flatMap((part) => valuesAt(part, "choices[].delta.tool_calls[]"))) {
    const [id, type, name] = ["id", "type", "function.name"].map((path) => first(each, path));
    const index = Number(first(each, "index"));
    calls[index] ??= { id, type, function: { name, arguments: "" } };
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

robust('contract.md "Completeness"', {
  ...cuts(
    "cut.reset [cut-after-3]: a connection that breaks after some deltas: an error event, no [DONE]",
    "cut.end [ends-after-3]: a stream that ends without a finish_reason: an error event, no [DONE]",
    "cut.done [done-after-3]: [DONE] without a finish_reason: an error event, no [DONE]",
    "cut.error [error-after-3]: an error event after some deltas: an error event, no [DONE]",
  ),
  ...complete(
    "finished.no-done [no-done]: a finish_reason without [DONE] is a complete reply",
    "finished.after-done [after-done]: what a provider sends after [DONE] is not shown",
    "finished.stays-open [stays-open]: a provider that does not close after [DONE]: the stream ends",
    "finished.again [finish-again]: a repeated finish_reason is shown once",
  ),
});
robust('wire.md "Errors in streams"', {
  ...cuts(
    "cut.error-with-usage [error-with-usage-after-3]: an error with usage: an error event, no [DONE]",
  ),
});
robust('routing.md "Deadlines"', {
  ...cuts(
    "cut.silence [silent-after-3@impatient]: a stream that falls silent: an error event, no [DONE]",
  ),
  ...complete(
    "long-stream [trickle-90@impatient]: a long stream that is never silent is not cut by them",
  ),
  async "first-token [silent@impatient]: no first delta comes: 503 at its deadline"(kit) {
    for (const reply of await soon(kit.askBoth(), "the deadline for a first delta"))
      expect.refusal(reply, 503);
  },
});
robust('wire.md "Framing"', {
  async "passes-on [silent-after-1]: a delta is passed on at once, before more arrives"(kit) {
    (await soon(kit.begun(), "the first delta, before the provider sends another")).leave();
  },
});
robust('wire.md "Calls"', {
  ...complete(
    "bytes.one-by-one [alone byte-by-byte]: single bytes, also within characters, make the same reply",
    "bytes.sevens [in-sevens]: pieces of seven bytes make the same reply",
    ...FRAMINGS.map(
      ([name, what]) => `framing.${name} [${name}]: ${what}: only \`data: {json}\` is written`,
    ),
  ),
  async "framing.long-line [long-line]: a line of a megabyte is read right"({ askBoth }) {
    for (const reply of await askBoth({ messages: question("long 600000") }))
      expect.complete(reply, "é".repeat(600_000));
  },
  async "backpressure [flood]: a client that does not read holds up the provider"(kit) {
    const stream = await kit.t.open({ model: kit.model, stream: true });
    stream.pause();
    const call = await kit.call();
    await expect.within(heldUp(call), "the provider to be held up", PATIENT_MS);
    const sent = call.sent();
    expect.that(sent < FLOOD_BYTES, `less than ${FLOOD_BYTES} bytes from the provider`, sent);
    stream.leave();
    await expect.left(call);
  },
  async "key.sent: the provider gets its own key, and not the client's"({ t, ask, call }) {
    expect.complete(await ask());
    const sent = JSON.stringify((await call()).headers);
    const isOwn = CANARY.test(sent) && !sent.includes(t.options.key);
    expect.that(isOwn, "the provider's key alone", sent);
  },
  async "identity: the provider is asked for identity encoding"({ ask, call }) {
    expect.complete(await ask({}, { "accept-encoding": "gzip, deflate" }));
    expect.same((await call()).headers["accept-encoding"] ?? "identity", "identity");
  },
  async "length: Content-Length is that of the gateway's own reply"({ ask }) {
    const { headers, text } = await ask();
    const length = Buffer.byteLength(text ?? "");
    expect.same(Number(headers["content-length"] ?? length), length);
  },
});
robust('api.md "Sizes"', {
  async "framing.endless-line [endless-line]: a line without end is an error, no crash"(kit) {
    expect.broken(await kit.ask(STREAM), TEXT);
    await expect.left(await kit.call());
    await expect.healthy(kit.t, "afterwards");
  },
});
robust('wire.md "Chunks"', {
  ...complete(
    "chunks.empty-choices [empty-choices]: chunks with `choices: []` are tolerated, not passed on",
    "chunks.empty-deltas [empty-deltas]: deltas with nothing in them are tolerated",
  ),
  async "chunks.role-once [role-again]: a role in every chunk is shown once"({ ask }) {
    const reply = await ask(STREAM);
    expect.complete(reply);
    const roles = choicesOf(reply).map((choice) => first(choice, "delta.role"));
    const shown = roles.filter((role) => role !== undefined);
    expect.same(shown, ["assistant"]);
  },
  ...alike(
    WAYS.map(
      ([name, how]) => `calls.${name} [${name}]: two calls that come ${how} are put together`,
    ),
    async ({ askBoth }) => {
      for (const reply of await askBoth({ ...TOOLS, tool_choice: "auto" })) {
        expect.that(reply.status === 200, "status 200", reply.shown);
        expect.same(callsOf(reply), CALLS);
      }
    },
  ),
});
robust('contract.md "Stream chunks"', {
  async "whole-is-stream.thinking [reasoning]: deltas are the whole thinking"({ askBoth }) {
    for (const { thoughts } of await askBoth({ thinking: { type: "enabled" } }))
      expect.same(thoughts, THOUGHTS.join(""));
  },
});
robust('fields.md "The body"', {
  "fields.forwarded: every accepted field reaches the provider unchanged": expect.sent(SENT, SENT),
});
robust('wire.md "Request envelope"', {
  async "fields.nulls: fields that are null reach the provider no more than absent ones"(kit) {
    const nulls = Object.fromEntries(NULLABLE.map((name) => [name, null]));
    expect.complete(await kit.ask({ stream: false, ...nulls }));
    expect.complete(await kit.ask());
    expect.same(await kit.sent(0), await kit.sent(1));
  },
});
robust('contract.md "Request fields"', {
  async "fields.large: a body of a megabyte reaches the provider whole"({ ask, sent }) {
    const messages = question("Grüße 🎉 ".repeat(70_000));
    expect.complete(await ask({ messages }));
    const got = JSON.stringify((await sent())["messages"]);
    const isSame = got === JSON.stringify(messages);
    expect.that(isSame, "the same messages", `${got.length} characters`);
  },
});
robust('contract.md "Order of checks"', {
  async "body.too-large: a far too large body is rejected, and the provider not called"(kit) {
    const messages = question("x".repeat(11 * 1024 * 1024));
    expect.refusal(await kit.ask({ messages }), 413);
    expect.calls(kit, 0);
  },
});
robust('wire.md "Thinking"', {
  async "thinking.switched [reasoning]: thinking is on if requested, otherwise off"({ ask, sent }) {
    await ask({ thinking: { type: "enabled" } });
    await ask();
    expect.fields(await sent(0), { "thinking.type": "enabled" });
    expect.fields(await sent(1), { "thinking.type": "disabled" });
  },
});
