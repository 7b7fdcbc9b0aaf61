// A provider with the OpenAI-compatible format. As many providers do, it sends its thoughts whether
// or not the request asks for them. The fragments of its parallel calls alternate.

import * as fake from "./fake-provider.ts";
import { chunk, completion, event, usageChunk, type Asked } from "./provider.ts";

function understand({ path, headers, body }: Asked): fake.Understood {
  fake.rule(path === "/chat/completions", "not found");
  fake.rule(headers.authorization === `Bearer ${fake.PROVIDER_KEY}`, "incorrect api key");
  const { model, messages, stream = false, thinking = { type: "disabled" }, tools = [] } = body;
  return {
    model,
    upstreamModel: model,
    messages,
    stream,
    thinking,
    showThinking: thinking.type === "enabled",
    tools: tools.map(({ function: { name } }: any) => ({ name })),
  };
}

const finish = ({ calls = [] }: fake.Said): string => (calls.length > 0 ? "tool_calls" : "stop");
const named = ({ id, name }: fake.Call) => ({ id, type: "function", function: { name } });

function whole(_: fake.Understood, said: fake.Said): object {
  const { reasoning = "", text = "", calls = [] } = said;
  const tool_calls = calls.map((call) => ({
    ...named(call),
    function: { name: call.name, arguments: call.arguments },
  }));
  return completion(
    {
      content: text || null,
      ...(reasoning && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls }),
    },
    finish(said),
  );
}

function stream(_: fake.Understood, said: fake.Said): string {
  const { reasoning = "", text = "", calls = [] } = said;
  const pieces = calls.map((call) => fake.letters(call.arguments));
  const rounds = Math.max(0, ...pieces.map((each) => each.length));
  const fragments = Array.from({ length: rounds }, (_, round) =>
    pieces.flatMap((each, index) =>
      each[round] === undefined ? [] : [{ index, function: { arguments: each[round] } }],
    ),
  ).flat();
  return [
    chunk({ role: "assistant", content: calls.length > 0 ? null : "" }),
    ...fake.words(reasoning).map((reasoning_content) => chunk({ reasoning_content })),
    ...fake.words(text).map((content) => chunk({ content })),
    ...calls.map((call, index) =>
      chunk({
        tool_calls: [{ index, ...named(call), function: { name: call.name, arguments: "" } }],
      }),
    ),
    ...fragments.map((fragment) => chunk({ tool_calls: [fragment] })),
    ...(said.ending === undefined ? [chunk({}, finish(said)), usageChunk(), "[DONE]"] : []),
  ]
    .map(event)
    .join("");
}

const refusal = (message: string) => ({ error: { message } });

const failure = event({ error: { message: fake.OWN_WORDS } });

export const startOpenai = fake.fakeOf({ understand, refusal, whole, stream, failure });
