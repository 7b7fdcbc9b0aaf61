// Hostile text for patterns: every function that matches untrusted text gets 60,000 characters of
// many kinds, and must take no longer than a linear pattern does.

import assert from "node:assert/strict";
import { it } from "node:test";
import { createKeyring, NO_CREATED_KEYS } from "../../../src/core/accounts/keyring.ts";
import { checkConfig } from "../../support/config.ts";
import { createGuard, networkOf } from "../../../src/extensions/operations/admin/access.ts";
import { refusal, throwErrorIn } from "../../../src/extensions/providers/provider-words/index.ts";
import { createEventReader } from "../../../src/core/http/event-reader.ts";
import type { Exchange } from "../../../src/core/http/exchange.ts";
import { requestIdFromBytes } from "../../../src/core/http/request-id.ts";
import { match, pathOf, route } from "../../../src/core/http/router.ts";
import { pathText } from "../../../src/core/schema/checker.ts";
import { chatRequest } from "../../../src/core/openai/request.ts";
import { requirementsOf } from "../../../src/extensions/routing/capabilities/requirements.ts";
import { demo } from "../../support/gateway.ts";

/** Less than the 65,536 bytes that requestIdFromBytes searches for an id. */
const LARGE = 60_000;
/**
 * The bound for a pattern on `LARGE` characters, in ms of this process's CPU time, because other
 * processes may load the machine. Quadratic patterns take seconds, cubic ones days.
 */
const BOUND_MS = 250;

/** The repeated characters, and an end that prevents a match. */
const STUFFING = [..." \ta0:/.,;?#=\n+", "1:", "\r\n"];
const ENDS = ["", "\x01", "x", "!", " ", "\r\n", "%"];

const config = checkConfig(demo(), {});
const keyring = createKeyring(config, NO_CREATED_KEYS, Date.now);
const guard = createGuard({ host: "0.0.0.0", password: "secret" }, () => undefined);
const fails = (work: () => unknown): void => {
  try {
    work();
  } catch {
    // Most of these inputs are rejected.
  }
};
const asked = (headers: Record<string, string>) =>
  guard({
    req: { headers, method: "GET", url: "/", socket: { remoteAddress: "127.0.0.1" } },
  } as unknown as Exchange);
const routes = { "/v1/models/{id}": { GET: () => undefined } };
const chat = (over: object) => ({
  model: "m",
  messages: [{ role: "user", content: "hi" }],
  ...over,
});
const withImage = (url: string) =>
  chatRequest(
    chat({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] }),
  );

/** The functions that read untrusted text, by name. */
const READERS: { readonly [name: string]: (text: string) => unknown } = {
  "the id of a request that cannot be parsed": (text) =>
    requestIdFromBytes(Buffer.from(`GARBAGE\r\nX-Request-Id:${text}\r\n\r\n`, "latin1")),
  "the id of a head without an end": (text) =>
    requestIdFromBytes(Buffer.from(`GARBAGE\r\nX-Request-Id:${text}`, "latin1")),
  "the id, in the whole of a packet": (text) => requestIdFromBytes(Buffer.from(text, "latin1")),
  "a path": (text) => pathOf(`/${text}`),
  "an absolute URL": (text) => pathOf(`http://${text}`),
  "a route": (text) => route(routes, "GET", `/${text}`),
  "a model's name in a path": (text) => match(routes, `/v1/models/${text}`),
  "a key": (text) => keyring.authenticate(`Bearer ${text}`),
  "a scheme and a key": (text) => keyring.authenticate(text),
  "a password": (text) => asked({ host: "127.0.0.1", authorization: `Basic ${text}` }),
  "a Host": (text) => asked({ host: text, authorization: "Basic eA==" }),
  "an Origin": (text) => asked({ host: "127.0.0.1", origin: `http://${text}` }),
  "an address": (text) => networkOf(text),
  "events of a provider": (text) => {
    const reader = createEventReader();
    reader.push(Buffer.from(text));
    reader.end();
  },
  "an error of a provider": (text) =>
    refusal(400, { get: () => null }, { error: { message: text, code: text, type: text } }),
  "a provider's Retry-After": (text) => refusal(429, { get: () => text }, {}),
  "an error inside a 200": (text) => throwErrorIn({ error: { message: text, code: text } }),
  "the path of a fault": (text) => pathText(["messages", 0, text]),
  "the name of a model": (text) => chatRequest(chat({ model: text })),
  "the name of a tool": (text) =>
    chatRequest(chat({ tools: [{ type: "function", function: { name: text } }] })),
  "an address of an image": (text) => requirementsOf(withImage(text)),
  "an address of an image on the web": (text) => requirementsOf(withImage(`https:${text}`)),
};

for (const [name, read] of Object.entries(READERS)) {
  it(`hostile text as ${name}: ${LARGE} characters cost no more than ${BOUND_MS} ms`, () => {
    let worst = 0;
    for (const stuffing of STUFFING) {
      for (const end of ENDS) {
        const text = stuffing.repeat(LARGE / stuffing.length) + end;
        const began = process.cpuUsage();
        fails(() => read(text));
        const { user, system } = process.cpuUsage(began);
        worst = Math.max(worst, (user + system) / 1_000);
        assert.ok(worst < BOUND_MS, `${JSON.stringify([stuffing, end])}: ${worst.toFixed(0)} ms`);
      }
    }
  });
}
