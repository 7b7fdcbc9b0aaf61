// Recorded traffic of providers through the Responses API: what they said arrives, whole and
// streamed, with the vendor's order of events. The recordings are those of test/recordings.test.ts.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, KEY, startGateway } from "../../../support/gateway.ts";
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

/** The response that a client gets that asks for reasoning, and has the tools that are called. */
async function replay(t: TestContext, recording: Recording, reply: Reply): Promise<Json> {
  const { vendor, events, streamed } = recording;
  const behaviour = streamed ? rawStream(bytesOf(recording), 7) : status(200, events[0]);
  const { url } = await startProvider(t, behaviour);
  const config = configFor(url, [], {
    apis: ["responses"],
    providers: { recorded: { vendor, base_url: url, api_key: "sk-provider-secret" } },
    models: { m: { provider: "recorded", reasoning: true, upstream_model: "m" } },
  });
  const gateway = await startGateway(t, config);
  const names = [...new Set(reply.calls.map(({ name }) => name))];
  const answer = await fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "m",
      input: "Say what you said.",
      reasoning: { summary: "auto" },
      stream: streamed,
      tools: names.map((name) => ({ type: "function", name, parameters: { type: "object" } })),
    }),
  });
  assert.equal(answer.status, 200);
  if (!streamed) return json(answer);
  const given = readEvents(await answer.text());
  const { response } = given.at(-1)!;
  assert.deepEqual(response.output, assembleResponse(given));
  return response;
}

function assertSame(
  { status: outcome, output, incomplete_details, usage }: Json,
  reply: Reply,
): void {
  const of = (type: string): Json[] => output.filter((item: Json) => item["type"] === type);
  const texts = (field: string): string =>
    of("message")
      .flatMap(({ content }) => content)
      .map((part: Json) => part[field] ?? "")
      .join("");
  assert.equal(texts("text"), reply.text);
  assert.equal(texts("refusal"), reply.refusal);
  const summaries = of("reasoning").flatMap(({ summary }) => summary);
  assert.equal(summaries.map(({ text }: Json) => text).join(""), reply.thinking);
  const value = (args: unknown) => (typeof args === "string" ? JSON.parse(args || "{}") : args);
  assert.deepEqual(
    of("function_call").map((item) => [item["name"], value(item["arguments"])]),
    reply.calls.map(({ name, args }) => [name, value(args)]),
  );
  const reasons = { length: "max_output_tokens", content_filter: "content_filter" };
  const reason = reasons[reply.finish as keyof typeof reasons];
  assert.equal(outcome, reason ? "incomplete" : "completed");
  assert.equal(incomplete_details?.reason, reason);
  if (!reply.usage) return;
  assert.equal(usage.input_tokens, reply.usage["prompt_tokens"]);
  assert.equal(usage.input_tokens_details.cached_tokens, reply.usage["prompt_cache_hit_tokens"]);
  assert.equal(usage.output_tokens, reply.usage["completion_tokens"]);
}

describe("recordings through the Responses API", { skip: noRecordings }, () => {
  it("are there", () => assert.ok(recordings.length > 0));

  for (const { vendor, name, text } of recordings) {
    const streamed = name.endsWith(".chunks.txt");
    const lines = streamed ? text.split(/\r?\n/).filter((line) => line.trim() !== "") : [text];
    const events = lines.map((line): Json => JSON.parse(line));
    const reply = readReply(vendor, events);
    // Errors are tried elsewhere.
    if (reply.finish === undefined || reply.finish === "failed") continue;
    it(`${vendor}/${name}`, async (t) => {
      assertSame(await replay(t, { vendor, events, streamed }, reply), reply);
    });
  }
});
