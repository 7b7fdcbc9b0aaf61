// Recorded traffic of providers through the Messages and the Responses API: what they said arrives,
// whole and streamed. An Anthropic provider's events and replies arrive in the Messages API as they
// are, but for the name of the model. The recordings are those of test/recordings.test.ts.
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, KEY, startGateway } from "../../../support/gateway.ts";
import { eventsIn, messageIn } from "../../../support/messages-events.ts";
import { rawStream, startProvider, status } from "../../../support/provider.ts";
import { noRecordings, recordings } from "../../../support/recorded.ts";
import { readReply, type Reply } from "../../../support/recording.ts";
import { assembleResponse, readEvents } from "../../../support/response-events.ts";

type Json = Record<string, any>;

interface Recording {
  readonly vendor: string;
  readonly events: readonly Json[];
  readonly streamed: boolean;
}

function bytesOf({ vendor, events }: Recording): string {
  const named = (event: Json) => (vendor === "anthropic" ? `event: ${event["type"]}\n` : "");
  const framed = events.map((event) => `${named(event)}data: ${JSON.stringify(event)}\n\n`);
  const end = vendor === "anthropic" || vendor === "gemini" ? "" : "data: [DONE]\n\n";
  return framed.join("") + end;
}

/** What a client gets that asks in this API. */
async function replay(
  t: TestContext,
  api: "messages" | "responses",
  recording: Recording,
  request: object,
): Promise<Response> {
  const { vendor, events, streamed } = recording;
  const behaviour = streamed ? rawStream(bytesOf(recording), 7) : status(200, events[0]);
  const { url } = await startProvider(t, behaviour);
  const gateway = await startGateway(
    t,
    configFor(url, [], {
      apis: [api],
      providers: { recorded: { vendor, base_url: url, api_key: "sk-provider-secret" } },
      models: { m: { provider: "recorded", reasoning: true, upstream_model: "m" } },
    }),
  );
  const response = await fetch(`${gateway.url}/v1/${api}`, {
    method: "POST",
    headers: { "x-api-key": KEY, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", stream: streamed, ...request }),
  });
  assert.equal(response.status, 200);
  return response;
}

/** The texts of those parts that have this type. */
const textsOf = (parts: readonly Json[], type: string, member = "text"): string =>
  parts
    .filter((part) => part["type"] === type)
    .map((part) => part[member])
    .join("");

const value = (args: unknown) => (typeof args === "string" ? JSON.parse(args || "{}") : args);
const callsIn = ({ calls }: Reply) => calls.map(({ name, args }) => [name, value(args)]);
const toolNames = ({ calls }: Reply) => [...new Set(calls.map(({ name }) => name))];

/** An event under the gateway's own name of the model. */
function renamed(event: Json): Json {
  if (event["type"] === "message") return { ...event, model: "m" };
  if (event["type"] !== "message_start") return event;
  return { ...event, message: { ...event["message"], model: "m" } };
}

async function throughMessages(t: TestContext, recording: Recording, reply: Reply): Promise<void> {
  const { vendor, events, streamed } = recording;
  const tools = toolNames(reply).map((name) => ({ name, input_schema: { type: "object" } }));
  const response = await replay(t, "messages", recording, {
    max_tokens: 5_000,
    thinking: { type: "enabled", budget_tokens: 1_024 },
    messages: [{ role: "user", content: "Say what you said." }],
    ...(tools.length > 0 && { tools }),
  });
  const given = streamed ? eventsIn(await response.text()) : [await json(response)];
  if (vendor === "anthropic") {
    assert.deepEqual(given, events.map(renamed));
    return;
  }
  const { id, content, stop_reason, usage }: Json = streamed ? messageIn(given) : given[0];
  assert.match(id, /^msg_[0-9a-f]{24}$/);
  assert.equal(textsOf(content, "text"), reply.text + reply.refusal);
  assert.equal(textsOf(content, "thinking", "thinking"), reply.thinking);
  const calls = content.filter(({ type }: Json) => type === "tool_use");
  assert.deepEqual(
    calls.map(({ name, input }: Json) => [name, input]),
    callsIn(reply),
  );
  const reasons = { stop: "end_turn", length: "max_tokens", tool_calls: "tool_use" };
  const expected = { ...reasons, content_filter: "refusal" }[reply.finish as "stop"];
  assert.equal(stop_reason, expected);
  if (!reply.usage) return;
  assert.equal(usage.input_tokens, reply.usage["prompt_cache_miss_tokens"]);
  assert.equal(usage.cache_read_input_tokens, reply.usage["prompt_cache_hit_tokens"]);
  assert.equal(usage.output_tokens, reply.usage["completion_tokens"]);
}

async function throughResponses(t: TestContext, recording: Recording, reply: Reply): Promise<void> {
  const parameters = { type: "object" };
  const answer = await replay(t, "responses", recording, {
    input: "Say what you said.",
    reasoning: { summary: "auto" },
    tools: toolNames(reply).map((name) => ({ type: "function", name, parameters })),
  });
  const given = recording.streamed ? readEvents(await answer.text()) : [];
  const response: Json = recording.streamed ? given.at(-1)!["response"] : await json(answer);
  const { output, incomplete_details, usage } = response;
  if (recording.streamed) assert.deepEqual(output, assembleResponse(given));
  const of = (type: string): Json[] => output.filter((item: Json) => item["type"] === type);
  const said = of("message").flatMap(({ content }) => content);
  const summaries = of("reasoning").flatMap(({ summary }) => summary);
  assert.equal(textsOf(said, "output_text"), reply.text);
  assert.equal(textsOf(said, "refusal", "refusal"), reply.refusal);
  assert.equal(textsOf(summaries, "summary_text"), reply.thinking);
  assert.deepEqual(
    of("function_call").map((item) => [item["name"], value(item["arguments"])]),
    callsIn(reply),
  );
  const reasons = { length: "max_output_tokens", content_filter: "content_filter" };
  const reason = reasons[reply.finish as keyof typeof reasons];
  assert.equal(response["status"], reason ? "incomplete" : "completed");
  assert.equal(incomplete_details?.reason, reason);
  if (!reply.usage) return;
  assert.equal(usage.input_tokens, reply.usage["prompt_tokens"]);
  assert.equal(usage.input_tokens_details.cached_tokens, reply.usage["prompt_cache_hit_tokens"]);
  assert.equal(usage.output_tokens, reply.usage["completion_tokens"]);
}

describe("recordings", { skip: noRecordings }, () => {
  it("are there", () => assert.ok(recordings.length > 0));

  for (const { vendor, name, text } of recordings) {
    const streamed = name.endsWith(".chunks.txt");
    const lines = streamed ? text.split(/\r?\n/).filter((line) => line.trim() !== "") : [text];
    const events = lines.map((line): Json => JSON.parse(line));
    const reply = readReply(vendor, events);
    // Errors are tried elsewhere.
    if (reply.finish === undefined || reply.finish === "failed") continue;
    const recording = { vendor, events, streamed };
    it(`${vendor}/${name} through Messages`, (t) => throughMessages(t, recording, reply));
    it(`${vendor}/${name} through Responses`, (t) => throughResponses(t, recording, reply));
  }
});
