// Aliases whose conversations stay with the model that served their last turn, while that model is
// healthy: only its provider has the prompt in its cache.
import type { Installer } from "../../../core/extension/installer.ts";
import { configHooks } from "../../../config/extension.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Complete, RequestProgress } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { boolean } from "../../../core/schema/checker.ts";
import { prefixHashes } from "./prefixes.ts";

const NOTE =
  "Sticky: a conversation stays with the model that served its last turn while that model is " +
  "healthy, so its provider can use its prompt cache.";

const sticky = defineSetting("aliases.*.sticky", false, () => boolean());

export const settings = [sticky];

export function install(gateway: Installer): void {
  // Conversations must be recognized by the messages that the client sent, without the beginning of
  // an answer that `recovery` adds.
  const outside = ["recovery"];
  gateway.around(createStickyRouting, { outside });
  gateway.on(configHooks.notes, (alias) => (sticky.of(alias) ? [NOTE] : []));
}

/** If the alias is sticky, puts the candidate first that served the conversation's last turn. */
export function createStickyRouting(): (complete: Complete) => Complete {
  /** The name of the model that served a request, by the longest prefix of that request. */
  const served = createMemory();
  return (complete) => async (chat, candidates, deliver, context) => {
    if (!sticky.of(context.config.aliases.get(chat.model)))
      return complete(chat, candidates, deliver, context);
    const prefixes = prefixHashes(chat, context.account);
    const last = prefixes.map(served.get).find((name) => name !== undefined);
    const ordered = withFirst(candidates, last);
    const progress = await complete(chat, ordered, deliver, context);
    const { name } = progress.model;
    served.set(prefixes[0]!, name);
    return name === last ? withNote(progress, `sticky: stayed with ${name}`) : progress;
  };
}

const withNote = (progress: RequestProgress, note: string): RequestProgress => ({
  ...progress,
  notes: [...(progress.notes ?? []), note],
});

/** The candidates, with the named one first if it is among them and its breaker is closed. */
function withFirst(candidates: readonly Model[], name: string | undefined): readonly Model[] {
  const last = candidates.find((model) => model.name === name);
  if (last?.status().state !== "closed") return candidates;
  return [last, ...candidates.filter((model) => model !== last)];
}

/** The most prefixes that a process remembers. Without a bound, memory would grow for months. */
const MAX_ENTRIES = 100_000;

/** Remembers which model served which prefix: at most `maxEntries`, the last used ones. */
export function createMemory(maxEntries = MAX_ENTRIES) {
  const entries = new Map<string, string>(); // in the order of their last use

  /** Remembers the name of a model. If there is no room, forgets the least recently used entry. */
  function set(key: string, value: string): void {
    entries.delete(key);
    entries.set(key, value);
    if (entries.size > maxEntries) entries.delete(entries.keys().next().value!);
  }

  /** The name of the model. Undefined: unknown, or forgotten. */
  function get(key: string): string | undefined {
    const value = entries.get(key);
    if (value !== undefined) set(key, value);
    return value;
  }

  return { get, set };
}
