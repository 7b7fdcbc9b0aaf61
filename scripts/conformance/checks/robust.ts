// Level `robust`: typical faults of gateways when providers fail and clients disconnect.

import type { Exchange } from "../client.ts";
import { CANARY, ELSEWHERE, PIECES } from "../wire.ts";
import { BURST } from "../provider.ts";
import { first } from "../shapes.ts";
import { CHAT, question } from "../tester.ts";
import * as expect from "./setup.ts";
import { alike, robust, SOON_MS, STREAM, type RobustKit } from "./setup.ts";

const leavesWaiting =
  (stream: boolean) =>
  async ({ ask, call }: RobustKit): Promise<void> => {
    const leave = new AbortController();
    ask({ stream }, {}, leave.signal).catch(() => undefined);
    const asked = await call();
    leave.abort();
    await expect.left(asked);
  };
robust('contract.md "Clients that leave"', {
  async "leaving.stream [silent-after-1]: a client leaves a stream: so does the gateway"(kit) {
    (await kit.begun()).leave();
    await expect.left(await kit.call());
  },
  "leaving.whole [silent]: a client leaves before a whole reply: so does the gateway":
    leavesWaiting(false),
  "leaving.silence [silent]: a client leaves before a first delta: so does the gateway":
    leavesWaiting(true),
});

const FALLS = [
  ...[401, 402, 403, 404, 408, 429, 500, 503, 529].map((status) => [
    `status-${status}`,
    `status ${status}`,
  ]),
  ["error-in-200", "an error inside a 200"],
  ["error-first", "an error as the first event of a stream"],
  ["error-after-role", "an error after a chunk that has nothing but the role"],
  ["nothing", "an empty body"],
  ["error-with-usage", "an error that comes with usage"],
  ["error-object", "an error whose code is an object"],
  ["call-failed", "a failed tool call as status 400"],
  ["call-failed-in-stream", "a failed tool call as an event of a stream"],
  ["only-done", "a stream that is nothing but [DONE]"],
  ["not-json", "what is not JSON"],
  ["html", "a page instead of a reply"],
  ["redirect-302", "a redirect"],
  ["gzip", "a compressed reply although identity was asked for"],
  ["too-short", "a body shorter than its Content-Length"],
  ["reset", "a connection that breaks before the answer"],
  ["cut-after-0", "a connection that breaks before the first delta"],
  ["silent", "no answer in time", "silent@impatient"],
  ["silent-after-0", "no first delta in time", "silent-after-0@impatient"],
  ["gone", "nobody at the provider's address", "good@gone"],
] as const;
const FAILS = [
  ["status-500", "500"],
  ["status-401", "401: it is not the client's key that was refused"],
  ["status-429", "429: it is not the client's limit that was reached"],
  ["error-first", "an error inside a 200"],
  ["redirect-307", "a redirect"],
  ["reset", "a broken connection"],
] as const;

robust('contract.md "Attempts"', {
  ...alike(
    FALLS.map(
      ([id, what, behaviour = id]) =>
        `fallback.${id} [${behaviour} in-one]: ${what}: an alias answers by its next model, unseen`,
    ),
    async ({ askBoth, second }) => {
      for (const reply of await askBoth()) {
        expect.complete(reply);
        expect.servedBy(reply, second);
      }
    },
  ),
  ...alike(
    FAILS.map(
      ([name, what]) => `canonical.${name} [${name}]: a model's name fails with 503: ${what}`,
    ),
    async ({ askBoth }) => {
      for (const reply of await askBoth()) expect.refusal(reply, 503);
    },
  ),
  ...alike(
    [429, 503].map((code) => `retry.${code} [once-${code}]: another attempt hides a ${code}`),
    async (kit) => {
      expect.complete(await kit.ask());
      expect.calls(kit, 2);
    },
  ),
  async "client-fault.once [status-400 good]: a 400 is the client's error: no other attempt"(kit) {
    expect.refusal(await kit.ask(), 400);
    expect.calls(kit, 1);
    expect.calls(kit, 0, kit.second);
  },
});
robust('contract.md "Commit point"', {
  async "no-splice [cut-after-2 good]: after the first delta: an error, no other model"(kit) {
    expect.broken(await kit.ask(STREAM), PIECES.slice(0, 2).join(""));
    expect.calls(kit, 0, kit.second);
  },
});
robust('contract.md "Replies"', {
  async "model.canonical: model is always the requested name, not the provider's"(kit) {
    for (const reply of await kit.askBoth()) expect.servedBy(reply, kit.model);
  },
});
robust('wire.md "Rate limit headers"', {
  async "overloaded [overloaded-7]: its Retry-After is passed on, also in the message"(kit) {
    const reply = await kit.ask();
    expect.refusal(reply, 503);
    expect.same(reply.headers["retry-after"], "7");
    expect.wait(reply);
  },
});
robust('routing.md "Upstream connections"', {
  async "keep-alive.reuse [alone good@lone]: the next request uses the same connection"(kit) {
    for (let i = 0; i < 2; i += 1) {
      expect.complete(await kit.ask());
      await (await kit.call(i)).finished;
    }
    expect.same((await kit.call(1)).connection, (await kit.call(0)).connection);
  },
  async "keep-alive.stale [alone closes-when-reused@lone]: a dead connection is replaced"(kit) {
    for (let i = 0; i < 3; i += 1) expect.complete(await kit.ask());
  },
});
robust('wire.md "Calls"', {
  async "redirect [redirect-308]: a redirect is not followed"(kit) {
    expect.refusal(await kit.ask(), 503);
    expect.calls(kit, 0, ELSEWHERE);
  },
});

