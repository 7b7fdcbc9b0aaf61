// The memory of signed reasoning, bounded: a thought may have thousands of characters, and clients
// call tools all day.
import type { SignatureStore } from "./dialect.ts";

/** The memory that an entry takes beside its texts, in characters. */
const ENTRY_CHARS = 200;

/** Forgets the least recently used entries first once all together exceed `maxChars` characters. */
export function createSignatureStore(maxChars = 64 * 1024 * 1024): SignatureStore {
  const entries = new Map<string, string>(); // in the order of their last use
  let chars = 0;

  const sizeOf = (id: string, text: string): number => id.length + text.length + ENTRY_CHARS;

  function remove(id: string): void {
    const text = entries.get(id);
    if (text === undefined) return;
    entries.delete(id);
    chars -= sizeOf(id, text);
  }

  function set(id: string, text: string): void {
    remove(id);
    entries.set(id, text);
    chars += sizeOf(id, text);
    while (chars > maxChars) remove(entries.keys().next().value!);
  }

  function get(id: string): string | undefined {
    const text = entries.get(id);
    if (text !== undefined) set(id, text);
    return text;
  }

  return { get, set };
}
