// Level `robust`, continued: what becomes of a provider's figures, wherever it states them.

import type { Exchange } from "../exchange.ts";
import { positive } from "../forms.ts";
import { first, isCount } from "../shapes.ts";
import { USAGE } from "../wire.ts";
import * as expect from "./replies.ts";
import { alike, robust, STREAM, WITH_USAGE, type Scene } from "./scene.ts";

const { completion_tokens_details: _, ...FIGURES } = USAGE;
const expectFigures = (reply: Exchange): void => {
  expect.complete(reply);
  expect.fields(reply.usage, FIGURES);
};
const PLACES = [
  ["good", "a chunk of its own"],
  ["usage-null", "a chunk of its own, null before and after it"],
  ["usage-with-finish", "the last chunk with a choice"],
  ["usage-in-choice", "a choice"],
  ["usage-everywhere", "every chunk, each time more"],
  ["usage-digits", "a chunk of its own, as strings of digits"],
];

robust('wire.md "Usage in streams"', {
  "usage.asked: of a stream, usage is asked for although the client did not ask": expect.sent(
    STREAM,
    { "stream_options.include_usage": true },
  ),
  async "usage.hidden: usage that the client did not ask for is not shown"({ ask }) {
    const reply = await ask(STREAM);
    expect.complete(reply);
    expect.same(reply.usage, undefined);
  },
});
alike(
  'wire.md "Token counts"',
  PLACES.map(([name, where]) => `usage.figures.${name} [${name}]: figures are read from ${where}`),
  async ({ ask }) => expectFigures(await ask(WITH_USAGE)),
);
robust('wire.md "Token counts"', {
  async "usage.reasoning [reasoning]: tokens of thinking are within completion_tokens"({ ask }) {
    for (const reply of [await ask(), await ask(WITH_USAGE)]) {
      expectFigures(reply);
      const tokens = first(reply.usage, "completion_tokens_details.reasoning_tokens");
      expect.that(tokens === undefined || tokens === 3, "3 reasoning_tokens", tokens);
    }
  },
});
alike(
  'wire.md "Token counts"',
  [
    "usage.never [usage-never]: a provider that sends no usage: there are figures all the same",
    "usage.nonsense [usage-nonsense]: a provider that sends nonsense as usage: figures all the same",
    "usage.empty [usage-empty]: a provider that sends usage without figures: figures all the same",
  ],
  async ({ ask }) => {
    for (const reply of [await ask(), await ask(WITH_USAGE)]) {
      expect.complete(reply);
      expect.fields(reply.usage, { prompt_tokens: positive, completion_tokens: positive });
    }
  },
);

/** Figures of which the last is the sum of the others. */
const hasSum =
  (most: number) =>
  async ({ ask }: Scene) => {
    for (const reply of [await ask(), await ask(WITH_USAGE)]) {
      expect.complete(reply);
      const [prompt, completion, total] = ["prompt", "completion", "total"].map((name) =>
        first(reply.usage, `${name}_tokens`),
      );
      const isSum = isCount(prompt) && isCount(completion) && total === prompt + completion;
      expect.that(isSum && total <= most, `the sum, at most ${most}`, reply.usage);
    }
  };

robust('books.md "Usage figures"', {
  "usage.absurd [usage-absurd]: figures beyond a thousand million tokens are not passed on":
    hasSum(1_000),
});
robust('wire.md "Token counts"', {
  "usage.sum [usage-sum]: total_tokens is the sum of its parts, whatever the provider states":
    hasSum(109),
});
