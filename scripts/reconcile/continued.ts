// What may stand in the record of a stream that was continued after it broke: the rule of
// recovery.md. Each attempt of which something was shown is billed at the price of its own model. A
// continuation that could not be joined is not billed, and the provider cannot know whether it was:
// so every set of calls that may have been billed is a candidate.

import type { Asked } from "./client.ts";
import {
  bounded,
  broken as brokenByNetwork,
  type Expected,
  figuresOf,
  NONE,
  whereLeft,
} from "./expected.ts";
import type { ModelName } from "./plan.ts";
import type { Call } from "./provider.ts";

/** What is billed of one call. */
export interface Part {
  readonly model: ModelName | null;
  readonly expected: Expected;
}

/** A call of a request. */
interface Step {
  readonly call: Call;
  /** No call before has written any text, be it a blank that no continuation repeats. */
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** How a broken call may be billed. */
function broken({ call, isFirst }: Step, asked: Asked): readonly Expected[] {
  if (call.refused) return [NONE];
  const figures = call.orderly ? [figuresOf(call, asked)] : [NONE, bounded(call, asked)];
  // The first text was shown for certain. That of a continuation may have been refused.
  return isFirst && call.orderly && !call.finished ? figures : [NONE, ...figures];
}

function waysOf(status: string, step: Step, asked: Asked): readonly Expected[] {
  const { call, isLast } = step;
  if (status === "interrupted") return [NONE];
  if (!isLast) return call.finished ? [NONE] : broken(step, asked);
  if (status === "completed") return call.finished ? [figuresOf(call, asked)] : [];
  if (status === "cancelled") return [...whereLeft(call, asked), ...broken(step, asked)];
  return call.finished ? [NONE] : broken(step, asked);
}

/** The sets of calls that may have been billed. */
export function continuedParts(
  status: string,
  calls: readonly Call[],
  asked: Asked,
): readonly (readonly Part[])[] {
  let sets: readonly (readonly Part[])[] = [[]];
  calls.forEach((call, index) => {
    const isFirst = calls.slice(0, index).every(({ text }) => text === "");
    const step = { call, isFirst, isLast: index === calls.length - 1 };
    const ways = [
      ...waysOf(status, step, asked),
      ...(call.troubles.length > 0 && status !== "interrupted" ? brokenByNetwork(call, asked) : []),
    ];
    sets = sets.flatMap((set) =>
      ways.map((expected) =>
        expected.basis === "none" ? set : [...set, { model: call.model, expected }],
      ),
    );
  });
  return sets;
}
