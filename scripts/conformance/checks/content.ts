// Level `robust`, continued: what one request says or asks for. Its content must not close a model
// to others, its settings reach the provider as they are meant, and figures that cannot be true are
// not passed on.

import { PIECES } from "../provider.ts";
import { CROWDED } from "../ready.ts";
import { find, first, isCount } from "../shapes.ts";
import { Expectation, expect, question, type Check } from "../suite.ts";
import {
  expectComplete,
  expectRefusal,
  expectServedBy,
  robust,
  soon,
  SOON_MS,
  usageOf,
  WITH_USAGE,
  type Reply,
  type Scene,
} from "./robust.ts";

/** More than the failures in a row after which the suite's configuration leaves a model alone. */
const IN_A_ROW = 10;

const finishOf = ({ parts }: Reply): unknown =>
  parts
    .flatMap((part) => find(part, "choices[].finish_reason"))
    .map(({ value }) => value)
    .findLast((value) => typeof value === "string");

function expectFiltered(reply: Reply): void {
  expect(reply.status === 200, "status 200", `${reply.status} ${reply.shown}`);
  expect(
    reply.error === undefined && reply.content === "" && finishOf(reply) === "content_filter",
    "an empty reply with finish_reason content_filter, and no error",
    reply.shown,
  );
}

/** Asks for what goes wrong, whole and as a stream in turn, and then for something else. */
async function expectAvailable({ ask }: Scene, expectBad: (reply: Reply) => void): Promise<void> {
  for (let i = 0; i < IN_A_ROW; i += 1)
    expectBad(await ask({ messages: question("bad"), stream: i % 2 === 1 }));
  expectComplete(await ask());
}

const outcomes: Check[] = [
  robust({
    id: "filtered.reply",
    source: 'wire.md "Finish reasons"',
    title:
      "a reply without a message whose finish_reason is content_filter is a filtered reply: no other attempt, no other model",
    behaviours: "filtered good",
    run: async ({ askBoth, calls, model, second }) => {
      for (const reply of await askBoth()) {
        expectFiltered(reply);
        expectServedBy(reply, model);
      }
      expect(calls().length === 2, "a request to the provider for each", calls().length);
      expect(calls(second).length === 0, "none to the next model", calls(second).length);
    },
  }),
  robust({
    id: "filtered.available",
    source: 'contract.md "Breaker"',
    title: "ten filtered replies in a row leave the model available",
    behaviours: "picky-filter",
    run: (scene) => expectAvailable(scene, expectFiltered),
  }),
  robust({
    id: "failed-calls.available",
    source: 'contract.md "Breaker"',
    title: "ten failed tool calls in a row leave the model available",
    behaviours: "picky-calls",
    run: (scene) => expectAvailable(scene, (reply) => expectRefusal(reply, 503)),
  }),
];

const settings: Check[] = [
  robust({
    id: "effort.sent",
    source: 'api.md "Thinking"',
    title: '`reasoning_effort: "high"` without `thinking` switches thinking on at that depth',
    behaviours: "reasoning",
    reasoning: true,
    run: async ({ ask, call }) => {
      expectComplete(await ask({ reasoning_effort: "high" }));
      const { body } = await call();
      const got = [first(body, "thinking.type"), body["reasoning_effort"]];
      expect(
        got[0] === "enabled" && got[1] === "high",
        'thinking enabled and reasoning_effort "high" in the request to the provider',
        got,
      );
    },
  }),
  robust({
    id: "effort.hidden",
    source: 'api.md "Thinking"',
    title: "thinking that was asked for by `reasoning_effort` alone is not shown",
    behaviours: "reasoning",
    reasoning: true,
    run: async ({ askBoth }) => {
      for (const reply of await askBoth({ reasoning_effort: "high" })) {
        expectComplete(reply);
        const of = reply.streamed ? "delta" : "message";
        const shown = reply.parts
          .flatMap((part) => find(part, `choices[].${of}.reasoning_content`))
          .map(({ value }) => value)
          .filter((value) => typeof value === "string" && value !== "");
        expect(shown.length === 0, "no reasoning_content", shown);
      }
    },
  }),
  robust({
    id: "defaults.sampling",
    source: 'contract.md "Request fields"',
    title: "temperature and top_p reach the provider as 1 where the client is silent",
    behaviours: "good",
    run: async ({ ask, call }) => {
      expectComplete(await ask());
      const { body } = await call();
      for (const name of ["temperature", "top_p"])
        expect(body[name] === 1, `${name} 1 in the request to the provider`, body[name]);
    },
  }),
];

