// What a provider signed of its thinking, and wants back with the tool calls that followed from it: clients of this format
// cannot carry it, so it is kept here, by tool call id, the least recently used forgotten first. WIRE.md 7.1, 7b.

const ENTRY_CHARS = 200; // what an entry takes beside its text
export type Signatures = ReturnType<typeof createSignatures>;
/** `maxChars`: a thought may have thousands of characters, and a client that calls tools all day must not fill the memory. */
export function createSignatures(maxChars = 64 * 1024 * 1024) {
  const entries = new Map<string, string>(); // in the order of their last use
  let chars = 0;

  function remove(id: string): void {
    const text = entries.get(id);
    if (entries.delete(id)) chars -= id.length + text!.length + ENTRY_CHARS;
  }
  function set(id: string, text: string): void {
    remove(id);
    entries.set(id, text);
    chars += id.length + text.length + ENTRY_CHARS;
    while (chars > maxChars) remove(entries.keys().next().value!);
  }
  function get(id: string): string | undefined {
    const text = entries.get(id);
    if (text !== undefined) set(id, text);
    return text;
  }
  return { get, set };
}
