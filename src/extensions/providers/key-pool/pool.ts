// The keys of one provider: chooses a key for a request, and pauses keys that failed.
import { sha256 } from "../../../core/hash.ts";
import type { Gates, Permit } from "../../routing/gates/index.ts";
import type { Pause } from "../../routing/pauses/index.ts";
import { pickWeighted } from "../../routing/weights/index.ts";

/** A key of a provider as its row states it. */
export interface PoolKey {
  readonly key: string;
  /** Its share of the requests, relative to the weights of the available keys. */
  readonly weight: number;
  /** Requests in any minute. Undefined: any number. */
  readonly rpm?: number | undefined;
  /** Prompt and reply tokens in any minute, counted when a request ends. Undefined: any number. */
  readonly tpm?: number | undefined;
}

/** A key that a request may use. */
export interface TakenKey {
  readonly key: string;
  /** As returned by endOf(). */
  readonly end: string;
  /** Call this when the request is over, with prompt and reply tokens; or else call unused(). */
  used(tokens: number): void;
  /** Call this if no provider was asked with the key. */
  unused(): void;
  /** Pauses a key that the provider refuses, for all models or only for this one. */
  refused(forModelOnly?: boolean): void;
  /** Pauses a key that the provider calls exhausted, for this model and these milliseconds. */
  exhausted(ms: number): void;
}

export interface KeyPool {
  /**
   * A key that the request has not tried. A number: there is none, and no key can be used for that
   * many milliseconds. 0: keys that were tried can be used again.
   */
  take(model: string, tried: ReadonlySet<string>): Promise<TakenKey | number>;
  /** Whether there is a key that is untried and not paused. It may have reached its bounds. */
  hasOther(model: string, tried: ReadonlySet<string>): boolean;
  /** Whether all keys pause because the provider refuses them, for all models or for this one. */
  isRefused(model: string): boolean;
  /**
   * The longest pause of each key for any of these models in milliseconds, by the key's end. Of
   * keys that end alike, the second is called `end (2)`.
   */
  pauses(models: readonly string[]): Readonly<Record<string, number>>;
}

export interface PoolServices {
  /** For keys with an rpm or a tpm. */
  readonly gates: Gates;
  /** Finds the pause with this name. */
  readonly pauseOf: (name: string) => Pause;
  /** From 0 to less than 1. Absent: Math.random. */
  readonly random?: () => number;
}

/** The key's last four characters, the only part that logs and reports show. */
export const endOf = (key: string): string => key.slice(-4);

/** The pause of a refused key: an operator needs longer to replace it. */
const REFUSED_MS = 60_000;

/** `provider`: the provider's name. */
export function createKeyPool(
  provider: string,
  keys: readonly PoolKey[],
  { gates, pauseOf, random = Math.random }: PoolServices,
): KeyPool {
  const ends = keys.map(({ key }) => endOf(key));
  const states = keys.map(({ rpm, tpm, ...row }, at) => {
    const end = ends[at]!;
    const alike = ends.slice(0, at).filter((other) => other === end).length;
    // By the key, not by its index, which a reload may change.
    const name = `key ${sha256(row.key)} of ${provider}`;
    const isBounded = rpm !== undefined || tpm !== undefined;
    return {
      ...row,
      end,
      label: alike > 0 ? `${end} (${alike + 1})` : end,
      gate: isBounded ? gates.of(name, { rpm, tpm }) : undefined,
      refusal: pauseOf(name),
      refusalFor: (model: string) => pauseOf(`${name} refused for ${model}`),
      exhaustion: (model: string) => pauseOf(`${name} for ${model}`),
    };
  });
  type State = (typeof states)[number];

  const refusedFor = ({ refusal, refusalFor }: State, model: string): number =>
    Math.max(refusal.left(), refusalFor(model).left());

  const pauseFor = (state: State, model: string): number =>
    Math.max(refusedFor(state, model), state.exhaustion(model).left());

  function taken(
    { key, end, refusal, refusalFor, exhaustion }: State,
    model: string,
    permit: Permit | undefined,
  ): TakenKey {
    return {
      key,
      end,
      used: (tokens) => permit?.release(tokens, "other"),
      unused: () => permit?.undo(),
      refused: (forModelOnly) => (forModelOnly ? refusalFor(model) : refusal).begin(REFUSED_MS),
      exhausted: (ms) => exhaustion(model).begin(ms),
    };
  }

  return {
    async take(model, tried) {
      const waits = states.map((state) => pauseFor(state, model)).filter((ms) => ms > 0);
      let usable = states.filter((state) => !tried.has(state.key) && pauseFor(state, model) === 0);
      for (;;) {
        const chosen = pickWeighted(usable, ({ weight }) => weight, random());
        if (!chosen) return waits.length > 0 ? Math.min(...waits) : 0;
        const entered = await chosen.gate?.enter({ account: "", waitMs: 0 });
        if (typeof entered !== "number") return taken(chosen, model, entered);
        waits.push(entered);
        usable = usable.filter((other) => other !== chosen);
      }
    },
    hasOther: (model, tried) =>
      states.some((state) => !tried.has(state.key) && pauseFor(state, model) === 0),
    isRefused: (model) => states.every((state) => refusedFor(state, model) > 0),
    pauses: (models) =>
      Object.fromEntries(
        states.map((state) => [
          state.label,
          Math.round(Math.max(0, ...models.map((model) => pauseFor(state, model)))),
        ]),
      ),
  };
}
