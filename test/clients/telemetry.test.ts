// What the gateway sends to a collector, read by the protocol's own definitions: the Python package
// opentelemetry-proto, and protobuf's strict reader of JSON.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { it } from "node:test";
import { fileURLToPath } from "node:url";
import { demo, startGateway, user } from "../support/gateway.ts";
import { startProvider, status } from "../support/provider.ts";
import { waitFor } from "../support/wait.ts";
import { noModule, PYTHON } from "./lab.ts";

const SCRIPT = fileURLToPath(new URL("otlp_reader.py", import.meta.url));
it("spans for a collector are what the definitions of the protocol say, after requests of every kind", {
  skip: noModule("opentelemetry.proto.trace.v1"),
}, async (t) => {
  const collector = await startProvider(t, status(200));
  const telemetry = { otlp: { endpoint: collector.url } };
  const gateway = await startGateway(t, demo({ telemetry }));
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const headers = {
    authorization: "Bearer sk-demo",
    traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
  };
  for (const body of [{ model: "demo-chat" }, { model: "demo-chat", stream: true }, { model: "?" }])
    await (await gateway.chat({ ...body, messages: user("hi") }, headers)).text();
  await waitFor(() => gateway.access.length === 3, "the end of all requests");
  await gateway.gateway.close();

  assert.equal(collector.asked.length, 1);
  const options = { input: JSON.stringify(collector.asked[0]!.body), encoding: "utf8" } as const;
  const { status: code, stdout, stderr } = spawnSync(PYTHON, [SCRIPT], options);
  assert.equal(code, 0, stderr);
  const spans = JSON.parse(stdout) as readonly Record<string, any>[];
  const request = `POST /v1/chat/completions SPAN_KIND_SERVER ${traceId}`;
  const call = `chat demo-chat SPAN_KIND_CLIENT ${traceId}`;
  const told = spans.map(({ name, kind, traceId: id }) => `${name} ${kind} ${id}`);
  assert.deepEqual(told, [request, call, request, call, request]);
  const { attributes } = spans[1]!;
  assert.equal(attributes["gen_ai.usage.input_tokens"], "int_value");
  assert.equal(attributes["gen_ai.response.finish_reasons"], "array_value");
  assert.equal(attributes["gen_ai.request.model"], "string_value");
});
