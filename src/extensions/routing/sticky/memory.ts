// Which model served which conversation, bounded: a gateway serves for months.

/** Conversations that are remembered in a process. Those that were used least recently go first. */
const MAX_ENTRIES = 100_000;

export interface Memory {
  /** Undefined: unknown, or forgotten. */
  get(key: string): string | undefined;
  /** Remembers the name of a model. The least recently used entry makes room for it. */
  set(key: string, value: string): void;
}

export function createMemory(maxEntries = MAX_ENTRIES): Memory {
  const entries = new Map<string, string>(); // in the order of their last use
  function set(key: string, value: string): void {
    entries.delete(key);
    entries.set(key, value);
    if (entries.size > maxEntries) entries.delete(entries.keys().next().value!);
  }
  return {
    get(key) {
      const value = entries.get(key);
      if (value !== undefined) set(key, value);
      return value;
    },
    set,
  };
}
