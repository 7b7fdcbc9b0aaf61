// Recorded traffic of providers through the Messages and the Responses API: what they said arrives,
// whole and streamed. An Anthropic provider's events and replies arrive in the Messages API as they
// are, but for the name of the model. The recordings are those of test/recordings.test.ts.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { configFor, json, startGateway } from "../../../support/gateway.ts";
import { eventsIn, messageIn } from "../../../support/messages-events.ts";
import { rawStream, silent, startProvider, status } from "../../../support/provider.ts";
import { noRecordings, recordings } from "../../../support/recorded.ts";
import { readReply, type Reply } from "../../../support/recording.ts";
import { assembleResponse, readEvents } from "../../../support/response-events.ts";
import { suiteScope } from "../../../support/scope.ts";
import { post } from "../post.ts";

type Json = Record<string, any>;

interface Recording {
  readonly vendor: string;
  readonly events: readonly Json[];
  readonly streamed: boolean;
  readonly reply: Reply;
}

function bytesOf({ vendor, events }: Recording): string {
  const named = (event: Json) => (vendor === "anthropic" ? `event: ${event["type"]}\n` : "");
  const framed = events.map((event) => `${named(event)}data: ${JSON.stringify(event)}\n\n`);
  const end = vendor === "anthropic" || vendor === "gemini" ? "" : "data: [DONE]\n\n";
  return framed.join("") + end;
}

/** The texts of those parts that have this type. */
const textsOf = (parts: readonly Json[], type: string, member = "text"): string =>
  parts
    .filter((part) => part["type"] === type)
    .map((part) => part[member])
    .join("");
const ofType = (parts: readonly Json[], type: string): Json[] =>
  parts.filter((part) => part["type"] === type);

const value = (args: unknown) => (typeof args === "string" ? JSON.parse(args || "{}") : args);
const toolNames = ({ calls }: Reply) => [...new Set(calls.map(({ name }) => name))];

/** An event under the gateway's own name of the model. */
function renamed(event: Json): Json {
  if (event["type"] === "message") return { ...event, model: "anthropic" };
  if (event["type"] !== "message_start") return event;
  return { ...event, message: { ...event["message"], model: "anthropic" } };
}

/** The figures of the usage by their names in chat completions. Undefined: none was recorded. */
const figures = ({ usage }: Reply, ...names: string[]) => usage && names.map((name) => usage[name]);

type Ask = (recording: Recording, path: string, request: object) => Promise<Response>;

async function throughMessages(ask: Ask, recording: Recording): Promise<void> {
  const { vendor, events, streamed, reply } = recording;
  const tools = toolNames(reply).map((name) => ({ name, input_schema: { type: "object" } }));
  const response = await ask(recording, "/v1/messages", {
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
  assert.deepEqual(
    ofType(content, "tool_use").map(({ name, input }) => [name, input]),
    reply.calls.map(({ name, args }) => [name, value(args)]),
  );
  const reasons = { stop: "end_turn", length: "max_tokens", tool_calls: "tool_use" };
  const expected = { ...reasons, content_filter: "refusal" }[reply.finish as "stop"];
  assert.equal(stop_reason, expected);
  const names = ["prompt_cache_miss_tokens", "prompt_cache_hit_tokens", "completion_tokens"];
  const found = [usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens];
  assert.deepEqual(found, figures(reply, ...names) ?? found);
}

async function throughResponses(ask: Ask, recording: Recording): Promise<void> {
  const { streamed, reply } = recording;
  const parameters = { type: "object" };
  const answer = await ask(recording, "/v1/responses", {
    input: "Say what you said.",
    reasoning: { summary: "auto" },
    tools: toolNames(reply).map((name) => ({ type: "function", name, parameters })),
  });
  const given = streamed ? readEvents(await answer.text()) : [];
  const response: Json = streamed ? given.at(-1)!["response"] : await json(answer);
  const { output, incomplete_details, usage } = response;
  if (streamed) assert.deepEqual(output, assembleResponse(given));
  const said = ofType(output, "message").flatMap(({ content }) => content);
  const summaries = ofType(output, "reasoning").flatMap(({ summary }) => summary);
  assert.equal(textsOf(said, "output_text"), reply.text);
  assert.equal(textsOf(said, "refusal", "refusal"), reply.refusal);
  assert.equal(textsOf(summaries, "summary_text"), reply.thinking);
  assert.deepEqual(
    ofType(output, "function_call").map((item) => [item["name"], value(item["arguments"])]),
    reply.calls.map(({ name, args }) => [name, value(args)]),
  );
  const reasons = { length: "max_output_tokens", content_filter: "content_filter" };
  const reason = reasons[reply.finish as keyof typeof reasons];
  assert.equal(response["status"], reason ? "incomplete" : "completed");
  assert.equal(incomplete_details?.reason, reason);
  const names = ["prompt_tokens", "prompt_cache_hit_tokens", "completion_tokens"];
  const cached = usage.input_tokens_details.cached_tokens;
  const found = [usage.input_tokens, cached, usage.output_tokens];
  assert.deepEqual(found, figures(reply, ...names) ?? found);
}

describe("recordings", { skip: noRecordings }, () => {
  const scope = suiteScope();
  let url: string;
  let behaviour = silent;
  before(async () => {
    const provider = await startProvider(scope, (asked) => behaviour(asked));
    const vendors = [...new Set(recordings.map(({ vendor }) => vendor))];
    const each = (settings: (vendor: string) => object) =>
      Object.fromEntries(vendors.map((vendor) => [vendor, settings(vendor)]));
    const config = configFor(provider.url, [], {
      apis: ["messages", "responses"],
      providers: each((vendor) => ({ vendor, base_url: provider.url, api_key: "k" })),
      models: each((provider) => ({ provider, reasoning: true, upstream_model: "m" })),
    });
    ({ url } = await startGateway(scope, config));
  });
  const ask: Ask = async (recording, path, request) => {
    const { vendor, events, streamed } = recording;
    behaviour = streamed ? rawStream(bytesOf(recording), 1_000) : status(200, events[0]);
    const response = await post(url + path, { model: vendor, stream: streamed, ...request });
    assert.equal(response.status, 200);
    return response;
  };

  it("are there", () => assert.ok(recordings.length > 0));

  for (const { vendor, name, text } of recordings) {
    const streamed = name.endsWith(".chunks.txt");
    const lines = streamed ? text.split(/\r?\n/).filter((line) => line.trim() !== "") : [text];
    const events = lines.map((line): Json => JSON.parse(line));
    const reply = readReply(vendor, events);
    // Errors are tried elsewhere.
    if (reply.finish === undefined || reply.finish === "failed") continue;
    const recording = { vendor, events, streamed, reply };
    it(`${vendor}/${name} through Messages`, () => throughMessages(ask, recording));
    it(`${vendor}/${name} through Responses`, () => throughResponses(ask, recording));
  }
});
