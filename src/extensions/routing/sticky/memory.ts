// Which model served which conversation, bounded: a gateway serves for months.

/** Conversations that are remembered in a process. Those that were used least recently go first. */
const MAX_ENTRIES = 100_000;

/** `maxEntries`: how many conversations it remembers. */
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