/** Sends failing requests until the gateway no longer calls the provider. */
async function untilOpen({ ask, calls }: RobustKit): Promise<void> {
  for (let i = 0; i < 20; i += 1) {
    const before = calls().length;
    expect.refusal(await ask(), 503);
    if (calls().length === before) return;
  }
  throw new expect.Expectation("a provider that is left alone after 20 failures", calls().length);
}

/** Sends requests until one reaches the provider again. Returns the promise of its reply. */
async function untilThrough(kit: RobustKit): Promise<{ probe: Promise<Exchange> }> {
  const { ask, calls, call } = kit;
  const before = calls().length;
  const through = call(before);
  through.catch(() => undefined); // the loop below has its own deadline
  for (const end = performance.now() + SOON_MS; performance.now() < end; ) {
    const probe = ask();
    await Promise.race([probe, through]);
    if (calls().length > before) return { probe };
  }
  throw new expect.Expectation(`a request that reaches the provider within ${SOON_MS} ms`, "none");
}

robust('contract.md "Breaker"', {
  "breaker.opens [status-500]: a provider that keeps failing is no longer called": untilOpen,
  async "breaker.one-probe [status-500]: after a while one request at a time tries it"(kit) {
    const { provider, model, calls, call } = kit;
    await untilOpen(kit);
    provider.turn(model, "held");
    const before = calls().length;
    const { probe } = await untilThrough(kit);
    for (const reply of await kit.askMany(8, "More?")) expect.refusal(reply, 503);
    expect.calls(kit, before + 1);
    provider.turn(model, "good");
    expect.complete(await probe);
    await (await call(before)).finished;
  },
  async "breaker.closes [status-500]: one good answer lets all requests through again"(kit) {
    await untilOpen(kit);
    kit.provider.turn(kit.model, "good");
    expect.complete(await (await untilThrough(kit)).probe);
    for (const reply of await kit.askMany(4, "All?")) expect.complete(reply);
  },
});

/** Behaviours whose responses contain text that no client may see. */
const TALKATIVE =
  "status-401 status-500 overloaded-9 error-in-200 error-after-1 html redirect-302 error-object call-failed call-failed-in-stream error-with-usage-after-1 filtered good";

robust('contract.md "Limits"', {
  async "limit.exact: of 200 requests at once exactly the limit is admitted"({ t, ask, askMany }) {
    const key = { authorization: `Bearer ${BURST.key}` };
    const { status, headers } = await ask({}, key);
    // An earlier run may have used up the limit.
    if (status === 429) await t.options.pause?.(Number(headers["retry-after"]));
    const replies = await askMany(200, "At once.", key);
    const room = status === 200 ? BURST.rpm - 1 : BURST.rpm;
    const refused = replies.filter((reply) => reply.status === 429);
    const answers = replies.filter((reply) => reply.status === 200).length;
    expect.same([answers, refused.length], [room, 200 - room]);
    for (const reply of refused) expect.wait(reply);
  },
});
robust('contract.md "Request ids"', {
  async "ids.shared: requests with one X-Request-Id have replies and ids of their own"(kit) {
    const replies = await kit.askMany(20, "Say something.");
    for (const reply of replies) expect.complete(reply);
    expect.same(new Set(replies.map(({ parts }) => first(parts[0], "id"))).size, 20);
    expect.calls(kit, 20);
  },
  async "pipelined: requests sent at once are answered in order, each with its id"({ t, model }) {
    const body = JSON.stringify({ model, messages: question("Say something.") });
    const head = [
      `POST ${CHAT} HTTP/1.1`,
      "Host: gateway",
      `Authorization: Bearer ${t.options.key}`,
      "Content-Type: application/json",
      `Content-Length: ${Buffer.byteLength(body)}`,
    ];
    const requests = ["robust.one", "robust.two"].map((id) =>
      [...head, `X-Request-Id: ${id}`, "", body].join("\r\n"),
    );
    const answer = await t.client.raw(`${requests.join("")}this is no request\r\n\r\n`);
    const got = [...answer.matchAll(/HTTP\/1.1 (\d+)|x-request-id: *(\S+)/gi)]
      .map(([, status, id]) => status ?? id)
      .join(" ");
    // The answer to the last line, which is not a request, may be missing.
    expect.fields({ got }, { got: /^200 robust\.one 200 robust\.two( 400 \S+)?$/ });
  },
});
robust('contract.md "Endpoints"', {
  async "healthz.busy [silent]: /healthz answers while every provider is silent"({ t, ask, call }) {
    const leaving = Array.from({ length: 20 }, () => new AbortController());
    for (const { signal } of leaving) ask({}, {}, signal).catch(() => undefined);
    await call(19);
    await expect.healthy(t, "meanwhile");
    for (const each of leaving) each.abort();
  },
});
robust('wire.md "Error body"', {
  async [`secrets [${TALKATIVE}]: a provider's key, address, words and names do not show`](kit) {
    const { provider, models, askBoth } = kit;
    const replies = await Promise.all(models.map((model) => askBoth({ model })));
    const address = provider.url.replace("http://", "");
    for (const { shown } of replies.flat()) {
      const isHidden = !CANARY.test(shown) && !shown.includes(address);
      expect.that(isHidden, "nothing of the provider", shown);
    }
  },
});
