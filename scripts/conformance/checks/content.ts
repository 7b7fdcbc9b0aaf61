// Level `robust`, continued: what one request says or asks for. Its content must not close a model
// to others, its settings reach the provider as they are meant, and figures that cannot be true are
// not passed on.

import type { Exchange } from "../exchange.ts";
import { CROWDED } from "../ready.ts";
import { Expectation, expect, expectFields, expectSame, first, isCount } from "../shapes.ts";
import { question, type Check } from "../suite.ts";
import { bodyOf, WITH_USAGE } from "./robust.ts";
import {
  expectCalls,
  expectComplete,
  expectRefusal,
  expectServedBy,
  expectWait,
  robust,
  soon,
  SOON_MS,
  type Scene,
} from "./scene.ts";

/** More than the failures in a row after which the suite's configuration leaves a model alone. */
const IN_A_ROW = 10;

function expectFiltered({ status, error, content, finish, shown }: Exchange): void {
  expect(status === 200, "status 200", `${status} ${shown}`);
  const isEmpty = error === undefined && content === "" && finish === "content_filter";
  expect(isEmpty, "an empty reply with finish_reason content_filter, and no error", shown);
}

/** Asks for what goes wrong, whole and as a stream in turn, and then for something else. */
const isAvailable =
  (expectBad: (reply: Exchange) => void) =>
  async ({ ask }: Scene) => {
    for (let i = 0; i < IN_A_ROW; i += 1)
      expectBad(await ask({ messages: question("bad"), stream: i % 2 === 1 }));
    expectComplete(await ask());
  };

const outcomes: Check[] = [
  ...robust('wire.md "Finish reasons"', {
    async "filtered.reply [filtered good]: a reply without a message, but with finish_reason content_filter, is a reply: no other attempt, no other model"(
      scene,
    ) {
      for (const reply of await scene.askBoth()) {
        expectFiltered(reply);
        expectServedBy(reply, scene.model);
      }
      expectCalls(scene, 2);
      expectCalls(scene, 0, scene.second);
    },
  }),
  ...robust('contract.md "Breaker"', {
    "filtered.available [picky-filter]: ten filtered replies in a row leave the model available":
      isAvailable(expectFiltered),
    "failed-calls.available [picky-calls]: ten failed tool calls leave the model available":
      isAvailable((reply) => expectRefusal(reply, 503)),
  }),
];

const settings: Check[] = [
  ...robust('api.md "Thinking"', {
    async 'effort.sent [reasoning]: `reasoning_effort: "high"` alone switches thinking on like that'(
      scene,
    ) {
      expectComplete(await scene.ask({ reasoning_effort: "high" }));
      const sent = { "thinking.type": "enabled", reasoning_effort: "high" };
      expectFields(await bodyOf(scene), sent);
    },
    async "effort.hidden [reasoning]: thinking for the sake of `reasoning_effort` alone is not shown"({
      askBoth,
    }) {
      for (const reply of await askBoth({ reasoning_effort: "high" })) {
        expectComplete(reply);
        expectSame(reply.thoughts, "");
      }
    },
  }),
  ...robust('contract.md "Request fields"', {
    async "defaults.sampling: temperature and top_p are sent as 1 where the client is silent"(
      scene,
    ) {
      expectComplete(await scene.ask());
      expectFields(await bodyOf(scene), { temperature: 1, top_p: 1 });
    },
  }),
];

/** Figures of which the last is the sum of the others. */
const hasSum =
  (most: number) =>
  async ({ ask }: Scene) => {
    for (const reply of [await ask(), await ask(WITH_USAGE)]) {
      expectComplete(reply);
      const { usage } = reply;
      const [prompt, completion] = [
        first(usage, "prompt_tokens"),
        first(usage, "completion_tokens"),
      ];
      const total = first(usage, "total_tokens");
      const isSum = isCount(prompt) && isCount(completion) && total === prompt + completion;
      expect(isSum && total <= most, `total_tokens to be the sum, at most ${most}`, usage);
    }
  };

const figures: Check[] = [
  ...robust('books.md "Usage figures"', {
    "usage.absurd [usage-absurd]: figures beyond a thousand million tokens are not passed on":
      hasSum(1_000),
  }),
  ...robust('wire.md "Token counts"', {
    "usage.sum [usage-sum]: total_tokens is the sum of its parts, whatever the provider states":
      hasSum(109),
  }),
];

const CROWDED_KEY = { authorization: `Bearer ${CROWDED.key}` };
const FULL = { type: "rate_limit_error", code: "concurrency_limit_exceeded" };

const limits = robust('contract.md "Limits"', {
  async "limit.in-flight [silent-after-1]: an account with all its requests in hand: 429 concurrency_limit_exceeded, until its clients have left"({
    provider,
    model,
    ask,
    begun,
    calls,
  }) {
    const inHand = await Promise.all(
      Array.from({ length: CROWDED.maxInFlight }, () => begun(CROWDED_KEY)),
    );
    const refused = await ask({}, CROWDED_KEY).finally(() => {
      for (const stream of inHand) stream.leave();
    });
    expectRefusal(refused, 429);
    expectFields(refused.error, FULL);
    expectWait(refused);
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
});

export const contentChecks: readonly Check[] = [...outcomes, ...settings, ...figures, ...limits];