/** Three figures that a count of tokens can be, of which the last is the sum of the others. */
function expectSum(reply: Reply, most: number): void {
  const [prompt, completion, total] = ["prompt_tokens", "completion_tokens", "total_tokens"].map(
    (name) => first(usageOf(reply), name),
  );
  expect(
    isCount(prompt) && isCount(completion) && total === prompt + completion && total <= most,
    `figures of which total_tokens is the sum, at most ${most}`,
    usageOf(reply),
  );
}

const figures: Check[] = [
  robust({
    id: "usage.absurd",
    source: 'books.md "Usage figures"',
    title: "figures beyond a thousand million tokens are not passed on: there is an estimate",
    behaviours: "usage-absurd",
    run: async ({ ask }) => {
      for (const reply of [await ask(), await ask(WITH_USAGE)]) {
        expectComplete(reply);
        expectSum(reply, 1_000);
      }
    },
  }),
  robust({
    id: "usage.sum",
    source: 'wire.md "Token counts"',
    title: "total_tokens is the sum of its parts, also where the provider states more",
    behaviours: "usage-sum",
    run: async ({ ask }) => {
      for (const reply of [await ask(), await ask(WITH_USAGE)]) {
        expectComplete(reply);
        expectSum(reply, 109);
      }
    },
  }),
];

const limits: Check[] = [
  robust({
    id: "limit.in-flight",
    source: 'contract.md "Limits"',
    title:
      "an account with as many requests in hand as it may have: 429 concurrency_limit_exceeded, with Retry-After and the same number in the message, until its clients have left",
    behaviours: "silent-after-1",
    run: async (scene) => {
      const { provider, model, ask, calls } = scene;
      const inHand = await fill(scene);
      const refused = await ask({}, CROWDED_KEY).finally(() => {
        for (const stream of inHand) stream.leave();
      });
      expectNoPlace(refused);
      provider.turn(model, "good");
      const left = calls().map((call) => call.left);
      await soon(Promise.all(left), "the provider's connections to be closed");
      let last = refused;
      for (const end = performance.now() + SOON_MS; performance.now() < end; ) {
        last = await ask({ messages: question("Again.") }, CROWDED_KEY);
        if (last.status !== 429) return expectComplete(last);
      }
      throw new Expectation("a place that is free", last.shown);
    },
  }),
];

function expectNoPlace(reply: Reply): void {
  expectRefusal(reply, 429);
  const got = ["type", "code"].map((name) => first(reply.error, name)).join(" ");
  const expected = "rate_limit_error concurrency_limit_exceeded";
  expect(got === expected, expected, got);
  const seconds = Number(reply.headers["retry-after"]);
  const message = String(first(reply.error, "message"));
  expect(
    isCount(seconds) && seconds > 0 && message.includes(` ${seconds} s`),
    "Retry-After, and the same number in the message",
    reply.shown,
  );
}

const CROWDED_KEY = { authorization: `Bearer ${CROWDED.key}` };

/** Takes every place that the account has, with streams that have begun. */
async function fill({ open }: Scene): Promise<Awaited<ReturnType<Scene["open"]>>[]> {
  const streams = Array.from({ length: CROWDED.maxInFlight }, () =>
    open({ stream: true }, CROWDED_KEY),
  );
  const opened = await Promise.all(streams);
  for (const stream of opened)
    await stream.until((text) => text.includes(PIECES[0]!), "the first delta");
  return opened;
}

export const contentChecks: readonly Check[] = [...outcomes, ...settings, ...figures, ...limits];
