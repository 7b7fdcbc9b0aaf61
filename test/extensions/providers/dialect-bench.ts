// Tests a dialect without a gateway: what it sends to its provider, and the result of a reply,
// whole and streamed.

import assert from "node:assert/strict";
import { keyHeaders } from "../../../src/core/routing/model.ts";
import { traitsOf } from "../../../src/config/vendors.ts";
import { Meter } from "../../../src/core/ledger/meter.ts";
import { chatRequest } from "../../../src/core/openai/request.ts";
import type { Part } from "../../../src/core/openai/parts.ts";
import { wholeReply } from "../../../src/core/providers/decoding.ts";
import type { Dialect, Target } from "../../../src/core/providers/dialect.ts";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { PROVIDER_KEY } from "../../support/fake-provider.ts";
import { user } from "../../support/gateway.ts";
import type { Asked } from "../../support/provider.ts";
import { thrownBy } from "../../support/wait.ts";

/** A call in an assistant message. */
export const callOf = (id: string, name = "f", args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
export const resultOf = (tool_call_id: string, content: unknown = "1") => ({
  role: "tool",
  tool_call_id,
  content,
});
/** An assistant message with these calls. */
export const calling = (...tool_calls: readonly object[]): Record<string, any> => ({
  role: "assistant",
  content: null,
  tool_calls,
});
/** An assistant message with calls that have these ids, and their results. */
export const calledOf = (...ids: readonly string[]): Record<string, any>[] => [
  calling(...ids.map((id) => callOf(id))),
  ...ids.map((id) => resultOf(id)),
];

/** A model with these settings, at a provider with this row. */
export function targetOf(
  provider: object,
  model: { readonly upstream_model?: string; readonly reasoning?: boolean } = {},
): Target {
  const { upstream_model: upstreamModel = "m", reasoning = false, ...traits } = model;
  return { upstreamModel, reasoning, traits: traitsOf(provider, { reasoning, ...traits }) };
}

/** The provider's request for these fields of the client's. */
export function askedBy(dialect: Dialect, fields: object, target: Target): Asked {
  const { tool_choice = "none", ...chat } = chatRequest({
    model: "x",
    messages: user("hi"),
    ...fields,
  });
  const { path, headers, body } = dialect.request({ ...chat, tool_choice }, target);
  const all = Object.entries({
    ...target.traits.headers,
    ...headers,
    ...keyHeaders(target.traits.auth, PROVIDER_KEY),
  });
  const sent: unknown = JSON.parse(JSON.stringify(body));
  const lower = Object.fromEntries(all.map(([name, value]) => [name.toLowerCase(), value]));
  return { path, headers: lower, body: sent } as Asked;
}

const CHAT = chatRequest({ model: "x", messages: user("hi") });

/** The result of the parts of a reply. Ids that the gateway made up are "generated". */
export function replyOf(parts: readonly Part[]) {
  const meter = new Meter(CHAT, () => 0);
  for (const part of parts) meter.observe(part);
  const joined = (type: "text" | "reasoning" | "refusal") =>
    parts.map((part) => (part.type === type ? part.text : "")).join("");
  const argumentsOf = (call: number) =>
    parts.map((part) => (part.type === "tool_arguments" && part.call === call ? part.text : ""));
  const calls = parts.flatMap((part) => {
    if (part.type !== "tool_call") return [];
    const id = /^call_[0-9a-f]{24}$/.test(part.id) ? "generated" : part.id;
    return [[id, part.name, argumentsOf(part.call).join("") || "{}"]];
  });
  const { usage } = meter.usage();
  const finish = meter.finishReason();
  const refusal = joined("refusal");
  return {
    text: joined("text"),
    reasoning: joined("reasoning"),
    ...(refusal && { refusal }),
    calls,
    finish,
    usage,
  };
}

/** The result of a provider's reply, which must be the same whole and as these events. */
export function replyTo(
  createDialect: () => Dialect,
  whole: object,
  events: readonly object[],
  target: Target,
) {
  const reply = replyOf(wholeReply(createDialect(), whole, target));
  const { push } = createDialect().decoder(target);
  assert.deepEqual(replyOf(events.flatMap((event) => push(event))), reply);
  return reply;
}

/** The ProviderError that `work` must throw. */
export const errorOf = (work: () => unknown): ProviderError => thrownBy(ProviderError, work);
