// Aliases whose conversations stay with the model that served them last, while it is healthy: only
// that model's provider has the prompt in its cache.
import type { Installer } from "../../../core/extension/installer.ts";
import { configMoments } from "../../../config/extension.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Complete, RequestProgress } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { boolean } from "../../../core/schema/checker.ts";
import { beginningsOf } from "./beginnings.ts";

const NOTE =
  "Sticky: a conversation stays with the model that served its last turn while that model is " +
  "healthy, so its provider can use its prompt cache.";

const sticky = defineSetting("aliases.*.sticky", false, () => boolean());

export const settings = [sticky];

export function install(gateway: Installer): void {
  // It recognizes a conversation by what the client sent, without the beginning of an answer that
  // recovery asks a model to continue.
  const outside = ["recovery"];
  gateway.around(createStaying, { outside });
  gateway.on(configMoments.notes, (alias) => (sticky.of(alias) ? [NOTE] : []));
}

/** Puts the candidate first that served the conversation last, if the alias is sticky. */
export function createStaying(): (complete: Complete) => Complete {
  /** The names of models, by the beginnings of the requests that they served. */
  const served = createMemory();
  return (complete) => async (chat, candidates, deliver, context) => {
    if (!sticky.of(context.config.aliases.get(chat.model)))
      return complete(chat, candidates, deliver, context);
    const beginnings = beginningsOf(chat, context.account);
    const last = beginnings.map(served.get).find((name) => name !== undefined);
    const ordered = withFirst(candidates, last);
    const progress = await complete(chat, ordered, deliver, context);
    const { name } = progress.model;
    served.set(beginnings[0]!, name);
    return name === last ? withNote(progress, `sticky: stayed with ${name}`) : progress;
  };
}

/** The same progress with one more note. */
const withNote = (progress: RequestProgress, note: string): RequestProgress => ({
  ...progress,
  notes: [...(progress.notes ?? []), note],
});

/** The candidates, this one first if it is among them and its breaker is closed. */
function withFirst(candidates: readonly Model[], name: string | undefined): readonly Model[] {
  const last = candidates.find((model) => model.name === name);
  if (last?.status().state !== "closed") return candidates;
  return [last, ...candidates.filter((model) => model !== last)];
}

/**
 * Conversations that are remembered in a process, which serves for months. Those that were used
 * least recently go first.
 */
const MAX_ENTRIES = 100_000;

/** Which model served which conversation. `maxEntries`: how many conversations it remembers. */
export function createMemory(maxEntries = MAX_ENTRIES) {
  const entries = new Map<string, string>(); // in the order of their last use

  /** Remembers the name of a model. The least recently used entry makes room for it. */
  function set(key: string, value: string): void {
    entries.delete(key);
    entries.set(key, value);
    if (entries.size > maxEntries) entries.delete(entries.keys().next().value!);
  }

  /** Undefined: unknown, or forgotten. */
  function get(key: string): string | undefined {
    const value = entries.get(key);
    if (value !== undefined) set(key, value);
    return value;
  }

  return { get, set };
}
