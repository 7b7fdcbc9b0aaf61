// The policy "fastest": of the models that are good enough, the one that began its replies soonest
// in the last ten minutes. Each process measures for itself.
import type { Installer } from "../../../core/extension/installer.ts";
import type { Config } from "../../../core/config.ts";
import type { Clock } from "../../../core/clock.ts";
import { moments } from "../../../core/extension/places.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { createMedians, type Medians } from "./medians.ts";

/** One request in so many goes to another model than the fastest, so that figures stay fresh. */
const EXPLORE_ONE_IN = 50;
/** A model without figures is not tried again before so many milliseconds. */
const RETRY_MS = 60_000;

export function install(gateway: Installer): void {
  gateway.around(
    ({ clock, current, on }) => {
      const medians = createMedians(clock.monotonic);
      on("report", () => reportOf(medians, current().config));
      return byTime({ clock, medians });
    },
    // A conversation stays where it is, however fast others are.
    { outside: ["sticky"] },
  );
  gateway.on(moments.status, (reports) => ({ first_token_ms: leastOf(reports) }));
}

interface FastestOptions {
  readonly clock: Clock;
  readonly medians: Medians;
  /** From 0 to less than 1. Absent: Math.random. */
  readonly random?: () => number;
}

/** Orders the candidates of aliases with the policy "fastest", and measures all attempts. */
export function byTime({ clock, medians, random = Math.random }: FastestOptions) {
  /** When models without figures were put first, by the monotonic clock. */
  const triedAt = new Map<string, number>();

  function ordered(candidates: readonly Model[]): readonly Model[] {
    const now = clock.monotonic();
    const able = candidates.filter((model) => model.status().retryMs === 0);
    // Models without figures come last.
    const timeOf = ({ name }: Model): number => medians.of(name) ?? Number.MAX_VALUE;
    const sorted = able.toSorted((a, b) => timeOf(a) - timeOf(b));
    const unknown = sorted.find(
      ({ name }) =>
        medians.of(name) === undefined && now - (triedAt.get(name) ?? -Infinity) >= RETRY_MS,
    );
    if (unknown) triedAt.set(unknown.name, now);
    const others = sorted.slice(1);
    const explored =
      random() * EXPLORE_ONE_IN < 1 ? others[Math.floor(random() * others.length)] : undefined;
    const first = unknown ?? explored ?? sorted[0];
    if (!first) return candidates;
    return [...new Set([first, ...sorted, ...candidates])];
  }

  return (complete: Complete): Complete =>
    (chat, candidates, deliver, context) => {
      if (context.config.aliases.get(chat.model)?.policy !== "fastest")
        return complete(chat, candidates, deliver, context);
      const quickestFirst = ordered(candidates);
      // What begins a whole reply is its end, so only streams are measured.
      if (!chat.stream) return complete(chat, quickestFirst, deliver, context);
      const { attempt } = context;
      return complete(chat, quickestFirst, deliver, {
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

/** Of what several processes have measured, the least time of each model. */
function leastOf(reports: readonly unknown[]): Record<string, number> {
  const least: Record<string, number> = {};
  for (const [name, ms] of reports.flatMap((report) => Object.entries(asObject(report))))
    least[name] = Math.min(least[name] ?? Infinity, Number(ms));
  return least;
}
