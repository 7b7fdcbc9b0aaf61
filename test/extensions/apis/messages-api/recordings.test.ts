// Recorded traffic of providers through the Messages API. An Anthropic provider's events and
// replies arrive as they are, but for the name of the model. Those of other providers say the same
// in this format. The recordings are those of test/recordings.test.ts.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, KEY, startGateway } from "../../../support/gateway.ts";
import { eventsIn, messageIn } from "../../../support/messages-events.ts";
import { rawStream, startProvider, status } from "../../../support/provider.ts";
import { noRecordings, recordings } from "../../../support/recorded.ts";
import { readReply, type Reply } from "../../../support/recording.ts";

type Json = Record<string, any>;

interface Recording {
  readonly vendor: string;
  readonly name: string;
  readonly events: readonly Json[];
  readonly streamed: boolean;
}

const STREAM_ENDS: Readonly<Record<string, string>> = { anthropic: "", gemini: "" };

function bytesOf({ vendor, events }: Recording): string {
  const named = (event: Json) => (vendor === "anthropic" ? `event: ${event["type"]}\n` : "");
  const framed = events.map((event) => `${named(event)}data: ${JSON.stringify(event)}\n\n`);
  return framed.join("") + (STREAM_ENDS[vendor] ?? "data: [DONE]\n\n");
}

/** What a client gets that asks for thoughts, and has the tools that are called. */
async function replay(t: TestContext, recording: Recording, reply: Reply): Promise<Response> {
  const { vendor, events, streamed } = recording;
  const behaviour = streamed ? rawStream(bytesOf(recording), 7) : status(200, events[0]);
  const { url } = await startProvider(t, behaviour);
  const { url: gateway } = await startGateway(
    t,
    configFor(url, [], {
      apis: ["messages"],
      providers: { recorded: { vendor, base_url: url, api_key: "sk-provider-secret" } },
      models: { m: { provider: "recorded", reasoning: true, upstream_model: "m" } },
    }),
  );
  const tools = [...new Set(reply.calls.map(({ name }) => name))].map((name) => ({
    name,
    input_schema: { type: "object" },
  }));
  return await fetch(`${gateway}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": KEY, "content-type": "application/json" },
    body: JSON.stringify({
      model: "m",
      max_tokens: 5_000,
      thinking: { type: "enabled", budget_tokens: 1_024 },
      messages: [{ role: "user", content: "Say what you said." }],
      stream: streamed,
      ...(tools.length > 0 && { tools }),
    }),
  });
}

/** An event under the gateway's own name of the model. */
function renamed(event: Json): Json {
  if (event["type"] === "message") return { ...event, model: "m" };
  if (event["type"] !== "message_start") return event;
  return { ...event, message: { ...event["message"], model: "m" } };
}

function assertSame(message: Json, reply: Reply): void {
  const texts = (type: string, member: string): string =>
    message["content"]
      .filter((block: Json) => block["type"] === type)
      .map((block: Json) => block[member])
      .join("");
  assert.equal(texts("text", "text"), reply.text + reply.refusal);
  assert.equal(texts("thinking", "thinking"), reply.thinking);
  const calls = message["content"].filter((block: Json) => block["type"] === "tool_use");
  assert.deepEqual(
    calls.map(({ name, input }: Json) => [name, input]),
    reply.calls.map(({ name, args }) => [
      name,
      typeof args === "string" ? JSON.parse(args || "{}") : args,
    ]),
  );
  const reasons = { stop: "end_turn", length: "max_tokens", tool_calls: "tool_use" };
  const expected = { ...reasons, content_filter: "refusal" }[reply.finish as "stop"];
  assert.equal(message["stop_reason"], expected);
  const { usage } = reply;
  if (!usage) return;
  assert.equal(message["usage"].input_tokens, usage["prompt_cache_miss_tokens"]);
  assert.equal(message["usage"].cache_read_input_tokens, usage["prompt_cache_hit_tokens"]);
  assert.equal(message["usage"].output_tokens, usage["completion_tokens"]);
}

describe("recordings through the Messages API", { skip: noRecordings }, () => {
  it("are there", () => assert.ok(recordings.length > 0));

  for (const { vendor, name, text } of recordings) {
    const streamed = name.endsWith(".chunks.txt");
    const lines = streamed ? text.split(/\r?\n/).filter((line) => line.trim() !== "") : [text];
    const events = lines.map((line): Json => JSON.parse(line));
    const reply = readReply(vendor, events);
    // Errors are tried elsewhere.
    if (reply.finish === undefined || reply.finish === "failed") continue;
    it(`${vendor}/${name}`, async (t) => {
      const response = await replay(t, { vendor, name, events, streamed }, reply);
      assert.equal(response.status, 200);
      const given = streamed ? eventsIn(await response.text()) : [await json(response)];
      const id = streamed ? given[0]!["message"].id : given[0]!["id"];
      if (vendor === "anthropic") assert.deepEqual(given, events.map(renamed));
      else {
        assert.match(id, /^msg_[0-9a-f]{24}$/);
        assertSame(streamed ? messageIn(given) : given[0]!, reply);
      }
    });
  }
});
