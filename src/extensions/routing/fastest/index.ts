// The policy "fastest": among models of sufficient quality, first tries the one with the lowest
// median time to first token in the last ten minutes. Each process measures separately.
import type { Installer } from "../../../core/extension/installer.ts";
import type { Config } from "../../../core/config.ts";
import { hooks } from "../../../core/extension/places.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { createMedians, type Medians } from "./medians.ts";

/** One stream in this many goes to a model other than the fastest, to keep its figures fresh. */
const EXPLORE_ONE_IN = 50;
/** A model without figures is put first at most once in this time, in milliseconds. */
const RETRY_MS = 60_000;

export function install(gateway: Installer): void {
  gateway.around(
    ({ clock, current, on }) => {
      const medians = createMedians(clock.monotonic);
      on("report", () => reportOf(medians, current().config));
      return byTime(medians);
    },
    // `sticky` runs later and wins: a conversation stays with its model even if others are faster.
    { outside: ["sticky"] },
  );
  gateway.on(hooks.status, (reports) => ({ first_token_ms: leastOf(reports) }));
}

/**
 * Orders the candidates of aliases with the policy "fastest", and measures all attempts. `random`:
 * from 0 to less than 1.
 */
export function byTime(medians: Medians, random = Math.random) {
  /** When models without figures were put first, by the monotonic clock. */
  const triedAt = new Map<string, number>();

  /** The candidates that can be asked now, the quickest first. Those without figures come last. */
  function quickestOf(candidates: readonly Model[]): readonly Model[] {
    const able = candidates.filter((model) => model.status().retryMs === 0);
    const timeOf = ({ name }: Model): number => medians.of(name) ?? Number.MAX_VALUE;
    return able.toSorted((a, b) => timeOf(a) - timeOf(b));
  }

  /** The model to measure next. Empty: none is due. */
  function dueOf(sorted: readonly Model[], now: number): readonly Model[] {
    const unknown = sorted.find(
      ({ name }) =>
        medians.of(name) === undefined && now - (triedAt.get(name) ?? -Infinity) >= RETRY_MS,
    );
    if (unknown) triedAt.set(unknown.name, now);
    const others = sorted.slice(1);
    const explored =
      random() * EXPLORE_ONE_IN < 1 ? others[Math.floor(random() * others.length)] : undefined;
    const due = unknown ?? explored;
    return due ? [due] : [];
  }

  return (complete: Complete): Complete =>
    (chat, candidates, deliver, context) => {
      if (context.config.aliases.get(chat.model)?.policy !== "fastest")
        return complete(chat, candidates, deliver, context);
      const { attempt, clock } = context;
      const sorted = quickestOf(candidates);
      const quickestFirst = [...new Set([...sorted, ...candidates])];
      // A reply that is not streamed arrives all at once, so only streams are measured.
      if (!chat.stream) return complete(chat, quickestFirst, deliver, context);
      const due = dueOf(sorted, clock.monotonic());
      return complete(chat, [...new Set([...due, ...quickestFirst])], deliver, {
        ...context,
        attempt(attemptChat, serving, take, options) {
          const startedAt = clock.monotonic();
          let hasBegun = false;
          function takeTimed(parts: Parameters<typeof take>[0]): ReturnType<typeof take> {
            if (!hasBegun) medians.add(serving.model.name, clock.monotonic() - startedAt);
            hasBegun = true;
            return take(parts);
          }
          return attempt(attemptChat, serving, takeTimed, options);
        },
      });
    };
}

/** The medians of the models behind aliases with this policy, in milliseconds. */
function reportOf(medians: Medians, { aliases }: Config): Record<string, number> {
  const models = [...aliases.values()]
    .filter(({ policy }) => policy === "fastest")
    .flatMap(({ ranking }) => ranking.map(({ model }) => model));
  return Object.fromEntries(
    [...new Set(models)].flatMap((name) => {
      const median = medians.of(name);
      return median === undefined ? [] : [[name, Math.round(median)]];
    }),
  );
}

/** The lowest median of each model among the reports of all processes. */
function leastOf(reports: readonly unknown[]): Record<string, number> {
  // Without a prototype: a model may be called `constructor`.
  const least: Record<string, number> = Object.create(null);
  for (const [name, ms] of reports.flatMap((report) => Object.entries(asObject(report))))
    least[name] = Math.min(least[name] ?? Infinity, Number(ms));
  return least;
}
