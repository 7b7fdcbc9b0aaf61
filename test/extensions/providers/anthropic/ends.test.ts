// Where an Anthropic stream ends, and that it is one reply: what follows its end counts for nothing, and
// another reply inside it is a fault, which does not splice their calls (cases.test.ts).

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { assemble, configFor, readStream, startGateway, user } from "../../../support/gateway.ts";
import { endless, startProvider } from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";
import { errorOf, targetOf } from "../dialect-bench.ts";
import { ended, message, start, STOP, streamOf, textBlock } from "./events.ts";

const decoderOf = (native?: { dialect: string; body: object; headers: object }) =>
  createAnthropicDialect(createSignatureStore()).decoder(
    targetOf({ dialect: "anthropic" }, { reasoning: true }),
    native as never,
  );

describe("the end of a stream", () => {
  const begin = (id: unknown) => ({ ...start(), message: { ...start().message, id } });
  const rest = [...streamOf([textBlock("Hello.")]), ended(), STOP];

  it("is message_stop, although the connection stays", () => {
    const { push, ended: isOver } = decoderOf();
    const over = [begin("1"), ended(), { type: "ping" }, STOP].map((each) => {
      push(each);
      return isOver?.();
    });
    assert.deepEqual(over, [false, false, false, true]);
  });

  it("closes the connection of a provider that goes on without end, and the reply is whole", async (t) => {
    const framed = [begin("1"), ...rest].map((each) => `data: ${JSON.stringify(each)}\n\n`);
    const { url, nth } = await startProvider(t, endless("text/event-stream", framed.join("")));
    const providers = { lab: { dialect: "anthropic", thinking: "adaptive" } };
    const { chat } = await startGateway(t, configFor(url, ["m"], { providers }));
    const answer = await chat({ model: "m", messages: user("hi"), stream: true });
    const { chunks, done } = await readStream(answer);
    assert.deepEqual([assemble(chunks).message["content"], done], ["Hello.", true]);
    const { closed } = await nth(0);
    await waitFor(closed, "the provider's connection to close");
  });

  for (const second of ["msg_2", undefined, null, { toString: 1 }])
    it(`is an error where another reply begins, with the id ${JSON.stringify(second)}`, () => {
      const { push, ended: isOver } = decoderOf();
      push(begin("msg_1"));
      const { code, usage } = errorOf(() => push(begin(second)));
      assert.deepEqual([code, usage, isOver?.()], ["upstream_error", undefined, true]);
    });

  for (const [name, events] of [
    ["with the same id", [begin("msg_1"), begin("msg_1"), ...rest]],
    ["where neither has an id", [begin(undefined), begin(undefined), ...rest]],
  ] as const)
    it(`is not a second beginning ${name}`, () => {
      const { push } = decoderOf();
      const texts = events.flatMap(push).map((part) => (part.type === "text" ? part.text : ""));
      assert.equal(texts.join(""), "Hello.");
    });

  it("as a whole message after its events passes to a client of this format as their end alone", () => {
    const native = { dialect: "anthropic", body: {}, headers: {} };
    const { push } = decoderOf(native);
    const repeated = message([textBlock("Hi.")], "end_turn");
    for (const each of [start(), ...streamOf([textBlock("Hi.")])]) push(each);
    assert.deepEqual(
      push(repeated).filter(({ type }) => type !== "usage"),
      [
        { type: "native", event: ended("end_turn", repeated.usage), content: false },
        { type: "finish", reason: "stop" },
      ],
    );
  });
});
